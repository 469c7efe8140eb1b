//! Cells of a run by what they are, whatever their counts, and the best of the peers.

use crate::measure::RunView;
use crate::model::Cell;
use crate::stats::Estimate;

use super::plan::{SECOND, THREADS};

/// Seconds for ten million cycles of each thread.
pub(super) const SECONDS: &str = "seconds";
/// Million cycles per second of all threads.
pub(super) const RATE: &str = "mcycles_per_s";
/// CPU time of a pair.
pub(super) const PAIR: &str = "ns_per_pair";
/// CPU time of a constructed object.
pub(super) const OBJECT: &str = "ns_per_object";

/// The cell of a contestant in a group of one cell each.
pub(super) fn find<'a>(view: &RunView<'a>, group: &str, contestant: &str) -> Option<&'a Cell> {
    view.cells(group)
        .into_iter()
        .find(|cell| cell.contestant == contestant && !cell.twin)
}

fn find_loop<'a>(
    view: &RunView<'a>,
    group: &str,
    contestant: &str,
    threads: i64,
    cpus: &str,
    slab: &str,
) -> Option<&'a Cell> {
    view.cells(group).into_iter().find(|cell| {
        cell.contestant == contestant
            && !cell.twin
            && cell.params.int("threads").is_ok_and(|n| n == threads)
            && cell.params.text("cpus").is_ok_and(|c| c == cpus)
            && cell.params.text("slab").is_ok_and(|s| s == slab)
    })
}

/// A cell of the table by threads.
pub(super) fn by_threads<'a>(
    view: &RunView<'a>,
    contestant: &str,
    threads: i64,
) -> Option<&'a Cell> {
    find_loop(view, THREADS, contestant, threads, "any", "his")
}

/// A cell of the question about the second thread.
pub(super) fn second<'a>(
    view: &RunView<'a>,
    contestant: &str,
    threads: i64,
    (cpus, slab): (&str, &str),
) -> Option<&'a Cell> {
    find_loop(view, SECOND, contestant, threads, cpus, slab)
}

/// Numbers of threads that a contestant of the table ran with.
pub(super) fn counts_of_threads(view: &RunView<'_>) -> Vec<i64> {
    let mut counts: Vec<i64> = view
        .cells(THREADS)
        .into_iter()
        .filter_map(|cell| cell.params.int("threads").ok())
        .filter(|n| (1..=64).contains(n))
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Seconds of `threads` threads over those of one thread, each with as many cycles.
pub(super) fn over_one(view: &RunView<'_>, contestant: &str, threads: i64) -> Option<Estimate> {
    let many = by_threads(view, contestant, threads)?;
    let one = by_threads(view, contestant, 1)?;
    view.ratio(THREADS, many, one, SECONDS)
}

/// The same in the group about the second thread.
pub(super) fn second_over_one(
    view: &RunView<'_>,
    contestant: &str,
    layout: (&str, &str),
) -> Option<Estimate> {
    let two = second(view, contestant, 2, layout)?;
    let one = second(view, contestant, 1, layout)?;
    view.ratio(SECOND, two, one, SECONDS)
}

/// The peer with the lowest median.
pub(super) fn best<'a>(
    view: &RunView<'a>,
    group: &str,
    peers: &[&str],
    metric: &str,
) -> Option<&'a Cell> {
    peers
        .iter()
        .filter_map(|peer| {
            let cell = find(view, group, peer)?;
            Some((cell, view.middle(group, cell, metric)?))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(cell, _)| cell)
}
