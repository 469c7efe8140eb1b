//! Each goal is a ratio from one interleaved run, with the memory that both sides hold. The worst of its cells stands for all.

use super::jobs::*;
use super::ring::SLOTS;
use crate::contestants::supply::page_size;
use crate::frame::words::{self, Bound, noted, with_absent};
use crate::frame::{Results, each, goal, median_of};
use crate::model::Goal;

/// Seconds of the goal without growth.
const TEN_MINUTES: f64 = 600.0;

const BEST: &str = "the best peer";

/// Every goal, met or not.
pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    // Neighbours with the same goal are cells of it.
    let jobs = JOBS.chunk_by(|a, b| a.goal == b.goal);
    let mut goals: Vec<Goal> = jobs.flat_map(|jobs| of_jobs(results, jobs)).collect();
    goals.push(growth(results));
    goals.extend(with_threads(results));
    // A handle is its owner's: what it holds follows the handles, as the table says.
    goals.push(bounded(results));
    goals.extend(instructions(results));
    goals
}

/// The pool against the best peer and against the floor.
fn of_jobs(results: &Results<'_>, jobs: &[Job]) -> Vec<Goal> {
    let Some(first) = jobs.first() else {
        return Vec::new();
    };
    let (what, bound) = first.goal;
    let cells = |names: &'static [&'static str]| {
        let of = move |job| names.iter().map(move |name| (job, *name));
        jobs.iter().flat_map(of)
    };
    let called = |job: &Job, name: &str| format!("{name} in {}", job.group);
    let peers = cells(&OURS).map(|(job, name)| {
        let ours = results.find(job.group, name, &[]);
        let peer = best_peer(results, job.group);
        let what = format!("{what}, against {BEST}");
        let best = goal(bound, what, ours, peer, BEST, COST);
        let ran = |peer: &str| results.find(job.group, peer, &[]).is_some();
        let best = with_absent(best, &PEERS, ran);
        let note = best.measured.and_then(|_| zeroing(results, job.group));
        (called(job, name), noted(best, &note.unwrap_or_default()))
    });
    let floor = first.floor.and_then(|(floor, bound, names)| {
        let goals = cells(names).map(|(job, name)| {
            let find = |name| results.find(job.group, name, &[]);
            let what = format!("{what}, against {floor}");
            let goal = goal(bound, what, find(name), find(floor), floor, COST);
            (called(job, name), goal)
        });
        each(bound, goals)
    });
    each(bound, peers).into_iter().chain(floor).collect()
}

/// Says so where the goal lies below what zeroing alone costs on this machine.
fn zeroing(results: &Results<'_>, group: &str) -> Option<String> {
    let memset = results.find(group, "memset", &[])?;
    let share = memset.ratio(&best_peer(results, group)?, COST)?;
    let share = (share.value > 0.4).then(|| words::ratio(&share))?;
    Some(format!(
        "filling the warm page by memset alone is {share} of this peer here"
    ))
}

/// No growth: extrapolated to ten minutes from the long run. What a moment gained says nothing of that: the kernel counts
/// resident pages by CPU in batches of 64, which over a few seconds is a larger slope than the goal allows.
fn growth(results: &Results<'_>) -> Goal {
    // What the ring holds may be on its way or not at the moments that are compared.
    let bound = Bound::AtMost((SLOTS * page_size()) as f64);
    let what = "memory gained in ten minutes of handing over";
    let against = "the pages that may be on their way";
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
fn with_threads(results: &Results<'_>) -> impl Iterator<Item = Goal> {
    // Two that both scale perfectly differ by noise on both sides of 1, so 3 % of it is given away.
    let (rate, scale) = (Bound::AtLeast(1.0), Bound::AtLeast(0.97));
    let (mut rates, mut scales) = (Vec::new(), Vec::new());
    for threads in &THREADS[1..] {
        let find = |name: &str| results.find(THREADED, name, &[("threads", *threads)]);
        let named = |goal| with_absent(goal, &PEERS, |peer| find(peer).is_some());
        let peer = fastest(results, *threads);
        for name in OURS {
            let cell = format!("{name} with {threads} threads");
            let what = format!("pairs a second, 2 to 64 threads, to {BEST}");
            let goal = goal(rate, what, find(name), peer, BEST, RATE);
            rates.push((cell.clone(), named(goal)));
            let Some((ours, peer)) = find(name).zip(peer) else {
                continue;
            };
            // How far the machine itself scales: a thread's own array of pages shares nothing.
            let bare = median_of(&scaling(results, "array-stack", *threads));
            let note = bare.map_or_else(String::new, |bare| {
                let times = bare.value;
                format!("a bare stack of each thread's own scales {times:.2} times")
            });
            let goal = scale.goal(
                format!("scaling to 2 to 64 threads, against {BEST}"),
                format!("the same of {}", peer.name()),
                scaling_of(results, name, peer.name(), *threads),
                ours.held(&peer),
                note,
            );
            scales.push((cell, named(goal)));
        }
    }
    each(rate, rates).into_iter().chain(each(scale, scales))
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
        format!("instructions of a warm pair: pool-handle ({ours:.1})"),
        format!("array-stack ({floor:.1})"),
        ours / floor.max(1.0),
    ))
}
