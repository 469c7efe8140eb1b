//! Each goal is a ratio from one interleaved run, with the memory that both sides hold. Where many cells must reach the same,
//! the worst of them stands for all.
//!
//! What two threads do over what one does is held against the same of the empty loop, in the same rounds, since a machine that
//! others use does not scale by two: 1.9 of 2 is 95 % of it. It is looked at by CPU time, where a CPU that another program
//! took counts for nothing and neither does sleeping, and by the clock on the wall, where both count.

use super::plan::{
    BITS, CREATE, CYCLIC, DISTANCE, EPOCHS, FEW, FLOOR, HUGE, LARGE, RESTING, SHARED, SMALL,
    SMALL_LIVES, SPARSE, SPARSE_PEERS, SWEEPS, Sweep, THREAD_LIVES, THREADED, Target, YARDSTICK,
};
use super::rows::{COST, Clock, of_yardstick, percent, rests, scaling, share, size, spread};
use crate::frame::words::{Bound, exact, ratio, with_absent};
use crate::frame::{At, Results, each, goal, median_of, not_measured};
use crate::model::Goal;
use crate::stats::Estimate;

/// 1.9 of 2.
const SHARE: f64 = 0.95;

/// Every goal, met or not.
pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    let sweeps = SWEEPS.iter();
    let mut goals: Vec<Goal> = sweeps
        .flat_map(|sweep| {
            sweep
                .goals
                .iter()
                .map(|target| swept(results, sweep, target))
        })
        .collect();
    let what = format!(
        "cyclic, worst of {} occupancies of {SMALL}",
        SMALL_LIVES.len()
    );
    let flat = spread(results, CYCLIC, "ids");
    goals.push(judged(
        CYCLIC,
        Bound::AtMost(3.0),
        what,
        "its best one",
        flat,
        "x",
    ));
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
    what: String,
    against: &str,
    measured: Option<Estimate>,
    unit: &str,
) -> Goal {
    match measured {
        None => lacking(bound, what, against, group),
        measured => bound.goal(what, against, measured, None, ""),
    }
    .in_unit(unit)
}

fn lacking(bound: Bound, what: String, against: &str, group: &str) -> Goal {
    let why = format!("group {group} did not run with what this needs, or in fewer than 6 rounds");
    not_measured(bound, what, against, why)
}

/// The ratio to the best of the peers at each occupancy.
fn swept(results: &Results<'_>, sweep: &Sweep, target: &Target) -> Goal {
    let Target {
        bound,
        called,
        peers,
    } = *target;
    let pairs: Vec<(i64, At<'_, '_>, At<'_, '_>)> = sweep
        .lives
        .iter()
        .filter_map(|live| {
            let factors = [("live", *live)];
            let ours = results.find(sweep.group, "ids", &factors)?;
            let peer = results.best(sweep.group, peers, &factors, COST)?;
            Some((*live, ours, peer))
        })
        .collect();
    let (cyclic, of) = (sweep.called, size(sweep.count));
    let what = format!("{cyclic}, worst of {} occupancies of {of}", pairs.len());
    let cells = pairs.iter().map(|(live, ours, peer)| {
        let goal = goal(bound, &what, Some(*ours), Some(*peer), called, COST);
        (percent(*live, sweep.count), goal)
    });
    match each(bound, cells) {
        Some(goal) => with_absent(goal, peers, |peer| {
            results.of(sweep.group, peer).next().is_some()
        }),
        None => lacking(
            bound,
            format!("{cyclic}, occupancies of {of}"),
            called,
            sweep.group,
        ),
    }
}

fn sparse(results: &Results<'_>) -> Vec<Goal> {
    let ids = |live| results.find(SPARSE, "ids", &[("live", live)]);
    let cold = |live| {
        let peer = results.best(SPARSE, &SPARSE_PEERS, &[("live", live)], COST);
        let what = format!("cyclic, cold, {}", share(live, HUGE));
        goal(Bound::AtMost(0.1), what, ids(live), peer, "roaring", COST)
    };
    let bytes = |live, most: f64, per: f64, what: &str, against: &str| {
        let held = ids(live).map(|at| at.by_round("held_bytes"));
        let held = held.unwrap_or_default().into_iter();
        let measured = median_of(&held.map(|(round, held)| (round, held / per)).collect());
        let what = format!("{what}, {}", share(live, HUGE));
        judged(
            SPARSE,
            Bound::AtMost(most),
            what,
            against,
            measured,
            "bytes",
        )
    };
    let each = "bytes for each taken identifier";
    vec![
        cold(FEW),
        cold(HUGE - FEW),
        bytes(HUGE - FEW, 4e6, 1.0, "bytes held", "4 MB"),
        bytes(FEW, 16.0, FEW as f64, each, "two words"),
    ]
}

fn bits(results: &Results<'_>) -> [Goal; 2] {
    let of = |contestant, rule| {
        let mut cells = results.of(BITS, contestant);
        let cell = cells.find(|at| at.text("rule") == Some(rule) && at.int("count") == Some(LARGE));
        cell?.middle("bits_per_id").filter(|bits| bits.is_finite())
    };
    let pidmap = of("pidmap", CYCLIC).map_or_else(String::new, |b| format!("; pidmap has {b:.3}"));
    [(CYCLIC, 1.02), (EPOCHS, 2.05)].map(|(rule, most)| {
        let what = format!(
            "bits for each identifier, {rule}, {}",
            share(LARGE / 2, LARGE)
        );
        let measured = of("ids", rule).map(exact);
        let against = format!("one bit{pidmap}");
        judged(BITS, Bound::AtMost(most), what, &against, measured, "")
    })
}

/// Scaling by both clocks, and the time of a pair, at the worse occupancy each.
fn scales(results: &Results<'_>, ours: &str) -> [Goal; 3] {
    let goal = |bound: Bound,
                what: &str,
                against: &str,
                unit,
                of: &dyn Fn(i64) -> Option<(Estimate, String)>| {
        let what = format!("2 threads, {ours}: {what}");
        let cells = THREAD_LIVES.iter().filter_map(|live| {
            let (measured, note) = of(*live)?;
            let goal = bound.goal(&what, against, Some(measured), None, note);
            Some((share(*live, SMALL), goal.in_unit(unit)))
        });
        each(bound, cells).unwrap_or_else(|| lacking(bound, what.clone(), against, THREADED))
    };
    let scaling = |clock, what: &str| {
        let of = |live| {
            let scale = |name| median_of(&scaling(results, name, live, clock));
            let (here, most) = (scale(ours)?, scale(YARDSTICK)?);
            let note = format!("{} here, the empty loop {}", ratio(&here), ratio(&most));
            Some((of_yardstick(results, ours, live, clock)?, note))
        };
        let what = format!("{what}, two threads over one");
        let bound = Bound::AtLeast(SHARE);
        goal(bound, &what, "the same of an empty loop", "x", &of)
    };
    let cost = |live| {
        let two = [("threads", 2), ("live", live)];
        let at = results.find(THREADED, ours, &two)?;
        let floor = results.find(THREADED, FLOOR, &two);
        let floor = floor.and_then(|floor| at.ratio(&floor, COST));
        let note = floor.map(|f| format!("{} of a bare array of its own", ratio(&f)));
        Some((at.estimate("cpu_ns_per_pair")?, note.unwrap_or_default()))
    };
    [
        scaling(Clock::Cpu, "pairs per CPU second"),
        scaling(Clock::Wall, "pairs per second"),
        goal(
            Bound::AtMost(10.0),
            "ns of CPU time for a pair of each",
            "10 ns",
            "ns",
            &cost,
        ),
    ]
}

/// Whether any of ours lost an identifier or refused one.
fn keeps(results: &Results<'_>) -> Goal {
    let cells = results
        .all(THREADED)
        .filter(|at| SHARED.contains(&at.name()));
    let wrong = cells.flat_map(|at| ["false_full", "lost_ids"].map(|metric| at.by_round(metric)));
    let most = wrong.flat_map(|of| of.into_values()).reduce(f64::max);
    let what = format!(
        "2 threads, {}: identifiers lost, or 'full' said too early",
        SHARED.join(", ")
    );
    let measured = most.filter(|most| most.is_finite()).map(exact);
    judged(THREADED, Bound::AtMost(0.0), what, "none", measured, "")
}

fn create(results: &Results<'_>) -> [Goal; 2] {
    let bound = Bound::AtMost(1000.0);
    let make = "ns to make a space of a million";
    [
        (0, make.to_owned()),
        (1, format!("{make} and take the first")),
    ]
    .map(|(first, what)| {
        let cells = ["ids", "id-space", "id-space-any"]
            .into_iter()
            .filter_map(|ours| {
                let at = results.find(CREATE, ours, &[("first", first)])?;
                let measured = at.estimate("ns_per_space");
                Some((
                    ours.to_owned(),
                    judged(CREATE, bound, what.clone(), "a microsecond", measured, "ns"),
                ))
            });
        each(bound, cells).unwrap_or_else(|| lacking(bound, what.clone(), "a microsecond", CREATE))
    })
}

/// What a rule states, in allocations or in ticks of its clock. A violated promise is a missed goal.
fn distance(results: &Results<'_>, rule: &str) -> Goal {
    let bound = Bound::AtLeast(1.0);
    let all = rests(results).into_iter().filter(|rest| rest.rule == rule);
    let stated: Vec<_> = all
        .filter_map(|rest| Some((rest.least?, rest.found?, rest)))
        .collect();
    let what = format!(
        "fewest until reuse, {rule}, worst of {} cells",
        stated.len()
    );
    let cells = stated.iter().map(|(least, found, rest)| {
        let share = exact(found / least);
        let goal = bound.goal(
            &what,
            "what it states",
            Some(share),
            None,
            format!("{found} of {least}"),
        );
        (rest.place(), goal)
    });
    let none = || {
        lacking(
            bound,
            format!("fewest until reuse, {rule}"),
            "what it states",
            DISTANCE,
        )
    };
    each(bound, cells).unwrap_or_else(none)
}
