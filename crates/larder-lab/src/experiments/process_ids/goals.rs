//! The goal row: the last id by a map and by the walk of 2.4.

use crate::experiments::page_buffers::words::Bound;
use crate::measure::RunView;
use crate::model::Goal;

use super::findings::COST;
use super::plan::{LAST, NEAR};

/// Ours against algo-0 where two ids are free.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    let of = |group: &str, name: &str| {
        view.cells(group)
            .into_iter()
            .filter(|cell| cell.contestant == name && !cell.twin)
            .max_by_key(|cell| cell.params.int("tasks").unwrap_or(0))
    };
    let measured =
        |group: &str| view.ratio(group, of(group, "algo-0")?, of(group, "larder")?, COST);
    let note = match measured(LAST) {
        Some(_) => String::new(),
        None => format!(
            "one allocation of algo-0 there takes up to seconds; run with --full.{}",
            measured(NEAR)
                .zip(of(NEAR, "algo-0").and_then(|cell| cell.params.int("tasks").ok()))
                .map(|(r, tasks)| format!(" At {tasks} tasks the ratio is {:.0}", r.value))
                .unwrap_or_default()
        ),
    };
    vec![Bound::AtLeast(1e6).goal(
        "An allocation at A = 32767, larder's cyclic rule",
        "times faster than algo-0",
        measured(LAST),
        None,
        note,
    )]
}
