//! The contestants: every rule of the library, and the best there can be.

use std::path::PathBuf;

use anyhow::{Context, ensure};

use crate::measure::Contestant;
use crate::model::{Measures, Params};
use crate::sim::{Choice, Format, Job, Loaded, ReadOptions, Watch, choices, sweep};

use super::HITS;
use super::plan::{VARIABLE, folder};

/// Every rule, and OPT.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    choices()
        .into_iter()
        // By the other algorithm OPT is slower, and the same.
        .filter(|choice| choice.name != "opt-heap")
        .map(|choice| Box::new(Ruled(choice)) as Box<dyn Contestant>)
        .collect()
}

struct Ruled(Choice);

/// A workload by its name, a trace in the folder.
fn place(name: &str) -> anyhow::Result<PathBuf> {
    if name.contains(':') {
        return Ok(PathBuf::from(name));
    }
    let folder = folder().with_context(|| format!("{VARIABLE} names no folder with traces"))?;
    Ok(folder.join(name))
}

impl Contestant for Ruled {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn about(&self) -> &'static str {
        self.0.about
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let job = Job {
            policy: self.0.name.to_owned(),
            size: params.count("size")?,
        };
        ensure!(job.size > 0, "a cache of no blocks was asked for");
        let path = place(params.text("trace")?)?;
        let options = ReadOptions {
            // The numbers of these are hashes, and half of them negative.
            format: path
                .to_str()
                .is_some_and(|p| p.contains(".i32be"))
                .then_some(Format::U32be),
            ..ReadOptions::default()
        };
        let trace = Loaded::read(&path, &options, |_| {})?;
        let outcomes = sweep(&trace, &[job], 1, &Watch::default())?;
        let outcome = outcomes.first().context("nothing was simulated")?;
        Ok(Measures::new().with(HITS, 100.0 * outcome.tally.hit_ratio()))
    }
}
