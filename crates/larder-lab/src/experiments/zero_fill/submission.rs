//! This machine's row for the table of machines, and its choices in the calculator.

use super::cells::MMAP;
use super::look::Look;
use super::model;
use super::steps::kernel_zeroing;
use super::timings::microseconds;
use crate::calc::{Preset, Source, Submission, Timings};
use crate::model::RunRecord;

fn timings(look: &Look<'_>, way: &str) -> Option<Timings> {
    let [a, b, c, d] = microseconds(look, way)?.map(|e| e.value);
    Timings::new(a, b, Some(c), d).ok()
}

/// This machine's row: processor, system, the four timings with mmap, the day. No host name and no user name.
///
/// `None` when the run has not all four timings.
#[must_use]
pub fn submission_row(run: &RunRecord) -> Option<Submission> {
    let look = Look::new(run);
    Some(Submission {
        machine: run.machine.text("cpu.model").to_owned(),
        os: format!("Linux {}", run.machine.text("kernel.release")),
        timings: timings(&look, MMAP)?,
        date: run.started.get(..10).unwrap_or(&run.started).to_owned(),
    })
}

/// This machine's choices in the calculator: one for each way that has all four timings, mmap first and with the
/// better model. None at all without mmap's, for whoever takes the first of them takes it for this machine's row.
#[must_use]
pub fn presets(run: &RunRecord) -> Vec<Preset> {
    let look = Look::new(run);
    if timings(&look, MMAP).is_none() {
        return Vec::new();
    }
    let fitted = model::fit(&look).map(|m| model::for_calculator(&m, kernel_zeroing(&look)));
    [
        (MMAP, "this machine, mmap"),
        ("mmap-populate", "this machine, mmap with MAP_POPULATE"),
        ("dontneed", "this machine, MADV_DONTNEED and reuse"),
        ("memfd", "this machine, memfd"),
        ("pool-zeroed", "this machine, PagePool"),
    ]
    .into_iter()
    .filter_map(|(way, label)| {
        Some(Preset {
            label: label.to_owned(),
            detail: format!("{}, run {}", run.machine.text("cpu.model"), run.id),
            source: Source::Measured,
            timings: timings(&look, way)?,
            fitted: (way == MMAP).then(|| fitted.clone()).flatten(),
        })
    })
    .collect()
}
