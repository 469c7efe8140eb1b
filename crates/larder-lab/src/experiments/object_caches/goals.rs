//! Each goal is a ratio from one interleaved run.

use std::path::Path;

use super::contestants::{INSTRUCTIONS, LARDER_PRELOADED, LOOP};
use super::loops::COUNTED;
use super::plan::{
    CONSTRUCTED, DESTROY, ENDED, HELD, KEEPING, MILLION, OBJECT, PAIR, PEERS, RETURNED, SIZES,
    WHOLE_BURST, of_size,
};
use crate::contestants::heaps::PRELOADED;
use crate::contestants::heaps::found::{contestant_of, peers};
use crate::frame::words::{Bound, noted, short, with_absent};
use crate::frame::{At, Results, each, goal};
use crate::model::Goal;

/// Most instructions of a pair with a handle.
const MOST: f64 = 14.0;

/// Every goal, met or not.
pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    let at_64 = [
        ("heap", 0.55),
        ("object-handle", 0.55),
        ("object-cache", 0.7),
    ];
    let at_64 = at_64.map(|(name, most)| pair(results, 64, name, most));
    let global = SIZES.map(|bytes| pair(results, bytes, "global", 0.95));
    let mut all = [&at_64[..], &global].concat();
    all.extend(KEEPING.map(|name| constructed(results, name)));
    all.extend(SIZES.map(|bytes| preloaded(results, bytes)));
    all.push(destroyed(results));
    all.push(returned(results));
    let counted = ["heap", "object-handle"].into_iter();
    all.extend(counted.filter_map(|name| instructions(results, name)));
    all
}

fn pair(results: &Results<'_>, bytes: i64, ours: &str, most: f64) -> Goal {
    let what = format!("a block of {bytes} bytes, there and back: {ours}");
    against_best(results, &of_size("pair", bytes), PAIR, ours, most, what)
}

fn against_best(
    results: &Results<'_>,
    group: &str,
    metric: &str,
    ours: &str,
    most: f64,
    what: String,
) -> Goal {
    let own = results.find(group, ours, &[]);
    let peer = results.best(group, &PEERS, &[], metric);
    let goal = goal(Bound::AtMost(most), what, own, peer, "best peer", metric);
    if own.and(peer).is_none() {
        return goal;
    }
    let ran = |name: &str| results.find(group, name, &[]).is_some();
    with_absent(goal, &PEERS, ran)
}

fn constructed(results: &Results<'_>, ours: &str) -> Goal {
    let what = format!("an object with a constructor of 100 ns: {ours}");
    let goal = against_best(results, CONSTRUCTED, OBJECT, ours, 0.1, what);
    let own = results.find(CONSTRUCTED, ours, &[]);
    let alone = own.and_then(|at| at.middle("constructor_ns"));
    match alone.filter(|_| goal.measured.is_some()) {
        Some(ns) => noted(
            goal,
            &format!("the constructor alone takes {} ns here", short(ns)),
        ),
        None => goal,
    }
}

/// The fastest of the mallocs that were preloaded, and of the C library's own.
pub(super) fn best_preloaded<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
) -> Option<At<'r, 'a>> {
    let ranked = results.ranked(group, PAIR).into_iter();
    ranked
        .into_iter()
        .find(|at| ["malloc", PRELOADED].contains(&at.name()))
}

/// A malloc in a sentence.
pub(super) fn malloc_name<'a>(at: &At<'_, 'a>) -> &'a str {
    match at.text("library") {
        Some(library) => library.rsplit('/').next().unwrap_or(library),
        None if at.name() == "malloc" => "the C library's malloc",
        None => at.name(),
    }
}

fn preloaded(results: &Results<'_>, bytes: i64) -> Goal {
    let group = of_size("preloaded", bytes);
    let bound = Bound::AtMost(0.95);
    let what = format!("a block of {bytes} bytes, there and back: malloc, preloaded");
    let against = "best preloaded peer";
    let Some(own) = results.find(&group, LARDER_PRELOADED, &[]) else {
        let why = "liblarder_malloc.so did not run; build it with `cargo build --release -p larder-malloc`";
        return bound.goal(what, against, None, None, why);
    };
    let peer = best_preloaded(results, &group);
    let mut goal = goal(bound, what, Some(own), peer, against, PAIR);
    let Some(peer) = peer else {
        return goal;
    };
    malloc_name(&peer).clone_into(&mut goal.against);
    let libraries = results
        .of(&group, PRELOADED)
        .filter_map(|at| at.text("library"));
    let ran: Vec<&str> = libraries
        .map(|path| contestant_of(Path::new(path)))
        .collect();
    with_absent(goal, &peers(), |name| ran.contains(&name))
}

/// The private heap of the goal's size, destroyed whole and freed one by one.
pub(super) fn million<'r, 'a>(results: &'r Results<'a>) -> [Option<At<'r, 'a>>; 2] {
    let size = [("classes", MILLION.0), ("objects", MILLION.1)];
    ["private-heap", "private-freed"].map(|name| results.find(DESTROY, name, &size))
}

fn destroyed(results: &Results<'_>) -> Goal {
    let (classes, objects) = MILLION;
    let what = format!("a private heap of {objects} objects in {classes} classes: destroyed whole");
    let [whole, freed] = million(results);
    let against = "freed one by one";
    let goal = goal(Bound::AtMost(0.02), what, whole, freed, against, ENDED);
    Goal {
        against: against.to_owned(),
        ..goal
    }
}

/// What is back of a burst, whoever returns it: the thread where no calls are made, and calls where it is off.
fn returned(results: &Results<'_>) -> Goal {
    let (mb, interval) = WHOLE_BURST;
    let seconds = interval * i64::from(super::held::INTERVALS) / 1000;
    let what = format!("memory of a burst of {mb} MiB that is returned after {seconds} s");
    let bound = Bound::AtLeast(0.8);
    let size = [("mb", mb), ("interval_ms", interval)];
    let burst = |name: &'static str, calls: &str, how: &str| {
        let mut cells = results.of(HELD, name);
        let cell = cells.find(|at| {
            let whole = size
                .iter()
                .all(|(factor, value)| at.int(factor) == Some(*value));
            whole && at.text("calls") == Some(calls)
        })?;
        let goal = bound.goal(what.clone(), "the burst", cell.estimate(RETURNED), None, "");
        Some((format!("{name}, {how}"), goal.in_unit("")))
    };
    let cells = ["heap", "global"].into_iter().flat_map(|name| {
        let ways = [
            ("no", "no calls are made"),
            ("yes", "calls are made, no thread"),
        ];
        ways.map(|(calls, how)| burst(name, calls, how))
    });
    each(bound, cells.flatten()).unwrap_or_else(|| {
        let command = "object-caches --full --group held";
        bound.needs(
            &what,
            "the burst",
            &format!("{mb} MiB and {seconds} s"),
            command,
        )
    })
}

/// Instructions of an allocator's pair, the loop included.
pub(super) fn counted(results: &Results<'_>, allocator: &str) -> Option<f64> {
    let mut cells = results.all(INSTRUCTIONS);
    let cell = cells.find(|at| at.text("allocator") == Some(allocator))?;
    cell.middle(INSTRUCTIONS)
}

/// What was counted against what a handle's pair may take.
fn instructions(results: &Results<'_>, name: &str) -> Option<Goal> {
    // Start and end of a process differ by some hundredths of a pair's.
    let value = (10.0 * (counted(results, name)? - counted(results, LOOP)?)).round() / 10.0;
    let what = format!("instructions of a block of {COUNTED} bytes, there and back: {name}");
    let against = "the loop alone, taken off";
    let goal = Bound::AtMost(MOST).counted(&results.view, what, against, value);
    Some(goal.in_unit("instructions"))
}
