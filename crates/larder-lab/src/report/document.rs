//! What a report shows.

use serde::{Deserialize, Serialize};

pub use crate::calc::Submission;
use crate::calc::{Preset, published_presets};
use crate::model::{Analysis, RunRecord};

/// Runs with what was found in them, and the machines that others sent in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Each run with its analysis, in the order in which they are shown.
    pub runs: Vec<(RunRecord, Analysis)>,
    /// Other machines' rows for the table of machines and the calculator.
    #[serde(default)]
    pub submissions: Vec<Submission>,
}

impl Document {
    /// Every choice of the calculator: this machine first, then imported machines, then those of 2003.
    #[must_use]
    pub fn presets(&self) -> Vec<Preset> {
        let here = self.runs.iter().flat_map(|(_, a)| a.calculator.clone());
        here.chain(self.submissions.iter().map(Submission::preset))
            .chain(published_presets())
            .collect()
    }
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The page's template failed.
    #[error(
        "the page could not be composed: {0}; the other formats (markdown, json) do not need it"
    )]
    Template(#[from] askama::Error),
    /// The page's data could not be written.
    #[error("the page's data could not be written: {0}")]
    Data(#[from] serde_json::Error),
}
