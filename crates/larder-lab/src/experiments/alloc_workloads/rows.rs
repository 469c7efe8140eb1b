//! The cells of a run by workload and number of threads.

use crate::measure::RunView;
use crate::model::Cell;

use super::plan::PEERS;

/// Wall time of an operation, all threads together.
pub(super) const COST: &str = "ns_per_op";
/// Growth of resident memory at its highest.
pub(super) const PEAK: &str = "peak_bytes";
/// Growth of resident memory at the end.
pub(super) const HELD: &str = "held_bytes";
/// Share of the calls that took the path that the contestant is named for.
pub(super) const PATH: &str = "path_share";

/// A workload with a number of threads: what allocators are compared in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The group.
    pub(super) workload: &'a str,
    /// Threads.
    pub(super) threads: i64,
}

/// Every place that has samples, in the order of the plan.
pub(super) fn places<'a>(view: &RunView<'a>) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    for workload in view.groups() {
        let mut counts: Vec<i64> = view
            .cells(workload)
            .into_iter()
            .filter_map(|cell| cell.params.int("threads").ok())
            .collect();
        counts.sort_unstable();
        counts.dedup();
        places.extend(
            counts
                .into_iter()
                .map(|threads| Place { workload, threads }),
        );
    }
    places
}

/// The cell of an allocator at a place.
pub(super) fn find<'a>(
    view: &RunView<'a>,
    place: &Place<'_>,
    contestant: &str,
) -> Option<&'a Cell> {
    view.cells(place.workload).into_iter().find(|cell| {
        cell.contestant == contestant
            && !cell.twin
            && cell.params.int("threads").is_ok_and(|n| n == place.threads)
    })
}

/// The median of a metric, where it is a number above zero.
pub(super) fn middle(
    view: &RunView<'_>,
    place: &Place<'_>,
    contestant: &str,
    metric: &str,
) -> Option<f64> {
    let cell = find(view, place, contestant)?;
    view.middle(place.workload, cell, metric)
        .filter(|v| v.is_finite() && *v > 0.0)
}

/// The peer with the lowest median.
pub(super) fn best(view: &RunView<'_>, place: &Place<'_>, metric: &str) -> Option<&'static str> {
    PEERS
        .into_iter()
        .filter_map(|peer| Some((peer, middle(view, place, peer, metric)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(peer, _)| peer)
}

/// The peer that needs least memory at its peak among those within 10 % of the fastest.
pub(super) fn leanest(view: &RunView<'_>, place: &Place<'_>) -> Option<&'static str> {
    let fastest = middle(view, place, best(view, place, COST)?, COST)?;
    PEERS
        .into_iter()
        .filter(|peer| middle(view, place, peer, COST).is_some_and(|ns| ns <= 1.1 * fastest))
        .filter_map(|peer| Some((peer, middle(view, place, peer, PEAK)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(peer, _)| peer)
}
