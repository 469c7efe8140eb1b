//! The goals, from one interleaved run each.

use crate::frame::words::Bound;
use crate::measure::RunView;
use crate::model::{Cell, Goal};
use crate::stats::{self, Estimate, defaults};

use super::plan::{INSTRUCTIONS, MEMORY, OURS, PEERS, SIZES, THREADED, hit_group};

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

/// The peer with the least of a metric.
pub(super) fn best<'a>(view: &RunView<'a>, group: &str, metric: &str) -> Option<&'a Cell> {
    PEERS
        .iter()
        .filter_map(|peer| {
            let cell = find(view, group, peer, None)?;
            Some((cell, view.middle(group, cell, metric)?))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(cell, _)| cell)
}

/// Rate of two threads over the rate of one, the median of the rounds.
pub(super) fn scaling(view: &RunView<'_>, contestant: &str) -> Option<Estimate> {
    let of = |threads| {
        let cell = find(view, THREADED, contestant, Some(threads))?;
        Some(view.values(THREADED, cell, "mops_per_s"))
    };
    let one: std::collections::BTreeMap<u32, f64> = of(1)?.into_iter().collect();
    let ratios: Vec<f64> = of(2)?
        .into_iter()
        .filter_map(|(round, rate)| Some(rate / one.get(&round)?))
        .collect();
    stats::median(&ratios, defaults::LEVEL).ok()
}

/// Instructions of a hit, loop included.
pub(super) fn instructions(view: &RunView<'_>, cache: &str) -> Option<f64> {
    let cells = view.cells(INSTRUCTIONS);
    let cell = cells
        .iter()
        .find(|cell| cell.params.text("cache").is_ok_and(|name| name == cache))?;
    view.middle(INSTRUCTIONS, cell, "instructions")
}

/// Every goal, met or not.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    for blocks in SIZES {
        let group = hit_group(blocks);
        let Some(ours) = find(view, &group, OURS, None) else {
            continue;
        };
        let peer = best(view, &group, "ns_per_hit");
        goals.push(Bound::AtMost(0.8).goal(
            format!("a hit among {blocks} blocks"),
            peer.map_or("best peer", |peer| &peer.contestant),
            peer.and_then(|peer| view.ratio(&group, ours, peer, "ns_per_hit")),
            None,
            match peer {
                Some(_) => "",
                None => "no peer ran; build with the feature peers",
            },
        ));
    }
    let scales = scaling(view, OURS);
    let note = if scales.is_some() {
        ""
    } else {
        "group threads did not run"
    };
    goals.push(Bound::AtLeast(1.8).goal(
        "hits of two threads, rate over the rate of one",
        "perfect scaling is 2",
        scales,
        None,
        note,
    ));
    let bytes = find(view, MEMORY, OURS, None)
        .and_then(|cell| view.estimate(MEMORY, cell, "bytes_per_block"));
    let note = if bytes.is_some() {
        ""
    } else {
        "group memory did not run"
    };
    goals.push(
        Bound::AtMost(32.0)
            .goal(
                "bytes for each cached page, ghosts included",
                "",
                bytes,
                None,
                note,
            )
            .in_unit("bytes"),
    );
    if let Some(count) = instructions(view, OURS) {
        let floor = instructions(view, "loop").unwrap_or(0.0);
        let what = "instructions of a hit, without the loop";
        let goal = Bound::AtMost(45.0).counted(view, what, "", count - floor);
        goals.push(goal.in_unit("instructions"));
    }
    goals
}
