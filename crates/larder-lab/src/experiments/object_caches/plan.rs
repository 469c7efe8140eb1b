//! Which cells run, quick and full.

use super::contestants::{LARDER_PRELOADED, LOCKED, LOOP, all};
use super::loops::BURST;
use crate::contestants::heaps::found::{LARDER, found};
use crate::contestants::heaps::{PRELOADED, libraries};
use crate::experiments::allocators::{PEERS, preloaded_cells};
use crate::frame::Planner;
use crate::measure::{Plan, PlanRequest};
use crate::model::{Cell, Params};

/// Names of the groups; [`of_size`] has those by size.
pub(super) const THREADS: &str = "threads";
pub(super) const SECOND: &str = "second-thread";
pub(super) const LOCK: &str = "lock";
pub(super) const CONSTRUCTED: &str = "constructor";
pub(super) const DEPOT: &str = "depot";
pub(super) const DESTROY: &str = "destroy";
pub(super) const HELD: &str = "held";

/// Metrics.
pub(super) const SECONDS: &str = "seconds";
pub(super) const RATE: &str = "mcycles_per_s";
pub(super) const CPU: &str = "cpu_ns_per_cycle";
pub(super) const SLEEPS: &str = "sleeps_per_million";
pub(super) const PAIR: &str = "ns_per_pair";
pub(super) const OBJECT: &str = "ns_per_object";
pub(super) const ENDED: &str = "destroy_ns";
pub(super) const RETURNED: &str = "returned_share";

/// The groups of a run of all experiments: those that a goal, the summary or a question of the mail needs.
pub(super) const BRIEF: &[&str] = &[
    THREADS,
    SECOND,
    LOCK,
    "pair",
    "preloaded",
    CONSTRUCTED,
    DESTROY,
];

/// Sizes of the pairs.
pub(super) const SIZES: [i64; 4] = [16, 64, 1024, 8192];

/// The size that is compared with many.
pub(super) const SIZE: i64 = 64;

/// The group of a size: `pair` or `preloaded`.
pub(super) fn of_size(kind: &str, bytes: i64) -> String {
    format!("{kind}-{bytes}")
}

/// The mail's allocators for any number of threads, in the order of its tables.
pub(super) const MAIL: [&str; 5] = [
    "hashed-16",
    "hashed-2",
    "hashed-mutex",
    "explicit-handle",
    "global-locked",
];

/// Those of them that wait for a lock.
const WAITING: [&str; 2] = ["hashed-mutex", "global-locked"];

/// The mail's allocators for one thread.
pub(super) const STACKS: [&str; 2] = ["unlocked-stack", "locked-stack"];

/// The library's.
pub(super) const OURS: [&str; 5] = ["object-handle", "object-cache", "heap", "classes", "global"];

/// Those that keep objects constructed.
pub(super) const KEEPING: [&str; 2] = ["object-handle", "object-cache"];

/// Those of which it is asked what the second thread costs: the mail's and two that are in every build.
pub(super) fn asked() -> impl Iterator<Item = &'static str> {
    MAIL.into_iter().chain(["malloc", "object-cache"])
}

/// CPUs and slab of the question about the second thread: as in the mail, with the slab's pieces apart, on one CPU.
pub(super) const AS_MAIL: (&str, &str) = ("two", "his");
pub(super) const APART: (&str, &str) = ("two", "apart");
pub(super) const ONE_CPU: (&str, &str) = ("one", "his");

/// Threads of the group about the depot. Two are what the CPUs of a small machine carry.
pub(super) const DEPOT_THREADS: [i64; 4] = [1, 2, 8, 64];

/// The cell on which the goal is: classes and live objects.
pub(super) const MILLION: (i64, i64) = (30, 1_000_000);

/// MiB of a burst and milliseconds of an interval, as by default: what the goal names.
pub(super) const WHOLE_BURST: (i64, i64) = (64, 1000);

/// The plan.
pub(super) fn plan(request: &PlanRequest<'_>) -> Plan {
    let contestants = all();
    let names: Vec<&str> = contestants.iter().map(|c| c.name()).collect();
    let mut plan = Planner::new(request, &contestants, (6, 8, 0.05), (15, 33, 0.05));
    let quick = plan.quick();
    let linked = OURS.into_iter().chain(PEERS);
    let linked: Vec<&str> = linked.filter(|name| names.contains(name)).collect();
    let (named, skipped) = libraries(&names);
    for line in skipped {
        plan.skip(line.what, line.why);
    }
    mails_loop(&mut plan, &linked, &named);
    for bytes in SIZES {
        // The goals at the other sizes are the global allocator's.
        let kept = |name: &&&str| {
            let needed = PEERS.contains(name) || ["heap", "global"].contains(name);
            !quick || bytes == SIZE || needed
        };
        let pair = |name: &&str| pair_cell(name, bytes, quick);
        let mut cells: Vec<Cell> = linked.iter().filter(kept).map(pair).collect();
        cells.extend(preloaded_cells(&pair(&"malloc"), &named));
        let seconds = plan.either(0.01, 0.08) * cells.len() as f64;
        plan.group(&of_size("pair", bytes), PAIR, "malloc", seconds, cells);
    }
    let turns = plan.either(50_000, 1_000_000);
    let cells = linked.iter().filter_map(|name| {
        let asked = KEEPING.contains(name) || PEERS.contains(name);
        asked.then(|| cell(name, "constructor", &[("turns", turns)]))
    });
    let seconds = plan.either(0.1, 1.5);
    plan.group(CONSTRUCTED, OBJECT, "malloc", seconds, cells);
    preloaded(&mut plan);
    let (blocks, seconds) = plan.either((500_000, 0.6), (20_000_000, 8.0));
    let cells = linked.iter().flat_map(|name| {
        DEPOT_THREADS.map(|threads| {
            let turns = blocks / BURST as i64 / threads;
            let counts = [("threads", threads), ("turns", turns), ("bytes", SIZE)];
            with(cell(name, "depot", &counts), "cpus", "any")
        })
    });
    plan.group(DEPOT, CPU, "malloc", seconds, cells);
    destroyed(&mut plan, &names);
    held(&mut plan, &names);
    // Valgrind has no restartable sequences, so that what needs them is not counted.
    let counted = [LOOP, "heap", "object-handle", "global"];
    let peers: &[&str] = plan.either(&[], &PEERS);
    plan.instructions("allocator", &[&counted, peers].concat());
    plan.finish()
}

/// A cell of a shape with its counts.
fn cell(name: &str, shape: &str, counts: &[(&str, i64)]) -> Cell {
    let params = Params::new().with_text("shape", shape);
    let with = |params: Params, (factor, n): &(&str, i64)| params.with(factor, *n);
    Cell::new(name, counts.iter().fold(params, with))
}

/// The cell with another factor, which is a word.
fn with(cell: Cell, factor: &str, word: &str) -> Cell {
    Cell::new(&cell.contestant, cell.params.with_text(factor, word))
}

/// A cell of the mail's loop, with `alloc(4)` as in its text or the 100 bytes of the attached program, which has the handle and
/// the global front.
fn loop_cell(name: &str, threads: i64, (cpus, slab): (&str, &str), quick: bool) -> Cell {
    // In the quick form those that lock, or fight over a line, make fewer turns. The others need many: threads do not start together.
    let locks = WAITING.contains(&name) || ["locked-stack", LOCKED].contains(&name);
    let turns = match (quick, name, threads) {
        (false, ..) => 10_000_000,
        (true, "global-locked", 2..) => 40_000,
        (true, _, 1) if locks => 200_000,
        (true, _, 1) => 1_000_000,
        (true, _, 4..) if locks => 50_000,
        (true, _, 5..) => 100_000,
        (true, _, 2..) if MAIL.contains(&name) => 200_000,
        (true, ..) => 500_000,
    };
    let in_program = ["explicit-handle", "global-locked"].contains(&name);
    let bytes = if in_program { 100 } else { 4 };
    let counts = [("threads", threads), ("turns", turns), ("bytes", bytes)];
    with(
        with(cell(name, "loop", &counts), "cpus", cpus),
        "slab",
        slab,
    )
}

/// The mail's tables, the question about the second thread, and that about the lock. The slab is the mail's; the factor is the
/// same for those that have none.
fn mails_loop(plan: &mut Planner, linked: &[&str], named: &[String]) {
    let quick = plan.quick();
    let counts: &[i64] = plan.either(&[1, 2, 4, 10], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let any = |name: &str, threads| loop_cell(name, threads, ("any", "his"), quick);
    let mut cells = STACKS.map(|name| any(name, 1)).to_vec();
    for &threads in counts {
        // Ten threads that wait for a lock take as long as all the others.
        let kept = |name: &&str| !(quick && threads > 4 && WAITING.contains(name));
        let mail = MAIL.into_iter().filter(kept);
        cells.extend(mail.map(|name| any(name, threads)));
        if !quick {
            cells.extend(linked.iter().map(|name| any(name, threads)));
            cells.extend(preloaded_cells(&any("malloc", threads), named));
        } else if threads == 1 {
            // The group of the second thread has larder's cache beside it.
            cells.push(any("malloc", 1));
        }
    }
    let (seconds, most) = plan.either((0.42, 8), (260.0, 8));
    let group = plan.group(THREADS, SECONDS, "malloc", seconds, cells);
    group.rounds((6, most, 0.05));

    // A third thread is asked about on two CPUs and with the mail's slab; where there is no slab it cannot be apart, and where
    // a lock is waited for, one CPU tells nothing that the sleeps do not.
    let cells = asked().flat_map(|name| {
        let layouts = [(AS_MAIL, 3), (APART, 2), (ONE_CPU, 2)].into_iter();
        let few = match name {
            _ if !MAIL.contains(&name) => 1,
            _ if quick && WAITING.contains(&name) => 2,
            _ => 3,
        };
        let of = move |(layout, most)| (1..=most).map(move |n| loop_cell(name, n, layout, quick));
        layouts.take(few).flat_map(of)
    });
    let (seconds, most) = plan.either((0.55, 8), (60.0, 10));
    let group = plan.group(SECOND, SECONDS, "explicit-handle", seconds, cells);
    group.rounds((6, most, 0.05));

    let cells = ["object-cache", LOCKED]
        .into_iter()
        .flat_map(|name| [1, 2].map(|threads| loop_cell(name, threads, AS_MAIL, quick)));
    let seconds = plan.either(0.07, 1.0);
    plan.group(LOCK, CPU, LOCKED, seconds, cells);
    if quick {
        plan.skip(
            "the mail's ten million turns, most numbers of threads, and today's allocators in its loop",
            "the quick form makes fewer turns with 1, 2, 4 and 10 threads; run with --full for all, about half an hour",
        );
    }
}

fn pair_cell(name: &str, bytes: i64, quick: bool) -> Cell {
    let turns = if quick { 500_000 } else { 10_000_000 };
    cell(name, "pair", &[("bytes", bytes), ("turns", turns)])
}

/// Pairs in processes that larder's malloc and those of others are preloaded into.
fn preloaded(plan: &mut Planner) {
    let (libraries, skipped) = found();
    // What the user named wrongly is reported with the pairs of linked allocators.
    for line in skipped.into_iter().filter(|s| s.what != PRELOADED) {
        plan.skip(line.what, line.why);
    }
    if !libraries.iter().any(|library| library.contestant == LARDER) {
        return;
    }
    for bytes in SIZES {
        let pair = |name| pair_cell(name, bytes, plan.quick());
        let mut cells = vec![pair("malloc")];
        cells.extend(libraries.iter().map(|library| {
            let ours = library.contestant == LARDER;
            let name = if ours { LARDER_PRELOADED } else { PRELOADED };
            with(pair(name), "library", &library.path)
        }));
        let seconds = plan.either(0.02, 0.12) * cells.len() as f64;
        let group = of_size("preloaded", bytes);
        plan.group(&group, PAIR, "malloc", seconds, cells);
    }
}

/// The end of a heap.
fn destroyed(plan: &mut Planner, names: &[&str]) {
    let quick = plan.quick();
    let mut shapes = vec![(30, 10_000), MILLION];
    if !quick {
        shapes.extend([(30, 30), (1, 1), (1, 100), (1, 10_000), (1, 1_000_000)]);
        shapes.extend([(30, 100), (40, 40), (40, 100), (40, 10_000)]);
        shapes.push((40, 1_000_000));
    }
    let end = |name: &str, (classes, objects): (i64, i64)| {
        let counts = [("classes", classes), ("objects", objects)];
        cell(name, "destroy", &counts)
    };
    let whole = [
        "private-heap",
        "private-freed",
        "heap",
        "mimalloc-heap",
        "malloc",
    ];
    let cells = shapes.into_iter().flat_map(|shape| {
        // The million takes most of the time, and its goal is about two cells.
        let few = if quick && shape == MILLION { 2 } else { 5 };
        whole[..few].iter().map(move |name| end(name, shape))
    });
    let handles = [1, 30, 300].map(|n| end("cache-handles", (n, n)));
    let cells = cells.filter(|cell| names.contains(&cell.contestant.as_str()));
    let (seconds, rounds) = plan.either((0.28, (6, 8, 0.05)), (4.0, (10, 15, 0.05)));
    let cells: Vec<Cell> = cells.chain(handles).collect();
    plan.group(DESTROY, ENDED, "malloc", seconds, cells)
        .rounds(rounds);
}

/// The end of a burst.
fn held(plan: &mut Planner, names: &[&str]) {
    let quick = plan.quick();
    let (mb, interval) = plan.either((WHOLE_BURST.0 / 4, 10), WHOLE_BURST);
    // Larder's only, and whose interval can be set; the peers have none.
    let all = ["heap", "global"]
        .iter()
        .chain(&PEERS)
        .filter(|name| names.contains(name));
    let cells = all.take(if quick { 1 } else { 7 }).flat_map(|name| {
        let burst = cell(name, "held", &[("mb", mb), ("interval_ms", interval)]);
        ["no", "yes"].map(|calls| with(burst.clone(), "calls", calls))
    });
    let seconds = plan.either(0.36, 150.0);
    plan.group(HELD, RETURNED, "heap", seconds, cells)
        .rounds((6, 6, 0.05));
    if quick {
        plan.skip(
            "memory held 10 s after a burst",
            "the quick form waits 0.1 s with intervals of 10 ms in place of 10 s with intervals of a second, and \
             leaves the peers out, which have no such setting; run with --full --group held for them, some fifteen minutes",
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::OBJECT_CACHES;
    use super::*;
    use crate::experiments::tests::plan_of;
    use crate::measure::Depth;

    #[test]
    fn full_is_the_mails_and_quick_is_short() {
        let full = plan_of(&OBJECT_CACHES, Depth::Full);
        let table = full.groups.iter().find(|g| g.name == THREADS);
        let table = table.expect("planned");
        for name in MAIL {
            for threads in 1..=10 {
                let cell = loop_cell(name, threads, ("any", "his"), false);
                assert!(table.cells.contains(&cell), "{cell}");
                assert_eq!(cell.params.int("turns").ok(), Some(10_000_000));
            }
        }
        let quick = plan_of(&OBJECT_CACHES, Depth::Quick);
        let brief = |name: &str| BRIEF.iter().any(|known| name.contains(known));
        let guess: Duration = quick
            .groups
            .iter()
            .filter(|g| brief(&g.name) && g.name != "instructions")
            .map(|g| g.round_guess * g.min_rounds)
            .sum();
        assert!(guess < Duration::from_secs(15), "{guess:?}");
    }
}
