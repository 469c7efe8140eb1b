//! This machine's row for the table of machines, and its choices in the calculator.

use super::cells::*;
use super::model;
use crate::calc::{Preset, Source, Submission, Timings};
use crate::contestants::mapping::cycle::FOUR;
use crate::frame::Results;
use crate::model::RunRecord;

/// The four timings of a way, microseconds.
fn timings(results: &Results<'_>, way: &str) -> Option<Timings> {
    let at = four(results, way)?;
    let [a, b, c, d] = FOUR.map(|name| Some(at.middle(name)? * 1e-3));
    Timings::new(a?, b?, Some(c?), d?).ok()
}

/// This machine's row: processor, system, the four timings with mmap, the day. No host name and no user name.
///
/// `None` when the run has not all four timings.
#[must_use]
pub fn submission_row(run: &RunRecord) -> Option<Submission> {
    let results = Results::new(run, METRICS);
    Some(Submission {
        machine: run.machine.text("cpu.model").to_owned(),
        os: format!("Linux {}", run.machine.text("kernel.release")),
        timings: timings(&results, MMAP)?,
        date: run.started.get(..10).unwrap_or(&run.started).to_owned(),
    })
}

/// This machine's choices in the calculator: one for each way that has all four timings, mmap first and with the better
/// model. None without mmap's timings: the first choice stands for this machine.
#[must_use]
pub fn presets(run: &RunRecord) -> Vec<Preset> {
    let results = Results::new(run, METRICS);
    if timings(&results, MMAP).is_none() {
        return Vec::new();
    }
    [
        (MMAP, "this machine, mmap"),
        (POPULATE, "this machine, mmap with MAP_POPULATE"),
        ("dontneed", "this machine, MADV_DONTNEED and reuse"),
        ("memfd", "this machine, memfd"),
        (POOL, "this machine, PagePool"),
    ]
    .into_iter()
    .filter_map(|(way, label)| {
        let fitted = model::fit(&results).filter(|_| way == MMAP);
        Some(Preset {
            label: label.to_owned(),
            detail: format!("{}, run {}", run.machine.text("cpu.model"), run.id),
            source: Source::Measured,
            timings: timings(&results, way)?,
            fitted: fitted.map(|model| model.for_calculator(&results)),
        })
    })
    .collect()
}
