//! Each goal is a ratio from one interleaved run; where several cells must reach it, it speaks of the worst.

use std::path::Path;

use super::contestants::{INSTRUCTIONS, LARDER_PRELOADED, LOOP};
use super::loops::COUNTED;
use super::plan::{
    CONSTRUCTED, DESTROY, ENDED, HELD, KEEPING, MILLION, OBJECT, PAIR, RETURNED, SIZE, SIZES,
    WHOLE_BURST, of_size,
};
use crate::contestants::heaps::PRELOADED;
use crate::contestants::heaps::found::{contestant_of, peers};
use crate::experiments::allocators::PEERS;
use crate::frame::words::{Bound, noted, short, with_absent};
use crate::frame::{At, Results, each, goal};
use crate::model::Goal;

/// Most instructions of a pair with a handle.
const MOST: f64 = 14.0;

/// Those that a thread has a handle of.
const HANDLES: [&str; 2] = ["heap", "object-handle"];

/// Every goal, met or not.
pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    let at_64 = of_size("pair", SIZE);
    let pair = |name: &str, most| {
        let what = format!(
            "a block of {SIZE} bytes: {}",
            match name {
                "object-cache" => "larder's object cache, from the CPU's magazines",
                _ => "larder's heap and object cache, by a handle",
            }
        );
        let bound = Bound::AtMost(most);
        (
            name.to_owned(),
            against_best(results, &at_64, PAIR, name, bound, &what),
        )
    };
    let handles = each(Bound::AtMost(0.55), HANDLES.map(|name| pair(name, 0.55)));
    let bound = Bound::AtMost(0.95);
    let global = each(
        bound,
        SIZES.map(|bytes| {
            let what = "a block of 16 to 8192 bytes: Rust's global allocator";
            let group = of_size("pair", bytes);
            let goal = against_best(results, &group, PAIR, "global", bound, what);
            (format!("{bytes} bytes"), goal)
        }),
    );
    let counted = HANDLES.into_iter();
    let counted = counted.filter_map(|name| Some((name.to_owned(), instructions(results, name)?)));
    let instructions = each(Bound::AtMost(MOST), counted);
    let always = [
        Some(pair("object-cache", 0.7).1),
        global,
        constructed(results),
        preloaded(results),
        Some(destroyed(results)),
        Some(returned(results)),
    ];
    let all = [handles].into_iter().chain(always).chain([instructions]);
    all.flatten().collect()
}

fn against_best(
    results: &Results<'_>,
    group: &str,
    metric: &str,
    ours: &str,
    bound: Bound,
    what: &str,
) -> Goal {
    let own = results.find(group, ours, &[]);
    let peer = results.best(group, &PEERS, &[], metric);
    let goal = goal(bound, what, own, peer, "best peer", metric);
    if own.and(peer).is_none() {
        return goal;
    }
    let ran = |name: &str| results.find(group, name, &[]).is_some();
    with_absent(goal, &PEERS, ran)
}

fn constructed(results: &Results<'_>) -> Option<Goal> {
    let bound = Bound::AtMost(0.1);
    let what = "an object whose constructor takes 100 ns: larder's object cache";
    let of = |ours: &'static str| {
        let goal = against_best(results, CONSTRUCTED, OBJECT, ours, bound, what);
        let own = results.find(CONSTRUCTED, ours, &[]);
        let alone = own.and_then(|at| at.middle("constructor_ns"));
        let note = alone.filter(|_| goal.measured.is_some());
        let note = note.map(|ns| format!("the constructor alone takes {} ns here", short(ns)));
        let goal = noted(goal, &note.unwrap_or_default());
        (ours.to_owned(), goal)
    };
    each(bound, KEEPING.map(of))
}

/// The fastest of the mallocs that were preloaded, and of the C library's own.
pub(super) fn best_preloaded<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
) -> Option<At<'r, 'a>> {
    let mut ranked = results.ranked(group, PAIR).into_iter();
    ranked.find(|at| ["malloc", PRELOADED].contains(&at.name()))
}

/// A malloc in a sentence.
pub(super) fn malloc_name<'a>(at: &At<'_, 'a>) -> &'a str {
    match at.text("library") {
        Some(library) => library.rsplit('/').next().unwrap_or(library),
        None if at.name() == "malloc" => "the C library's malloc",
        None => at.name(),
    }
}

fn preloaded(results: &Results<'_>) -> Option<Goal> {
    let bound = Bound::AtMost(0.95);
    let what = "a block of 16 to 8192 bytes: larder's malloc, preloaded";
    let against = "best preloaded peer";
    let of = |bytes: i64| {
        let group = of_size("preloaded", bytes);
        let own = results.find(&group, LARDER_PRELOADED, &[])?;
        let peer = best_preloaded(results, &group);
        let mut goal = goal(bound, what, Some(own), peer, against, PAIR);
        if let Some(peer) = peer {
            malloc_name(&peer).clone_into(&mut goal.against);
            let libraries = results
                .of(&group, PRELOADED)
                .filter_map(|at| at.text("library"));
            let ran: Vec<&str> = libraries
                .map(|path| contestant_of(Path::new(path)))
                .collect();
            goal = with_absent(goal, &peers(), |name| ran.contains(&name));
        }
        Some((format!("{bytes} bytes"), goal))
    };
    each(bound, SIZES.into_iter().filter_map(of)).or_else(|| {
        let why = "liblarder_malloc.so did not run; build it with `cargo build --release -p larder-malloc`";
        Some(bound.goal(what, against, None, None, why))
    })
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

/// What is back of a burst, by the thread where no calls are made, and by calls where the thread is off.
fn returned(results: &Results<'_>) -> Goal {
    let (mb, interval) = WHOLE_BURST;
    let seconds = interval * i64::from(super::held::INTERVALS) / 1000;
    let what = format!("memory of a burst of {mb} MiB that is returned after {seconds} s");
    let bound = Bound::AtLeast(0.8);
    let burst = |name: &'static str, calls: &str, how: &str| {
        let is_whole = |at: &At<'_, '_>| {
            (at.int("mb"), at.int("interval_ms")) == (Some(mb), Some(interval))
                && at.text("calls") == Some(calls)
        };
        let cell = results.of(HELD, name).find(is_whole)?;
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
        let needed = format!("{mb} MiB and {seconds} s");
        bound.needs(&what, "the burst", &needed, command)
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
    let what = format!(
        "instructions of a block of {COUNTED} bytes: larder's heap and object cache, by a handle"
    );
    let against = "the loop alone, taken off";
    let goal = Bound::AtMost(MOST).counted(&results.view, what, against, value);
    Some(goal.in_unit("instructions"))
}
