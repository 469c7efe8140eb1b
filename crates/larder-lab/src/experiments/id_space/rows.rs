//! Reads from a run what goals, findings and tables share.

use std::collections::BTreeMap;

use super::distance;
use super::plan::{DISTANCE, HUGE, LARGE, SMALL, THREADED, YARDSTICK};
use crate::frame::{At, Results, median_of, together};
use crate::stats::Estimate;

/// The metric of batches and of threads.
pub(super) const COST: &str = "ns_per_pair";

/// `32768`, `2^22`.
pub(super) fn size(count: i64) -> String {
    match count {
        LARGE => "2^22".to_owned(),
        HUGE => "2^32".to_owned(),
        other => other.to_string(),
    }
}

/// `67 %`.
pub(super) fn percent(live: i64, count: i64) -> String {
    let p = 100.0 * live as f64 / count as f64;
    let digits = match p {
        p if p == p.round() || (0.1..99.0).contains(&p) => 1.0,
        p if (99.0..99.9).contains(&p) => 10.0,
        _ => 100.0,
    };
    format!("{} %", (digits * p).round() / digits)
}

/// `67 % of 32768`.
pub(super) fn share(live: i64, count: i64) -> String {
    format!("{} of {}", percent(live, count), size(count))
}

/// By which rate two threads are compared with one, and the CPUs that one thread has in it.
pub(super) type Clock = (&'static str, f64);
/// By the clock on the wall: what others take of the CPUs counts as lack of scaling.
pub(super) const WALL: Clock = ("mops_per_s", 1.0);
/// By the CPU time that the threads have used: waiting does not count.
pub(super) const CPU: Clock = ("mops_per_cpu_s", 2.0);

/// What two threads do over what one does, by round: in as many seconds, or for twice the CPU seconds.
pub(super) fn scaling(
    results: &Results<'_>,
    contestant: &str,
    live: i64,
    (metric, cpus): Clock,
) -> BTreeMap<u32, f64> {
    let of = |threads| {
        let factors = [("threads", threads), ("live", live)];
        let cell = results.find(THREADED, contestant, &factors);
        cell.map(|at| at.by_round(metric)).unwrap_or_default()
    };
    together(&[of(2), of(1)], |rates| cpus * rates[0] / rates[1])
}

/// The scaling of a contestant as a share of the empty loop's: where the machine itself does not scale, nothing does.
pub(super) fn of_yardstick(
    results: &Results<'_>,
    contestant: &str,
    live: i64,
    clock: Clock,
) -> Option<Estimate> {
    let scaling = |name| scaling(results, name, live, clock);
    let shares = together(&[scaling(contestant), scaling(YARDSTICK)], |s| s[0] / s[1]);
    median_of(&shares)
}

/// The most expensive occupancy of a group over the cheapest one, of the rounds in which all ran.
pub(super) fn spread(results: &Results<'_>, group: &str, contestant: &str) -> Option<Estimate> {
    let of = |live: &i64| {
        Some(
            results
                .find(group, contestant, &[("live", *live)])?
                .by_round(COST),
        )
    };
    let columns: Option<Vec<_>> = results.values(group, "live").iter().map(of).collect();
    let ratios = together(&columns?, |costs| {
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        costs.iter().copied().fold(0.0, f64::max) / least
    });
    median_of(&ratios)
}

/// Every cell of the distances, by rule, occupancy and size of batch.
pub(super) fn rests<'r, 'a>(results: &'r Results<'a>) -> Vec<At<'r, 'a>> {
    let mut all: Vec<At<'r, 'a>> = results.all(DISTANCE).collect();
    all.sort_by_key(|at| {
        (
            at.text("rule"),
            is_shared(at),
            at.int("live"),
            at.int("batch"),
        )
    });
    all
}

/// Whether threads may share the space.
fn is_shared(at: &At<'_, '_>) -> bool {
    at.name() == "id-space-ruled"
}

/// What the rule of a cell states at least, in allocations or in ticks of its clock, and the fewest that were found;
/// `None` where it states nothing.
pub(super) fn stated(at: &At<'_, '_>) -> Option<(f64, f64)> {
    let (rule, live, batch) = (at.text("rule")?, at.int("live")?, at.int("batch")?);
    let free = u64::try_from(SMALL.checked_sub(live)?).unwrap_or(0);
    // What it said itself, where it knows how many CPUs there are.
    let own = at.middle("distance_stated");
    let least = own.unwrap_or_else(|| distance::stated(rule, free, batch) as f64);
    (least > 0.0).then_some((least, found(at)?))
}

/// The fewest that were found.
pub(super) fn found(at: &At<'_, '_>) -> Option<f64> {
    at.by_round("distance_min").into_values().reduce(f64::min)
}

/// The rule of a cell, and whether threads may share the space.
pub(super) fn ruled(at: &At<'_, '_>) -> String {
    let shared = if is_shared(at) { ", shared" } else { "" };
    format!("{}{shared}", at.text("rule").unwrap_or_default())
}

/// How frees and allocations of a cell followed each other.
pub(super) fn order(at: &At<'_, '_>) -> String {
    match at.int("batch") {
        Some(1) | None => "one by one".to_owned(),
        Some(n) => format!("batches of {n}"),
    }
}

/// A cell of the distances in words.
pub(super) fn place(at: &At<'_, '_>) -> String {
    let share = share(at.int("live").unwrap_or(0), SMALL);
    format!("{}, {share}, {}", ruled(at), order(at))
}
