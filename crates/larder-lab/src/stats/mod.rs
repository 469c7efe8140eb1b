//! The statistics of the lab.

use serde::{Deserialize, Serialize};

/// A number with the interval that covers it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Point estimate.
    pub value: f64,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// Number of samples (or pairs) behind it.
    pub n: usize,
    /// Confidence that the interval was made for, for instance 0.95; the exact one is at least this.
    pub level: f64,
}

/// What a comparison says, in five words.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "verdict")]
pub enum Verdict {
    /// The whole interval is on the good side, and beyond the A/A floor.
    Faster,
    /// The whole interval is on the bad side, and beyond the A/A floor.
    Slower,
    /// The whole interval is within this share of 1 (0.02 is two percent).
    Same {
        /// The share.
        within: f64,
    },
    /// The interval says neither.
    Inconclusive,
    /// Too few samples, or the precondition failed.
    Refused,
}
