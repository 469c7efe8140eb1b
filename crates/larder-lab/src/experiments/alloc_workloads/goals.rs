//! What the library's allocators should reach, for those of them that the run has.

use crate::frame::words::{Bound, with_absent};
use crate::measure::RunView;
use crate::model::Goal;
use crate::stats::Estimate;

use super::plan::{OURS, PEERS};
use super::rows::{COST, HELD, PEAK, Place, best, find, leanest, middle, places};

/// The workloads whose peak is bound.
const BOUND_PEAK: [&str; 4] = ["larson", "mstress", "xmalloc-test", "sh8bench"];

/// Every goal of every allocator of ours that ran.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    let places = places(view);
    let mut goals = Vec::new();
    for ours in OURS {
        if places.iter().all(|place| find(view, place, ours).is_none()) {
            continue;
        }
        let ran = |peer: &str| places.iter().any(|place| find(view, place, peer).is_some());
        let peaks = BOUND_PEAK.map(|workload| peak(view, &places, ours, workload));
        let all = cells(view, &places, ours).into_iter().chain(peaks);
        goals.extend(all.map(|goal| with_absent(goal, &PEERS, ran)));
    }
    goals
}

/// Time against the best peer of each place.
fn ratios(view: &RunView<'_>, places: &[Place<'_>], ours: &str) -> Vec<(String, Estimate)> {
    places
        .iter()
        .filter_map(|place| {
            let own = find(view, place, ours)?;
            let peer = find(view, place, best(view, place, COST)?)?;
            let ratio = view.ratio(place.workload, own, peer, COST)?;
            let name = format!(
                "{} with {} threads against {}",
                place.workload, place.threads, peer.contestant
            );
            Some((name, ratio))
        })
        .collect()
}

/// The share of the places in which nobody is faster, and the worst place.
fn cells(view: &RunView<'_>, places: &[Place<'_>], ours: &str) -> [Goal; 2] {
    let ratios = ratios(view, places, ours);
    let share = |count: usize| count as f64 / ratios.len().max(1) as f64;
    let count =
        |within: fn(&Estimate) -> bool| share(ratios.iter().filter(|(_, r)| within(r)).count());
    let measured = (!ratios.is_empty()).then(|| Estimate {
        value: count(|r| r.value <= 1.0),
        lo: count(|r| r.hi <= 1.0),
        hi: count(|r| r.lo <= 1.0),
        n: ratios.len(),
        level: 0.95,
    });
    let note = format!(
        "{} cells; the interval counts those that surely and those that possibly are",
        ratios.len()
    );
    let share = Bound::AtLeast(0.75)
        .goal(
            format!("workloads: share of the cells in which {ours} is at least as fast"),
            "best peer of each cell",
            measured,
            None,
            if measured.is_some() {
                note
            } else {
                String::new()
            },
        )
        .in_unit("");
    let worst = ratios
        .into_iter()
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let (name, ratio) = worst.map_or((String::new(), None), |(name, ratio)| (name, Some(ratio)));
    let worst = Bound::AtMost(1.15).goal(
        format!("workloads: the worst cell of {ours}"),
        "best peer of each cell",
        ratio,
        None,
        name,
    );
    [share, worst]
}

/// The worst number of threads of a workload.
fn peak(view: &RunView<'_>, places: &[Place<'_>], ours: &str, workload: &str) -> Goal {
    let worst = places
        .iter()
        .filter(|place| place.workload == workload)
        .filter_map(|place| {
            let own = find(view, place, ours)?;
            let peer = find(view, place, leanest(view, place)?)?;
            Some((place, peer, view.ratio(workload, own, peer, PEAK)?))
        })
        .max_by(|a, b| a.2.value.total_cmp(&b.2.value));
    let bound = Bound::AtMost(1.1);
    let what = format!("{workload}: peak memory of {ours}");
    match worst {
        Some((place, peer, ratio)) => {
            let held = |name: &str| middle(view, place, name, HELD);
            bound.goal(
                what,
                format!("{}, the leanest of the fast ones", peer.contestant),
                Some(ratio),
                held(ours).zip(held(&peer.contestant)),
                format!("{} threads", place.threads),
            )
        }
        None => bound.goal(
            what,
            "the leanest of the fast peers",
            None,
            None,
            format!("{ours} or the peers have no six rounds with a peak in {workload}"),
        ),
    }
}
