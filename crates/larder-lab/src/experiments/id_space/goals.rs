//! Each goal is a ratio from one interleaved run, with the memory that both sides hold. Where many cells must reach the same,
//! the worst of them stands for all.
//!
//! What two threads do over what one does is held against the same of the empty loop, in the same rounds, since a machine that
//! others use does not scale by two: 1.9 of 2 is 95 % of it. It is looked at by CPU time, where a CPU that another program
//! took counts for nothing and neither does sleeping, and by the clock on the wall, where both count.

use std::collections::BTreeMap;

use super::plan::{
    BITS, CREATE, CYCLIC, DISTANCE, EPOCHS, FEW, FLOOR, HUGE, LARGE, RESTING, SHARED, SMALL,
    SMALL_LIVES, SPARSE, SPARSE_PEERS, SWEEPS, Sweep, THREAD_LIVES, THREADED, YARDSTICK,
};
use super::rows::{
    COST, Clock, found, of_yardstick, percent, place, rests, scaling, share, size, spread, stated,
};
use crate::frame::words::{Bound, exact, ratio, with_absent};
use crate::frame::{Results, each, goal, median_of, not_measured};
use crate::model::Goal;
use crate::stats::Estimate;

/// 1.9 of 2.
const SHARE: f64 = 0.95;

/// Every goal, met or not.
pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    let swept = |sweep: &'static Sweep| {
        let goals = sweep.goals.iter();
        goals.map(move |(most, peers)| swept(results, sweep, *most, peers))
    };
    let mut goals: Vec<Goal> = SWEEPS.iter().flat_map(swept).collect();
    let all = SMALL_LIVES.len();
    let what = format!("cyclic, worst of {all} occupancies of {SMALL}");
    let flat = spread(results, CYCLIC, "ids");
    let bound = Bound::AtMost(3.0);
    goals.push(judged(CYCLIC, bound, &what, ("its best one", "x"), flat));
    goals.extend(sparse(results));
    goals.extend(bits(results));
    goals.extend(SHARED.iter().flat_map(|ours| scales(results, ours)));
    goals.push(keeps(results));
    goals.extend(create(results));
    goals.extend(RESTING.iter().map(|rule| distance(results, rule)));
    goals
}

/// A goal on one number.
fn judged(
    group: &str,
    bound: Bound,
    what: &str,
    (against, unit): (&str, &str),
    measured: Option<Estimate>,
) -> Goal {
    let note = match measured {
        Some(_) => String::new(),
        None => lacking(group),
    };
    let goal = bound.goal(what, against, measured, None, note);
    goal.in_unit(unit)
}

fn lacking(group: &str) -> String {
    format!("group {group} did not run with what this needs, or in fewer than 6 rounds")
}

/// A goal on one number of each cell, with a note: the worst cell stands for all.
fn worst(
    group: &str,
    bound: Bound,
    what: &str,
    (against, unit): (&str, &str),
    cells: impl IntoIterator<Item = (String, Estimate, String)>,
) -> Goal {
    let goal = |(cell, measured, note)| {
        let goal = bound.goal(what, against, Some(measured), None, note);
        (cell, goal.in_unit(unit))
    };
    let none = || not_measured(bound, what, against, lacking(group));
    each(bound, cells.into_iter().map(goal)).unwrap_or_else(none)
}

/// The ratio to the best of the peers at each occupancy.
fn swept(results: &Results<'_>, sweep: &Sweep, most: f64, peers: &[&str]) -> Goal {
    let (group, bound, all) = (sweep.group, Bound::AtMost(most), sweep.peers());
    let peers = if peers.is_empty() { &all } else { peers };
    let beside = |&live: &i64| {
        let factors = [("live", live)];
        let ours = results.find(group, "ids", &factors)?;
        Some((live, ours, results.best(group, peers, &factors, COST)?))
    };
    let cells: Vec<_> = sweep.lives.iter().filter_map(beside).collect();
    let (rule, n, count) = (sweep.called()[0], cells.len(), size(sweep.count));
    let what = format!("{rule}, worst of {n} occupancies of {count}");
    let goals = cells.into_iter().map(|(live, ours, peer)| {
        let goal = goal(bound, &what, Some(ours), Some(peer), "", COST);
        (percent(live, sweep.count), goal)
    });
    match each(bound, goals) {
        Some(goal) => with_absent(goal, peers, |p| results.of(group, p).next().is_some()),
        None => {
            let what = format!("{rule}, every occupancy of {count}");
            not_measured(bound, what, &peers.join(", "), lacking(group))
        }
    }
}

fn sparse(results: &Results<'_>) -> [Goal; 4] {
    let ids = |live| results.find(SPARSE, "ids", &[("live", live)]);
    let cold = |live| {
        let peer = results.best(SPARSE, &SPARSE_PEERS, &[("live", live)], COST);
        let what = format!("cyclic, cold, {}", share(live, HUGE));
        goal(Bound::AtMost(0.1), what, ids(live), peer, "roaring", COST)
    };
    let bytes = |what, live, per: f64, most: f64, against| {
        let held = ids(live).map(|at| at.by_round("held_bytes"));
        let held = held.unwrap_or_default().into_iter();
        let measured = median_of(&held.map(|(round, held)| (round, held / per)).collect());
        let what = format!("{what}, {}", share(live, HUGE));
        let bound = Bound::AtMost(most);
        judged(SPARSE, bound, &what, (against, "bytes"), measured)
    };
    let each = "bytes for each taken identifier";
    [
        cold(FEW),
        cold(HUGE - FEW),
        bytes("bytes held", HUGE - FEW, 1.0, 4e6, "4 MB"),
        bytes(each, FEW, FEW as f64, 16.0, "two words"),
    ]
}

fn bits(results: &Results<'_>) -> [Goal; 2] {
    let of = |contestant, rule| {
        let mut cells = results.of(BITS, contestant);
        let cell = cells.find(|at| at.text("rule") == Some(rule) && at.int("count") == Some(LARGE));
        cell?.middle("bits_per_id").filter(|bits| bits.is_finite())
    };
    let pidmap = of("pidmap", CYCLIC).map(|bits| format!("; pidmap has {bits:.3}"));
    let against = format!("one bit{}", pidmap.unwrap_or_default());
    [(CYCLIC, 1.02), (EPOCHS, 2.05)].map(|(rule, most)| {
        let half = share(LARGE / 2, LARGE);
        let what = format!("bits for each identifier, {rule}, {half}");
        let (bound, measured) = (Bound::AtMost(most), of("ids", rule).map(exact));
        judged(BITS, bound, &what, (&against, ""), measured)
    })
}

/// Scaling by both clocks, and the time of a pair, at the worse occupancy each.
fn scales(results: &Results<'_>, ours: &str) -> [Goal; 3] {
    let scaling = |clock, called| {
        let what = format!("2 threads, {ours}: {called}, two threads over one");
        let cells = THREAD_LIVES.into_iter().filter_map(|live| {
            let scale = |name| median_of(&scaling(results, name, live, clock));
            let (here, most) = (ratio(&scale(ours)?), ratio(&scale(YARDSTICK)?));
            let note = format!("{here} here, the empty loop {most}");
            let measured = of_yardstick(results, ours, live, clock)?;
            Some((share(live, SMALL), measured, note))
        });
        let against = ("the same of an empty loop", "x");
        worst(THREADED, Bound::AtLeast(SHARE), &what, against, cells)
    };
    let costs = THREAD_LIVES.into_iter().filter_map(|live| {
        let two = [("threads", 2), ("live", live)];
        let at = results.find(THREADED, ours, &two)?;
        let floor = results.find(THREADED, FLOOR, &two);
        let floor = floor.and_then(|floor| at.ratio(&floor, COST));
        let note = floor.map(|f| format!("{} of a bare array of its own", ratio(&f)));
        let measured = at.estimate("cpu_ns_per_pair")?;
        Some((share(live, SMALL), measured, note.unwrap_or_default()))
    });
    let what = format!("2 threads, {ours}: ns of CPU time for a pair of each");
    let bound = Bound::AtMost(10.0);
    [
        scaling(Clock::Cpu, "pairs per CPU second"),
        scaling(Clock::Wall, "pairs per second"),
        worst(THREADED, bound, &what, ("10 ns", "ns"), costs),
    ]
}

/// Whether any of ours lost an identifier or refused one.
fn keeps(results: &Results<'_>) -> Goal {
    let cells = results.all(THREADED);
    let cells = cells.filter(|at| SHARED.contains(&at.name()));
    let wrong = cells.flat_map(|at| ["false_full", "lost_ids"].map(|metric| at.by_round(metric)));
    let most = wrong.flat_map(BTreeMap::into_values).reduce(f64::max);
    let measured = most.filter(|most| most.is_finite()).map(exact);
    let ours = SHARED.join(", ");
    let what = format!("2 threads, {ours}: identifiers lost, or 'full' said too early");
    judged(THREADED, Bound::AtMost(0.0), &what, ("none", ""), measured)
}

fn create(results: &Results<'_>) -> [Goal; 2] {
    [(0, ""), (1, " and take the first")].map(|(first, more)| {
        let what = format!("ns to make a space of a million{more}");
        let ours = ["ids", "id-space", "id-space-any"].into_iter();
        let cells = ours.filter_map(|ours| {
            let at = results.find(CREATE, ours, &[("first", first)])?;
            let measured = at.estimate("ns_per_space")?;
            Some((ours.to_owned(), measured, String::new()))
        });
        let bound = Bound::AtMost(1000.0);
        worst(CREATE, bound, &what, ("a microsecond", "ns"), cells)
    })
}

/// What a rule states, in allocations or in ticks of its clock. A violated promise is a missed goal.
fn distance(results: &Results<'_>, rule: &str) -> Goal {
    let cells = rests(results).into_iter().filter_map(|at| {
        let (least, found) = (stated(&at)?, found(&at)?);
        let cell = (
            place(&at),
            exact(found / least),
            format!("{found} of {least}"),
        );
        (at.text("rule") == Some(rule)).then_some(cell)
    });
    let cells: Vec<_> = cells.collect();
    let what = match cells.len() {
        0 => format!("fewest until reuse, {rule}"),
        n => format!("fewest until reuse, {rule}, worst of {n} cells"),
    };
    let bound = Bound::AtLeast(1.0);
    worst(DISTANCE, bound, &what, ("what it states", "x"), cells)
}
