//! Each goal is a ratio from one interleaved run, with the memory that both sides hold.

use super::jobs::*;
use super::ring::SLOTS;
use crate::contestants::supply::page_size;
use crate::frame::words::{self, Bound, noted, with_absent};
use crate::frame::{Results, goal, median_of, ratio_of};
use crate::model::Goal;

/// Seconds of the goal without growth.
const TEN_MINUTES: f64 = 600.0;

/// Every goal, met or not. Each is a ratio from one interleaved run, with the memory that both sides hold.
pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    for job in &JOBS {
        for name in OURS {
            let ours = || results.find(job.group, name, &[]);
            let peer = best_peer(results, job.group);
            let (what, bound) = job.goal;
            let what = format!("{what}: {name}");
            let best = goal(bound, what.as_str(), ours(), peer, "best peer", COST);
            let ran = |peer: &str| results.find(job.group, peer, &[]).is_some();
            let best = with_absent(best, &PEERS, ran);
            let note = match best.measured {
                Some(_) => zeroing(results, job.group),
                None => String::new(),
            };
            goals.push(noted(best, &note));
            if let Some((floor, bound, names)) = job.floor
                && names.contains(&name)
            {
                let theirs = results.find(job.group, floor, &[]);
                goals.push(goal(bound, what, ours(), theirs, floor, COST));
            }
        }
    }
    goals.push(growth(results));
    for threads in &THREADS[1..] {
        for name in OURS {
            goals.extend(with_threads(results, name, *threads));
        }
    }
    // A handle is its owner's: what it holds follows the handles, as the table says.
    goals.push(bounded(results));
    goals.extend(instructions(results));
    goals
}

/// Says so where the goal lies below what zeroing alone costs on this machine.
fn zeroing(results: &Results<'_>, group: &str) -> String {
    let memset = results.find(group, "memset", &[]);
    let peers = memset.zip(best_peer(results, group));
    match peers.and_then(|(memset, peer)| memset.ratio(&peer, COST)) {
        Some(r) if r.value > 0.4 => format!(
            "filling the warm page by memset alone is {} of this peer here",
            words::ratio(&r)
        ),
        _ => String::new(),
    }
}

/// No growth: extrapolated to ten minutes from the long run. What a moment gained says nothing of that.
fn growth(results: &Results<'_>) -> Goal {
    // What the ring holds may be on its way or not at the moments that are compared.
    let bound = Bound::AtMost((SLOTS * page_size()) as f64);
    let what = "growth of memory while pages are handed over, bytes";
    let against = "the pages that may be on their way, over ten minutes";
    let goal = match results.find(GROWTH, "pool", &[]) {
        Some(pool) => {
            let mut grown = pool.by_round("growth_bytes_per_s");
            grown.values_mut().for_each(|slope| *slope *= TEN_MINUTES);
            let note = "extrapolated from the slope of each round";
            bound.goal(what, against, median_of(&grown), None, note)
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
fn with_threads(results: &Results<'_>, name: &str, threads: i64) -> Vec<Goal> {
    let what = format!("{threads} threads: {name}");
    let find = |name: &str| results.find(THREADED, name, &[("threads", threads)]);
    let (ours, peer) = (find(name), fastest(results, threads));
    let rate = Bound::AtLeast(1.0);
    let rate_of = format!("{what}, pairs per second");
    let mut goals = vec![goal(rate, rate_of, ours, peer, "best peer", RATE)];
    if let Some((ours, peer)) = ours.zip(peer) {
        // How far the machine itself scales: a thread's own array of pages shares nothing.
        let note = median_of(&scaling(results, "array-stack", threads)).map(|machine| {
            let times = machine.value;
            format!("a bare stack of each thread's own scales {times:.2} times")
        });
        let scale = |name: &str| scaling(results, name, threads);
        // Two that both scale perfectly differ by noise on both sides of 1, so 3 % of it is given away.
        goals.push(Bound::AtLeast(0.97).goal(
            format!("{what}, rate over the rate of one thread"),
            format!("the same of {}", peer.name()),
            ratio_of(&scale(name), &scale(peer.name())),
            ours.held(&peer),
            note.unwrap_or_default(),
        ));
    }
    let named = |goal| with_absent(goal, &PEERS, |peer| find(peer).is_some());
    goals.into_iter().map(named).collect()
}

/// What is held must follow the CPUs: a thread may add the page in its hand and no more.
fn bounded(results: &Results<'_>) -> Goal {
    let added = held_per_thread(results, "pool");
    let note = if added.is_empty() {
        "the pool did not run with 8 and 64 threads"
    } else {
        ""
    };
    let goal = Bound::AtMost(page_size() as f64).goal(
        format!("bytes held for each thread from {FEW} to {MANY}: pool"),
        "one page, which the thread may have in its hand",
        median_of(&added),
        None,
        note,
    );
    goal.in_unit("bytes")
}

/// A count, stated; its ceiling is checked where the library is built.
fn instructions(results: &Results<'_>) -> Option<Goal> {
    let of = |name: &str| {
        let mut cells = results.all(INSTRUCTIONS);
        let cell = cells.find(|at| at.text("supplier") == Some(name))?;
        cell.middle(INSTRUCTIONS)
    };
    let (ours, floor) = (of("pool-handle")?, of("array-stack")?);
    Some(Bound::AtMost(2.5).counted(
        &results.view,
        format!("instructions of one warm pair, loop included: pool-handle ({ours:.1})"),
        format!("array-stack ({floor:.1})"),
        ours / floor.max(1.0),
    ))
}
