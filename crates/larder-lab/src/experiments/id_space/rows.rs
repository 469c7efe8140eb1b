//! Cells of a run by contestant and factors, and the best of the peers.

use std::collections::BTreeMap;

use crate::measure::RunView;
use crate::model::Cell;
use crate::stats::{self, Estimate, defaults};

/// The metric of batches and of threads.
pub(super) const COST: &str = "ns_per_pair";

/// Pairs per second of all threads together.
pub(super) const RATE: &str = "mops_per_s";

/// Pairs per second of CPU time, whichever thread used it.
pub(super) const CPU_RATE: &str = "mops_per_cpu_s";

/// What the threads alone do.
pub(super) const YARDSTICK: &str = "empty-loop";

/// By which clock two threads are compared with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// The one on the wall: what others take of the CPUs counts as lack of scaling.
    Wall,
    /// CPU time that the threads have used: waiting does not count.
    Cpu,
}

/// The cell of a contestant in a group with these whole-number factors.
pub(super) fn find<'a>(
    view: &RunView<'a>,
    group: &str,
    contestant: &str,
    factors: &[(&str, i64)],
) -> Option<&'a Cell> {
    view.cells(group).into_iter().find(|cell| {
        cell.contestant == contestant
            && !cell.twin
            && factors
                .iter()
                .all(|(name, value)| cell.params.int(name).is_ok_and(|own| own == *value))
    })
}

/// The peer with the lowest median.
pub(super) fn best<'a>(
    view: &RunView<'a>,
    group: &str,
    peers: &[&str],
    factors: &[(&str, i64)],
    metric: &str,
) -> Option<&'a Cell> {
    peers
        .iter()
        .filter_map(|peer| {
            let cell = find(view, group, peer, factors)?;
            Some((cell, view.middle(group, cell, metric)?))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(cell, _)| cell)
}

/// The values of a metric by round.
pub(super) fn by_round(
    view: &RunView<'_>,
    group: &str,
    cell: &Cell,
    metric: &str,
) -> BTreeMap<u32, f64> {
    view.values(group, cell, metric).into_iter().collect()
}

/// What two threads do over what one does, by round: in as many seconds, or for twice the CPU seconds.
pub(super) fn scaling(
    view: &RunView<'_>,
    contestant: &str,
    live: i64,
    clock: Clock,
) -> BTreeMap<u32, f64> {
    let group = super::plan::THREADED;
    let (metric, cpus) = match clock {
        Clock::Wall => (RATE, 1.0),
        Clock::Cpu => (CPU_RATE, 2.0),
    };
    let of = |threads| {
        find(
            view,
            group,
            contestant,
            &[("threads", threads), ("live", live)],
        )
        .map(|cell| by_round(view, group, cell, metric))
        .unwrap_or_default()
    };
    let one = of(1);
    of(2)
        .into_iter()
        .filter_map(|(round, rate)| {
            let base = *one.get(&round)?;
            (base > 0.0).then_some((round, cpus * rate / base))
        })
        .collect()
}

/// The scaling of a contestant as a share of the empty loop's, by round.
pub(super) fn of_yardstick(
    view: &RunView<'_>,
    contestant: &str,
    live: i64,
    clock: Clock,
) -> BTreeMap<u32, f64> {
    let yardstick = scaling(view, YARDSTICK, live, clock);
    scaling(view, contestant, live, clock)
        .into_iter()
        .filter_map(|(round, scale)| {
            let most = *yardstick.get(&round)?;
            (most > 0.0).then_some((round, scale / most))
        })
        .collect()
}

/// The largest over the smallest of several cells, by round: only rounds in which all of them ran.
pub(super) fn spread(view: &RunView<'_>, group: &str, cells: &[&Cell]) -> BTreeMap<u32, f64> {
    let columns: Vec<_> = cells
        .iter()
        .map(|cell| by_round(view, group, cell, COST))
        .collect();
    let Some(first) = columns.first() else {
        return BTreeMap::new();
    };
    first
        .keys()
        .filter_map(|round| {
            let values: Option<Vec<f64>> = columns.iter().map(|c| c.get(round).copied()).collect();
            let values = values?;
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            let ratio = most / least;
            (ratio.is_finite() && least > 0.0).then_some((*round, ratio))
        })
        .collect()
}

/// Median of what was computed by round.
pub(super) fn median_of(by_round: &BTreeMap<u32, f64>) -> Option<Estimate> {
    let values: Vec<f64> = by_round.values().copied().collect();
    stats::median(&values, defaults::LEVEL).ok()
}

/// A count that does not depend on chance: its interval is itself.
pub(super) fn exact(value: f64) -> Option<Estimate> {
    value.is_finite().then_some(Estimate {
        value,
        lo: value,
        hi: value,
        n: 1,
        level: 1.0,
    })
}

/// What both hold, for the column beside a ratio.
pub(super) fn held(view: &RunView<'_>, group: &str, a: &Cell, b: &Cell) -> Option<(f64, f64)> {
    Some((
        view.middle(group, a, "held_bytes")?,
        view.middle(group, b, "held_bytes")?,
    ))
}
