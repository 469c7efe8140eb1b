//! Each goal is a ratio from one interleaved run, with the memory that both sides hold.

use crate::contestants::supply::page_size;
use crate::frame::words::{self, Bound, noted, with_absent};
use crate::measure::RunView;
use crate::model::Goal;

use super::plan::{
    DEEP, GROWTH, HANDOVER, INSTRUCTIONS, OURS, PAIR, PEERS, THREADED, ZEROED_DEPTHS, zeroed_group,
};
use super::ring::SLOTS;
use super::rows::{COST, RATE, best, find, held, held_per_thread, median_of, ratio_of, scaling};

/// Seconds of the goal without growth.
const TEN_MINUTES: f64 = 600.0;

/// Every goal, met or not.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    for ours in OURS {
        goals.push(against_best(
            view,
            PAIR,
            ours,
            Bound::AtMost(0.7),
            "warm get, write, put",
        ));
    }
    goals.push(against(
        view,
        PAIR,
        "pool-handle",
        "array-stack",
        Bound::AtMost(1.5),
        "warm get, write, put",
    ));
    for ours in OURS {
        goals.push(against_best(
            view,
            DEEP,
            ours,
            Bound::AtMost(0.4),
            "256 pages deep, per page",
        ));
    }
    for depth in ZEROED_DEPTHS {
        let group = zeroed_group(depth);
        let what = format!("zeroed page, warm, {depth} deep");
        for ours in OURS {
            let goal = against_best(view, &group, ours, Bound::AtMost(0.5), &what);
            let floor = match goal.measured {
                Some(_) => zeroing_floor(view, &group),
                None => String::new(),
            };
            goals.push(noted(goal, &floor));
            goals.push(against(
                view,
                &group,
                ours,
                "memset",
                Bound::AtMost(1.3),
                &what,
            ));
        }
    }
    for ours in OURS {
        goals.push(against_best(
            view,
            HANDOVER,
            ours,
            Bound::Below(1.0),
            "pages handed from thread to thread",
        ));
    }
    goals.push(growth(view));
    for threads in [2, 8, 64] {
        for ours in OURS {
            goals.extend(threaded(view, ours, threads));
        }
    }
    // A handle is its owner's: what it holds follows the handles, as the table says.
    goals.push(bounded(view, "pool"));
    goals.extend(instructions(view));
    goals
}

/// Says so where the goal lies below what zeroing alone costs on this machine.
fn zeroing_floor(view: &RunView<'_>, group: &str) -> String {
    let ratio = find(view, group, "memset", None)
        .zip(best(view, group, &PEERS, None, COST, false))
        .and_then(|(memset, peer)| view.ratio(group, memset, peer, COST));
    match ratio {
        Some(r) if r.value > 0.4 => format!(
            "filling the warm page by memset alone is {} of this peer here",
            words::ratio(&r)
        ),
        _ => String::new(),
    }
}

fn missing(group: &str, what: &str) -> String {
    format!("{what} did not run in group {group}")
}

fn no_peer(group: &str) -> String {
    format!("no peer ran in group {group}")
}

fn against_best(view: &RunView<'_>, group: &str, ours: &str, bound: Bound, what: &str) -> Goal {
    let Some(peer) = best(view, group, &PEERS, None, COST, false) else {
        let what = format!("{what}: {ours}");
        return bound.goal(what, "best peer", None, None, no_peer(group));
    };
    let goal = against(view, group, ours, &peer.contestant, bound, what);
    with_absent(goal, &PEERS, |peer| find(view, group, peer, None).is_some())
}

fn against(
    view: &RunView<'_>,
    group: &str,
    ours: &str,
    theirs: &str,
    bound: Bound,
    what: &str,
) -> Goal {
    let what = format!("{what}: {ours}");
    match (
        find(view, group, ours, None),
        find(view, group, theirs, None),
    ) {
        (Some(a), Some(b)) => bound.goal(
            what,
            theirs,
            view.ratio(group, a, b, COST),
            held(view, group, a, b),
            "",
        ),
        (None, _) => bound.goal(what, theirs, None, None, missing(group, ours)),
        (_, None) => bound.goal(what, theirs, None, None, missing(group, theirs)),
    }
}

/// No growth: extrapolated to ten minutes from the long run. What a moment gained says nothing of that.
fn growth(view: &RunView<'_>) -> Goal {
    // What the ring holds may be on its way or not at the moments that are compared.
    let bound = Bound::AtMost((SLOTS * page_size()) as f64);
    let what = "growth of memory while pages are handed over, bytes";
    let against = "the pages that may be on their way, over ten minutes";
    let goal = match find(view, GROWTH, "pool", None) {
        Some(cell) => {
            let slope = view
                .values(GROWTH, cell, "growth_bytes_per_s")
                .into_iter()
                .map(|(round, slope)| (round, slope * TEN_MINUTES))
                .collect();
            bound.goal(
                what,
                against,
                median_of(&slope),
                None,
                "extrapolated from the slope of each round",
            )
        }
        None => bound.needs(
            what,
            against,
            "ten minutes of handing pages over",
            &format!("page-pool --full --group {GROWTH}"),
        ),
    };
    goal.in_unit("bytes")
}

/// Rate and scaling against the peer that is fastest with as many threads.
fn threaded(view: &RunView<'_>, ours: &str, threads: i64) -> Vec<Goal> {
    let what = format!("{threads} threads: {ours}");
    let rate = Bound::AtLeast(1.0);
    // Two that both scale perfectly differ by noise on both sides of 1, so 3 % of it is given away.
    let scale = Bound::AtLeast(0.97);
    let peer = best(view, THREADED, &PEERS, Some(threads), RATE, true);
    let (Some(a), Some(b)) = (find(view, THREADED, ours, Some(threads)), peer) else {
        let note = match peer {
            Some(_) => missing(THREADED, ours),
            None => no_peer(THREADED),
        };
        return vec![scale.goal(what, "best peer's scaling", None, None, note)];
    };
    let held = held(view, THREADED, a, b);
    let goals = [
        rate.goal(
            format!("{what}, pairs per second"),
            b.contestant.clone(),
            view.ratio(THREADED, a, b, RATE),
            held,
            "",
        ),
        scale.goal(
            format!("{what}, rate over the rate of one thread"),
            format!("the same of {}", b.contestant),
            ratio_of(
                &scaling(view, ours, threads),
                &scaling(view, &b.contestant, threads),
            ),
            held,
            yardstick(view, threads),
        ),
    ];
    let ran = |peer: &str| find(view, THREADED, peer, Some(threads)).is_some();
    goals.map(|goal| with_absent(goal, &PEERS, ran)).to_vec()
}

/// How far the machine itself scales: a thread's own array of pages shares nothing with anybody.
fn yardstick(view: &RunView<'_>, threads: i64) -> String {
    median_of(&scaling(view, "array-stack", threads)).map_or_else(String::new, |scaling| {
        format!(
            "a bare stack of each thread's own scales {:.2} times",
            scaling.value
        )
    })
}

/// What is held must follow the CPUs: a thread may add the page in its hand and no more.
fn bounded(view: &RunView<'_>, ours: &str) -> Goal {
    let page = page_size() as f64;
    let by_round = held_per_thread(view, ours);
    let note = if by_round.is_empty() {
        missing(THREADED, ours)
    } else {
        String::new()
    };
    Bound::AtMost(page)
        .goal(
            format!("bytes held for each thread from 8 to 64: {ours}"),
            "one page, which the thread may have in its hand",
            median_of(&by_round),
            None,
            note,
        )
        .in_unit("bytes")
}

/// A count, stated; its ceiling is checked where the library is built.
fn instructions(view: &RunView<'_>) -> Option<Goal> {
    let cells = view.cells(INSTRUCTIONS);
    let of = |name: &str| {
        let cell = cells
            .iter()
            .find(|cell| cell.params.text("supplier").is_ok_and(|s| s == name))?;
        view.middle(INSTRUCTIONS, cell, "instructions")
    };
    let (ours, floor) = (of("pool-handle")?, of("array-stack")?);
    Some(Bound::AtMost(2.5).counted(
        view,
        format!("instructions of one warm pair, loop included: pool-handle ({ours:.1})"),
        format!("array-stack ({floor:.1})"),
        ours / floor.max(1.0),
    ))
}
