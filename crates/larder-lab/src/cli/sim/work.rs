//! Reads and simulates a trace, with a progress bar, and maps its errors to exit codes.

use std::path::Path;

use super::args::What;
use super::bar::Progress;
use super::print;
use crate::cli::failure::Failure;
use crate::cli::global::Global;
use larder_sim::{Counts, Format, Job, Loaded, Outcome, Row, SimError, Watch, sweep};

/// The name of a format, or that there was no file.
pub(in crate::cli) fn format_name(format: Option<Format>) -> &'static str {
    format.map_or("generated", Format::name)
}

/// What a fault means for a script: a file that cannot be read is 5, one that must be named better is 2.
pub(in crate::cli) fn sim_fault(why: SimError) -> Failure {
    match why {
        SimError::Format { .. }
        | SimError::Columns { .. }
        | SimError::Directory { .. }
        | SimError::Workload { .. }
        | SimError::Future { .. } => Failure::usage(why),
        SimError::TooMuch { .. } | SimError::Rule { .. } | SimError::Thread(_) => {
            Failure::refused(why)
        }
        other => Failure::io(other),
    }
}

/// Reads a trace with a bar.
pub(super) fn load(global: &Global, what: &What, path: &Path) -> Result<Loaded, Failure> {
    let options = what.reading.options()?;
    let mut bar = Progress::reading(global, path);
    let loaded = Loaded::read(path, &options, |trace| bar.at(trace.meter())).map_err(sim_fault)?;
    bar.end();
    Ok(loaded)
}

/// Simulates jobs over one trace with a bar.
pub(super) fn simulate(
    global: &Global,
    what: &What,
    trace: &Loaded,
    jobs: &[Job],
    asked: &[String],
    times: bool,
) -> Result<Vec<Row>, Failure> {
    let watch = Watch::default();
    let total = trace.records() as u64 * jobs.len() as u64;
    let bar = Progress::simulating(global, &trace.name, total);
    let outcomes = bar
        .watch(&watch, || sweep(trace, jobs, what.threads(), &watch))
        .map_err(sim_fault)?;
    if times {
        print::times(trace.records(), &outcomes);
    }
    Ok(rows(
        outcomes,
        asked,
        &trace.name,
        format_name(trace.format),
        trace.counts,
    ))
}

/// The outcomes as rows.
pub(super) fn rows(
    outcomes: Vec<Outcome>,
    asked: &[String],
    trace: &str,
    format: &str,
    counts: Counts,
) -> Vec<Row> {
    outcomes
        .into_iter()
        .zip(asked)
        .map(|(outcome, asked)| Row {
            trace: trace.to_owned(),
            format: format.to_owned(),
            counts,
            policy: outcome.job.policy,
            size: outcome.job.size,
            asked: asked.clone(),
            tally: outcome.tally,
        })
        .collect()
}
