//! Cells of a run by contestant, and the best of the peers.

use std::collections::BTreeMap;

use crate::measure::RunView;
use crate::model::Cell;
use crate::stats::{self, Estimate, defaults};

/// The metric of all groups but threads.
pub(super) const COST: &str = "ns_per_page";

/// Pairs per second of all threads together.
pub(super) const RATE: &str = "mops_per_s";

/// The cell of a contestant in a group; with a number of threads where the group has several.
pub(super) fn find<'a>(
    view: &RunView<'a>,
    group: &str,
    contestant: &str,
    threads: Option<i64>,
) -> Option<&'a Cell> {
    view.cells(group).into_iter().find(|cell| {
        cell.contestant == contestant
            && !cell.twin
            && threads.is_none_or(|n| cell.params.int("threads").is_ok_and(|m| m == n))
    })
}

/// The peer with the best median. `higher` says which direction is good.
pub(super) fn best<'a>(
    view: &RunView<'a>,
    group: &str,
    peers: &[&str],
    threads: Option<i64>,
    metric: &str,
    higher: bool,
) -> Option<&'a Cell> {
    peers
        .iter()
        .filter_map(|peer| {
            let cell = find(view, group, peer, threads)?;
            let middle = view.middle(group, cell, metric)?;
            Some((cell, if higher { -middle } else { middle }))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(cell, _)| cell)
}

/// Rate at `n` threads over rate at one thread, by round.
pub(super) fn scaling(view: &RunView<'_>, contestant: &str, n: i64) -> BTreeMap<u32, f64> {
    let group = super::plan::THREADED;
    let of = |threads| -> BTreeMap<u32, f64> {
        find(view, group, contestant, Some(threads))
            .map(|cell| view.values(group, cell, RATE).into_iter().collect())
            .unwrap_or_default()
    };
    let one = of(1);
    of(n)
        .into_iter()
        .filter_map(|(round, rate)| {
            let base = *one.get(&round)?;
            (base > 0.0).then_some((round, rate / base))
        })
        .collect()
}

/// Median of what was computed by round.
pub(super) fn median_of(by_round: &BTreeMap<u32, f64>) -> Option<Estimate> {
    let values: Vec<f64> = by_round.values().copied().collect();
    stats::median(&values, defaults::LEVEL).ok()
}

/// a / b of what was computed by round.
pub(super) fn ratio_of(a: &BTreeMap<u32, f64>, b: &BTreeMap<u32, f64>) -> Option<Estimate> {
    let (a, b): (Vec<f64>, Vec<f64>) = a
        .iter()
        .filter_map(|(round, a)| Some((*a, *b.get(round)?)))
        .unzip();
    stats::paired_ratio(&a, &b, defaults::LEVEL).ok()
}

/// Bytes that each thread beyond 8 adds to what is held, by round.
pub(super) fn held_per_thread(view: &RunView<'_>, contestant: &str) -> BTreeMap<u32, f64> {
    let group = super::plan::THREADED;
    let (few, many) = (8, 64);
    let of = |threads| -> BTreeMap<u32, f64> {
        find(view, group, contestant, Some(threads))
            .map(|cell| view.values(group, cell, "held_bytes").into_iter().collect())
            .unwrap_or_default()
    };
    let base = of(few);
    of(many)
        .into_iter()
        .filter_map(|(round, held)| Some((round, (held - base.get(&round)?) / (many - few) as f64)))
        .collect()
}

/// What both hold, for the column beside a ratio.
pub(super) fn held(
    view: &RunView<'_>,
    group: &str,
    ours: &Cell,
    theirs: &Cell,
) -> Option<(f64, f64)> {
    Some((
        view.middle(group, ours, "held_bytes")?,
        view.middle(group, theirs, "held_bytes")?,
    ))
}
