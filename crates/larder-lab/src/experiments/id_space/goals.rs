//! Each goal is a ratio from one interleaved run, with the memory that both sides hold. Where many cells must reach the same bound,
//! the worst of them stands for all.
//!
//! The ratio of two threads to one is compared with that of the empty loop in the same rounds, since a shared machine does not scale
//! by two: 1.9 of 2 is 95 % of it. It is measured by CPU time, in which neither a CPU taken by another program nor sleep counts, and
//! by wall-clock time, in which both count.

use std::collections::BTreeMap;

use super::plan::{
    BITS, CREATE, CYCLIC, DISTANCE, EPOCHS, FEW, FIRST_FREED, FLOOR, HUGE, LARGE, LAST_FREED,
    LOWEST, ORDERED, SHARED, SMALL, SPARSE, SPARSE_PEERS, SWEEPS, THREAD_LIVES, THREADED,
    YARDSTICK,
};
use super::rows::{
    COST, CPU, Clock, WALL, of_yardstick, percent, place, rests, scaling, share, spread, stated,
};
use crate::frame::words::{Bound, exact, ratio, with_absent};
use crate::frame::{Results, each, goal, median_of};
use crate::model::Goal;
use crate::stats::Estimate;

/// How much of the cost of the best of some peers `ids` may have in some groups; without names it is the best of all.
pub(super) struct Target {
    what: &'static str,
    pub(super) groups: &'static [&'static str],
    most: f64,
    pub(super) peers: &'static [&'static str],
}

const NEXT: Target = Target {
    what: "next free id of 32768, however many are taken",
    groups: &[CYCLIC],
    most: 0.9,
    peers: &["pidmap"],
};

pub(super) const TARGETS: [Target; 5] = [
    NEXT,
    Target {
        most: 0.5,
        peers: &ORDERED,
        ..NEXT
    },
    Target {
        what: "lowest free id of 32768, however many are taken",
        groups: &[LOWEST],
        most: 0.7,
        peers: &["hibitset"],
    },
    Target {
        what: "id freed first, or last, of 32768, however many are taken",
        groups: &[FIRST_FREED, LAST_FREED],
        most: 1.3,
        peers: &["ring", "stack"],
    },
    Target {
        what: "next, or lowest, free id of 2^22, however many are taken",
        groups: &["cyclic-4m", "lowest-4m"],
        most: 0.8,
        peers: &[],
    },
];

/// Every goal, met or not.
pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    let mut goals: Vec<Goal> = TARGETS.iter().map(|t| against_peers(results, t)).collect();
    let what = "next free id of 32768: dearest occupancy";
    let flat = spread(results, CYCLIC, "ids");
    goals.push(one(
        CYCLIC,
        Bound::AtMost(3.0),
        what,
        ("the cheapest", "x"),
        flat,
    ));
    goals.extend(sparse(results));
    goals.extend(bits(results));
    goals.extend(threads(results));
    goals.push(create(results));
    goals.push(distance(results));
    goals
}

/// A goal whose group this run lacks.
fn lacking(group: &str, bound: Bound, what: &str, against: &str) -> Goal {
    let command = format!("id-space --group {group}");
    bound.needs(what, against, "6 rounds of its group", &command)
}

/// A goal on one number.
fn one(
    group: &str,
    bound: Bound,
    what: &str,
    (against, unit): (&str, &str),
    measured: Option<Estimate>,
) -> Goal {
    match measured {
        Some(_) => bound.goal(what, against, measured, None, "").in_unit(unit),
        None => lacking(group, bound, what, against),
    }
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
    let worst = each(bound, cells.into_iter().map(goal));
    worst.unwrap_or_else(|| lacking(group, bound, what, against))
}

/// The ratio to the best of the peers at each occupancy.
fn against_peers(results: &Results<'_>, target: &Target) -> Goal {
    let (bound, mut judges, mut cells) = (Bound::AtMost(target.most), Vec::new(), Vec::new());
    for sweep in SWEEPS.iter().filter(|s| target.groups.contains(&s.group)) {
        let mut peers = sweep.peers();
        peers.retain(|peer| target.peers.is_empty() || target.peers.contains(peer));
        for &live in sweep.lives {
            let factors = [("live", live)];
            let ours = results.find(sweep.group, "ids", &factors);
            let best = results.best(sweep.group, &peers, &factors, COST);
            if let (Some(_), Some(best)) = (ours, best) {
                let goal = goal(bound, target.what, ours, Some(best), "", COST);
                cells.push((
                    format!("{}, {}", sweep.rule, percent(live, sweep.count)),
                    goal,
                ));
            }
        }
        judges.extend(peers);
    }
    judges.sort_unstable();
    judges.dedup();
    let ran = |peer: &str| {
        target
            .groups
            .iter()
            .any(|g| results.of(g, peer).next().is_some())
    };
    match each(bound, cells) {
        Some(goal) => with_absent(goal, &judges, ran),
        None => lacking(target.groups[0], bound, target.what, &judges.join(", ")),
    }
}

fn sparse(results: &Results<'_>) -> [Goal; 3] {
    let ids = |live| results.find(SPARSE, "ids", &[("live", live)]);
    let (bound, what) = (
        Bound::AtMost(0.1),
        "next free id of 2^32, caches cold, few taken or few free",
    );
    let cold = [FEW, HUGE - FEW].into_iter().filter_map(|live| {
        let peer = results.best(SPARSE, &SPARSE_PEERS, &[("live", live)], COST)?;
        let goal = goal(bound, what, Some(ids(live)?), Some(peer), "", COST);
        Some((share(live, HUGE), goal))
    });
    let cold = each(bound, cold);
    let bytes = |what, live, per: f64, most: f64, against| {
        let held = ids(live).map(|at| at.by_round("held_bytes"));
        let held = held.unwrap_or_default().into_iter();
        let measured = median_of(&held.map(|(round, held)| (round, held / per)).collect());
        one(
            SPARSE,
            Bound::AtMost(most),
            what,
            (against, "bytes"),
            measured,
        )
    };
    let each_taken = "bytes for each taken id, 0.01 % of 2^32 taken";
    [
        cold.unwrap_or_else(|| lacking(SPARSE, bound, what, "roaring")),
        bytes(
            "bytes held, 99.99 % of 2^32 taken",
            HUGE - FEW,
            1.0,
            4e6,
            "4 MB",
        ),
        bytes(each_taken, FEW, FEW as f64, 16.0, "two words"),
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
        let what = format!("bits for each id, {rule}, {half} taken");
        let measured = of("ids", rule).map(exact);
        one(BITS, Bound::AtMost(most), &what, (&against, ""), measured)
    })
}

/// Two threads by both clocks and the time of a pair, the worst of the shared spaces and occupancies; and whether any space
/// lost an identifier or refused one.
fn threads(results: &Results<'_>) -> [Goal; 4] {
    let cases = || {
        SHARED
            .into_iter()
            .flat_map(|ours| THREAD_LIVES.map(|live| (ours, live)))
    };
    let called = |ours, live| format!("{ours}, {} taken", percent(live, SMALL));
    let scaled = |clock: Clock, what| {
        let cells = cases().filter_map(|(ours, live)| {
            let scale = |name| Some(ratio(&median_of(&scaling(results, name, live, clock))?));
            let note = format!(
                "{} here, the empty loop {}",
                scale(ours)?,
                scale(YARDSTICK)?
            );
            Some((
                called(ours, live),
                of_yardstick(results, ours, live, clock)?,
                note,
            ))
        });
        let against = ("the same of an empty loop", "x");
        // 1.9 of 2.
        worst(THREADED, Bound::AtLeast(0.95), what, against, cells)
    };
    let costs = cases().filter_map(|(ours, live)| {
        let two = [("threads", 2), ("live", live)];
        let at = results.find(THREADED, ours, &two)?;
        let floor = results.find(THREADED, FLOOR, &two);
        let floor = floor.and_then(|floor| at.ratio(&floor, COST));
        let note = floor.map(|f| format!("{} of a bare array of its own", ratio(&f)));
        let measured = at.estimate("cpu_ns_per_pair")?;
        Some((called(ours, live), measured, note.unwrap_or_default()))
    });
    let what = "2 threads, every IdSpace: CPU time of a free and an allocation";
    let costs = worst(THREADED, Bound::AtMost(10.0), what, ("10 ns", "ns"), costs);
    let cells = results
        .all(THREADED)
        .filter(|at| SHARED.contains(&at.name()));
    let wrong = cells.flat_map(|at| ["false_full", "lost_ids"].map(|metric| at.by_round(metric)));
    let most = wrong.flat_map(BTreeMap::into_values).reduce(f64::max);
    let measured = most.filter(|most| most.is_finite()).map(exact);
    let what = "2 threads, every IdSpace: ids lost, or 'full' said too early";
    [
        scaled(CPU, "2 threads over 1, every IdSpace: work by CPU time"),
        scaled(WALL, "2 threads over 1, every IdSpace: work by wall time"),
        costs,
        one(THREADED, Bound::AtMost(0.0), what, ("none", ""), measured),
    ]
}

fn create(results: &Results<'_>) -> Goal {
    let cells = results.all(CREATE).filter_map(|at| {
        let ours = ["ids", "id-space", "id-space-any"].contains(&at.name());
        let first = if at.int("first")? == 1 {
            " and its first id"
        } else {
            ""
        };
        let cell = format!("{}{first}", at.name());
        let measured = at.estimate("ns_per_space").filter(|_| ours)?;
        Some((cell, measured, String::new()))
    });
    let what = "making a space of 2^20 ids, and taking the first";
    worst(
        CREATE,
        Bound::AtMost(1000.0),
        what,
        ("a microsecond", "ns"),
        cells,
    )
}

/// What every rule states of the rest of an identifier. A violated promise is a missed goal.
fn distance(results: &Results<'_>) -> Goal {
    let cells = rests(results).into_iter().filter_map(|at| {
        let (least, found) = stated(&at)?;
        let note = format!("{found} of {least}");
        Some((place(&at), exact(found / least), note))
    });
    let what = "allocations until an id is reused, every rule that states them";
    worst(
        DISTANCE,
        Bound::AtLeast(1.0),
        what,
        ("what the rule states", "x"),
        cells,
    )
}
