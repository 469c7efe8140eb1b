//! Each goal is a ratio from one interleaved run.

use crate::frame::words::{Bound, short, with_absent};
use crate::measure::RunView;
use crate::model::Goal;

use super::plan::{CONSTRUCTED, KEEPING, PEERS, SIZES, pair_group};
use super::rows::{OBJECT, PAIR, best, find};

/// Every goal, met or not.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    let pair = pair_group(64);
    let what = "a block of 64 bytes, there and back";
    let mut goals: Vec<Goal> = [
        ("heap", 0.55),
        ("object-handle", 0.55),
        ("object-cache", 0.7),
    ]
    .into_iter()
    .map(|(ours, most)| against_best(view, &pair, PAIR, ours, Bound::AtMost(most), what))
    .collect();
    for bytes in SIZES {
        let what = format!("a block of {bytes} bytes, there and back");
        let group = pair_group(bytes);
        goals.push(against_best(
            view,
            &group,
            PAIR,
            "global",
            Bound::AtMost(0.95),
            &what,
        ));
    }
    for ours in KEEPING {
        let what = "an object with a constructor of 100 ns";
        let mut goal = against_best(view, CONSTRUCTED, OBJECT, ours, Bound::AtMost(0.1), what);
        if let Some(ns) = find(view, CONSTRUCTED, ours)
            .and_then(|cell| view.middle(CONSTRUCTED, cell, "constructor_ns"))
            .filter(|_| goal.measured.is_some())
        {
            let comma = if goal.note.is_empty() { "" } else { "; " };
            let note = goal.note;
            goal.note = format!(
                "the constructor alone takes {} ns here{comma}{note}",
                short(ns)
            );
        }
        goals.push(goal);
    }
    goals
}

fn against_best(
    view: &RunView<'_>,
    group: &str,
    metric: &str,
    ours: &str,
    bound: Bound,
    what: &str,
) -> Goal {
    let what = format!("{what}: {ours}");
    let missing = |what: &str| format!("{what} did not run in group {group}");
    let Some(peer) = best(view, group, &PEERS, metric) else {
        let why = format!("no peer ran in group {group}");
        return bound.goal(what, "best peer", None, None, why);
    };
    let theirs = peer.contestant.as_str();
    let Some(own) = find(view, group, ours) else {
        return bound.goal(what, theirs, None, None, missing(ours));
    };
    let held = |cell| view.middle(group, cell, "held_bytes");
    let both = held(own).zip(held(peer));
    let ratio = view.ratio(group, own, peer, metric);
    with_absent(bound.goal(what, theirs, ratio, both, ""), &PEERS, |peer| {
        find(view, group, peer).is_some()
    })
}
