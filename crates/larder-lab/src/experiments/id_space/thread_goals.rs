//! Two threads: what counts as scaling, on a machine that others use, too.
//!
//! Where an empty loop does not run twice as fast on two CPUs, nothing does. So what two threads do over what one does is
//! held against the same of the empty loop, in the same rounds: 1.9 of 2 is 95 % of it. It is looked at twice: by CPU time,
//! where a CPU that somebody else took counts for nothing and neither does sleeping, and by the clock on the wall, where
//! both count.

use crate::frame::words::{self, Bound};
use crate::measure::RunView;
use crate::model::Goal;

use super::goals::{missing, share};
use super::plan::{SMALL, THREAD_LIVES, THREADED};
use super::rows::{
    COST, Clock, YARDSTICK, by_round, exact, find, median_of, of_yardstick, scaling,
};

/// 1.9 of 2.
const SHARE: f64 = 0.95;

/// Ours; the one to recommend first.
const OURS: [&str; 3] = ["id-space-any", "id-space-last", "id-space"];

/// Every goal.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    OURS.into_iter()
        .flat_map(|ours| THREAD_LIVES.map(|live| two_threads(view, ours, live)))
        .flatten()
        .collect()
}

/// Scaling by both clocks, time of a pair, and whether an identifier was lost or refused.
fn two_threads(view: &RunView<'_>, ours: &str, live: i64) -> Vec<Goal> {
    let what = format!("2 threads, {}, {ours}", share(live, SMALL));
    let two = [("threads", 2), ("live", live)];
    let Some(cell) = find(view, THREADED, ours, &two) else {
        let note = missing(THREADED, ours);
        return vec![Bound::AtLeast(SHARE).goal(what, "the empty loop", None, None, note)];
    };
    let mut goals: Vec<Goal> = [
        (Clock::Cpu, "pairs per CPU second"),
        (Clock::Wall, "pairs per second"),
    ]
    .into_iter()
    .map(|(clock, called)| {
        let scale = |name| {
            median_of(&scaling(view, name, live, clock))
                .map_or_else(|| "unknown".to_owned(), |scale| words::ratio(&scale))
        };
        Bound::AtLeast(SHARE).goal(
            format!("{what}: {called}, two threads over one"),
            "the same of an empty loop",
            median_of(&of_yardstick(view, ours, live, clock)),
            None,
            format!("{} here, the empty loop {}", scale(ours), scale(YARDSTICK)),
        )
    })
    .collect();
    let floor = find(view, THREADED, "own-stacks", &two)
        .and_then(|floor| view.ratio(THREADED, cell, floor, COST))
        .map_or_else(String::new, |f| {
            format!("; {} of a bare array of its own", words::ratio(&f))
        });
    let wall = view
        .middle(THREADED, cell, COST)
        .map_or_else(String::new, |ns| {
            format!("{} on the clock", words::short(ns))
        });
    let wrong = ["false_full", "lost_ids"]
        .into_iter()
        .flat_map(|metric| by_round(view, THREADED, cell, metric).into_values())
        .reduce(f64::max);
    goals.push(
        Bound::AtMost(10.0)
            .goal(
                format!("{what}: ns of CPU time for a pair of each"),
                "10 ns",
                view.estimate(THREADED, cell, "cpu_ns_per_pair"),
                None,
                format!("{wall}{floor}"),
            )
            .in_unit("ns"),
    );
    goals.push(
        Bound::AtMost(0.0)
            .goal(
                format!("{what}: identifiers lost, or 'full' said too early"),
                "none",
                wrong.and_then(exact),
                None,
                "",
            )
            .in_unit(""),
    );
    goals
}
