//! The cells of a run by program and malloc, and which of them said the same as the system's malloc.

use crate::measure::{Comparison, RunView};
use crate::model::Cell;

/// Wall time.
pub(super) const SECONDS: &str = "seconds";
/// User and system time.
pub(super) const CPU: &str = "cpu_seconds";
/// Largest resident set.
pub(super) const PEAK: &str = "peak_bytes";
/// Faults.
pub(super) const FAULTS: &str = "faults";
/// What a program wrote, as a number.
pub const OUTPUT: &str = "output";

/// Name of the contestant that is the system's malloc.
pub(super) const SYSTEM: &str = "system";

/// A program of a run.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// Its group.
    pub(super) program: &'a str,
    /// The system's malloc.
    pub(super) system: &'a Cell,
    /// The others.
    pub(super) others: Vec<&'a Cell>,
}

/// Every program with samples of the system's malloc, in the order of the plan.
pub(super) fn rows<'a>(view: &RunView<'a>) -> Vec<Row<'a>> {
    view.groups()
        .into_iter()
        .filter_map(|program| {
            let cells = view.cells(program);
            let system = cells
                .iter()
                .copied()
                .find(|cell| cell.contestant == SYSTEM && !cell.twin)?;
            Some(Row {
                program,
                system,
                others: cells
                    .into_iter()
                    .filter(|cell| cell.contestant != SYSTEM && !cell.twin)
                    .collect(),
            })
        })
        .collect()
}

/// A malloc as a column: its contestant, and the library's file where the user named it.
pub(super) fn name(cell: &Cell) -> String {
    match cell.params.text("library") {
        Ok(library) if cell.contestant == crate::contestants::heaps::PRELOADED => {
            library.rsplit('/').next().unwrap_or(library).to_owned()
        }
        _ => cell.contestant.clone(),
    }
}

/// The mallocs of a run beside the system's, larder's first.
pub(super) fn mallocs(rows: &[Row<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for known in super::libraries::contestants() {
        for cell in rows.iter().flat_map(|row| &row.others) {
            let name = name(cell);
            if cell.contestant == known && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Whether every run of a malloc wrote what the system's malloc wrote, which must be one and the same. `None` without a
/// sample of both.
pub(super) fn says_the_same(view: &RunView<'_>, row: &Row<'_>, cell: &Cell) -> Option<bool> {
    let outputs = |cell: &Cell| view.values(row.program, cell, OUTPUT);
    let (own, system) = (outputs(cell), outputs(row.system));
    let (_, expected) = *system.first()?;
    if own.is_empty() {
        return None;
    }
    Some(
        own.iter()
            .chain(&system)
            .all(|(_, number)| *number == expected),
    )
}

/// Whether a cost lies further off than the system's malloc lies from its twin, with its whole interval.
pub(super) fn beyond_chance(c: &Comparison) -> bool {
    c.ratio
        .zip(c.floor)
        .is_some_and(|(ratio, floor)| ratio.lo.ln() > floor)
}

/// The cell of a malloc, where it wrote what it should.
pub(super) fn find<'a>(view: &RunView<'a>, row: &Row<'a>, malloc: &str) -> Option<&'a Cell> {
    row.others
        .iter()
        .copied()
        .find(|cell| name(cell) == malloc)
        .filter(|cell| says_the_same(view, row, cell) == Some(true))
}
