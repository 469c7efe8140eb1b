//! Which cells run, quick and full.

use std::time::Duration;

use super::{depot, ends, instructions};
use crate::contestants::heaps::{PRELOADED, libraries};
use crate::measure::{Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

/// Names of the groups.
pub(super) const THREADS: &str = "threads";
pub(super) const SECOND: &str = "second-thread";
pub(super) const CONSTRUCTED: &str = "constructor";

/// Sizes of the pairs.
pub(super) const SIZES: [i64; 4] = [16, 64, 1024, 8192];

/// Name of the group of a size.
pub(super) fn pair_group(bytes: i64) -> String {
    format!("pair-{bytes}")
}

/// His variants for any number of threads, in the order of his tables.
pub(super) const HIS: [&str; 5] = [
    "hashed-16",
    "hashed-2",
    "hashed-mutex",
    "explicit-handle",
    "global-locked",
];

/// His variants for one thread.
pub(super) const STACKS: [&str; 2] = ["unlocked-stack", "locked-stack"];

/// Today's allocators.
pub(super) const PEERS: [&str; 5] = ["malloc", "mimalloc", "jemalloc", "rpmalloc", "snmalloc"];

/// The library's.
pub(super) const OURS: [&str; 5] = ["object-handle", "object-cache", "heap", "classes", "global"];

/// Those that keep objects constructed.
pub(super) const KEEPING: [&str; 2] = ["object-handle", "object-cache"];

/// Where the threads run and how the slab spaces its pieces, for the question about the second thread.
pub(super) const LAYOUTS: [(&str, &str); 3] = [("two", "his"), ("two", "apart"), ("one", "his")];

/// Those of whom it is asked what the second thread costs: his and two that are in every build.
pub(super) fn asked() -> impl Iterator<Item = &'static str> {
    HIS.into_iter().chain(["malloc", "object-cache"])
}

/// Threads of the tables.
pub(super) fn threads(quick: bool) -> &'static [i64] {
    if quick {
        &[1, 2, 3, 4, 6]
    } else {
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    }
}

/// Bytes of a block: `alloc(4)` in the text of the mail, 100 in the attached program, which has the handle and the global
/// front.
fn bytes_of(contestant: &str) -> i64 {
    match contestant {
        "explicit-handle" | "global-locked" => 100,
        _ => 4,
    }
}

/// Turns of each thread. In the quick form those that fight over a line or a lock make fewer.
fn turns_of(contestant: &str, threads: i64, quick: bool) -> i64 {
    match (quick, contestant, threads) {
        (false, ..) => 10_000_000,
        (true, "global-locked", 2..) => 40_000,
        (true, _, 1) => 1_000_000,
        (true, name, _) if HIS.contains(&name) => 200_000,
        (true, ..) => 500_000,
    }
}

/// A cell of his loop.
pub(super) fn loop_cell(
    contestant: &str,
    threads: i64,
    cpus: &str,
    slab: &str,
    quick: bool,
) -> Cell {
    let params = Params::new()
        .with_text("shape", "loop")
        .with("threads", threads)
        .with("turns", turns_of(contestant, threads, quick))
        .with("bytes", bytes_of(contestant))
        .with_text("cpus", cpus)
        .with_text("slab", slab);
    Cell::new(contestant, params)
}

pub(super) fn pair_cell(contestant: &str, bytes: i64, quick: bool) -> Cell {
    let params = Params::new()
        .with_text("shape", "pair")
        .with("bytes", bytes)
        .with("turns", if quick { 500_000 } else { 10_000_000 });
    Cell::new(contestant, params)
}

fn constructed_cell(contestant: &str, quick: bool) -> Cell {
    let params = Params::new()
        .with_text("shape", "constructor")
        .with("turns", if quick { 50_000 } else { 1_000_000 });
    Cell::new(contestant, params)
}

/// The same cell of the preloaded malloc, for every library that the user named.
fn preloaded(like: &Cell, libraries: &[String]) -> Vec<Cell> {
    libraries
        .iter()
        .map(|library| Cell::new(PRELOADED, like.params.clone().with_text("library", library)))
        .collect()
}

/// The plan. `names` are the contestants that this build has.
pub(super) fn plan(request: &PlanRequest<'_>, names: &[&str]) -> Plan {
    let quick = request.depth == Depth::Quick;
    let (libraries, skipped) = libraries(names);
    let mut plan = Plan {
        groups: Vec::new(),
        skipped,
    };
    let has = |name: &&str| names.contains(name);
    let peers: Vec<&str> = PEERS.into_iter().filter(has).collect();
    let ours: Vec<&str> = OURS.into_iter().filter(has).collect();
    let seconds = |quick_seconds: f64, full_seconds: f64| {
        Duration::from_secs_f64(if quick { quick_seconds } else { full_seconds })
    };

    let mut cells = Vec::new();
    for &threads in threads(quick) {
        for name in HIS {
            cells.push(loop_cell(name, threads, "any", "his", quick));
        }
        // The others have no slab; the factor is his for all.
        for &name in ours.iter().chain(&peers) {
            if !quick || [1, 2].contains(&threads) {
                cells.push(loop_cell(name, threads, "any", "his", quick));
            }
        }
        if !quick || [1, 2].contains(&threads) {
            let like = loop_cell("malloc", threads, "any", "his", quick);
            cells.extend(preloaded(&like, &libraries));
        }
    }
    cells.extend(STACKS.map(|name| loop_cell(name, 1, "any", "his", quick)));
    let reference = loop_cell("malloc", 1, "any", "his", quick);
    let rounds = if quick { (6, 6) } else { (6, 8) };
    plan.groups.push(group(
        THREADS,
        reference,
        "seconds",
        cells,
        rounds,
        seconds(0.8, 260.0),
    ));

    let mut cells = Vec::new();
    for name in asked() {
        for (cpus, slab) in LAYOUTS {
            if slab == "apart" && !HIS.contains(&name) {
                continue;
            }
            for threads in [1, 2, 3] {
                // One CPU serves two threads; the third adds nothing to what is asked.
                if (cpus, threads) != ("one", 3) {
                    cells.push(loop_cell(name, threads, cpus, slab, quick));
                }
            }
        }
    }
    let reference = loop_cell("explicit-handle", 1, "two", "his", quick);
    let rounds = if quick { (6, 6) } else { (6, 10) };
    plan.groups.push(group(
        SECOND,
        reference,
        "seconds",
        cells,
        rounds,
        seconds(0.6, 60.0),
    ));

    let rounds = if quick { (6, 8) } else { (15, 33) };
    for bytes in SIZES {
        let mut cells: Vec<Cell> = ours
            .iter()
            .chain(&peers)
            .map(|name| pair_cell(name, bytes, quick))
            .collect();
        let reference = pair_cell("malloc", bytes, quick);
        cells.extend(preloaded(&reference, &libraries));
        let name = pair_group(bytes);
        plan.groups.push(group(
            &name,
            reference,
            "ns_per_pair",
            cells,
            rounds,
            seconds(0.08, 0.8),
        ));
    }
    let keeping = ours.iter().filter(|name| KEEPING.contains(name));
    let cells: Vec<Cell> = keeping
        .chain(&peers)
        .map(|name| constructed_cell(name, quick))
        .collect();
    let reference = constructed_cell("malloc", quick);
    plan.groups.push(group(
        CONSTRUCTED,
        reference,
        "ns_per_object",
        cells,
        rounds,
        seconds(0.1, 1.5),
    ));

    depot::add(&mut plan, quick, names);
    ends::add(&mut plan, quick, names);
    instructions::add(&mut plan, quick, names);

    if quick {
        plan.skipped.push(Skipped {
            what: "his ten million turns, and 5 and 7 to 10 threads".to_owned(),
            why: "the quick form makes fewer turns with 1, 2, 3, 4 and 6 threads; run with --full for all, about half an hour".to_owned(),
        });
    }
    plan
}

pub(super) fn group(
    name: &str,
    reference: Cell,
    metric: &'static str,
    cells: Vec<Cell>,
    (min_rounds, max_rounds): (u32, u32),
    round_guess: Duration,
) -> Group {
    Group {
        name: name.to_owned(),
        reference,
        metric,
        cells,
        min_rounds,
        max_rounds,
        target: 0.05,
        round_guess,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MachineRecord;

    fn plan_of(depth: Depth) -> Plan {
        let machine = MachineRecord::default();
        let contestants = super::super::contestants::all();
        let names: Vec<_> = contestants.iter().map(|c| c.name()).collect();
        plan(
            &PlanRequest {
                depth,
                machine: &machine,
                seed: 1,
            },
            &names,
        )
    }

    #[test]
    fn groups_hold_their_reference_and_no_cell_twice() {
        for depth in [Depth::Quick, Depth::Full] {
            for group in plan_of(depth).groups {
                assert!(group.cells.contains(&group.reference), "{}", group.name);
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
            }
        }
    }

    #[test]
    fn every_cell_names_a_contestant() {
        let contestants = super::super::contestants::all();
        for group in plan_of(Depth::Full).groups {
            for cell in group.cells {
                assert!(
                    contestants.iter().any(|c| c.name() == cell.contestant),
                    "{cell}"
                );
            }
        }
    }

    #[test]
    fn full_is_his_and_quick_is_short() {
        let full = plan_of(Depth::Full);
        let table = full
            .groups
            .iter()
            .find(|g| g.name == THREADS)
            .expect("planned");
        for name in HIS {
            for threads in 1..=10 {
                let cell = loop_cell(name, threads, "any", "his", false);
                assert!(table.cells.contains(&cell), "{cell}");
                assert_eq!(cell.params.int("turns").ok(), Some(10_000_000));
            }
        }
        let guess: Duration = plan_of(Depth::Quick)
            .groups
            .iter()
            .map(|g| g.round_guess * g.min_rounds)
            .sum();
        assert!(guess < Duration::from_secs(30), "{guess:?}");
    }
}
