//! Which cells run, quick and full, and how much of Franke's work each plays.

use super::large::{LEFT_OUT, LEVELS};
use super::reuse::{RULES, walks};
use crate::contestants::getpid::harness::{POSTED, VARIANTS, batches};
use crate::frame::{Planner, cross};
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{Cell, Params};
use crate::published;

/// The groups that are named more than once.
pub(super) const COUNTS: &str = "counts";
pub(super) const NEAR: &str = "near";
pub(super) const SCATTERED: &str = "scattered";
pub(super) const PACKED: &str = "packed";
pub(super) const PASSES: &str = "passes";
pub(super) const LAST: &str = "last-id";
pub(super) const REUSE: &str = "reuse";
pub(super) const LARGE: &str = "large";
/// The kernel's own.
pub(super) const KERNEL: [&str; 3] = ["kernel-processes", "kernel-descriptors", "kernel-ports"];

/// The metric that judges: Franke's G.
pub(super) const COST: &str = "us_per_alloc";

/// A of the quick form: the regions of Franke's table in which the curves of 2002 or of today cross, and a nearly full space.
const QUICK: [i64; 6] = [1000, 8000, 16_000, TASKS, 30_000, NEARLY_FULL];
/// The A for which single costs are reported: where the curves of 2002 crossed.
pub(super) const TASKS: i64 = 22_000;
/// A with 68 ids free.
const NEARLY_FULL: i64 = 32_700;
/// A at which tasks lie elsewhere: where the curves of 2002 cross and on both sides of it.
const ELSEWHERE: [i64; 12] = [
    2000, 4000, 8000, 12_000, 16_000, 18_000, 20_000, 22_000, 24_000, 26_000, 28_000, 30_000,
];
/// The sweeps that algo-0 is compared with.
pub(super) const SWEEPS: [&str; 5] = [
    "algo-1",
    "algo-1-locked",
    "algo-2",
    "algo-2-locked",
    "algo-2-256",
];
/// Every algorithm, in the order of the tables.
pub(super) const ALGORITHMS: [&str; 15] = [
    "algo-0",
    "algo-1",
    "algo-1-locked",
    "algo-2",
    "algo-2-locked",
    "algo-1-post",
    "algo-2-post",
    "algo-2-256",
    "algo-2-256-post",
    "adaptive",
    "andrea",
    "bill",
    "pidmap",
    "idr",
    "larder",
];
/// Crates of others, beside what keeps a map.
const CRATES: [&str; 9] = [
    "pidmap",
    "larder",
    "crate-roaring",
    "crate-range-set-blaze",
    "crate-hibitset",
    "crate-id-pool",
    "crate-slab",
    "crate-slotmap",
    "crate-sharded-slab",
];
/// Numbers of live ids at which reuse is looked at.
pub(super) const REUSE_AT: [i64; 3] = [1000, 22_000, 32_700];

/// Deletions and rounds up to a number of tasks.
type Work = [(i64, i64, i64)];

/// In the quick form, so that algo-0 takes some 50 ms; the same for every algorithm.
const QUICK_WORK: &Work = &[
    (2000, 500, 5),
    (8000, 300, 1),
    (16_000, 100, 1),
    (22_000, 40, 1),
    (30_000, 12, 1),
    (i64::MAX, 1, 1),
];
/// Where tasks are scattered, in the full form: fewer where a walk takes milliseconds.
const SCATTERED_WORK: &Work = &[
    (8000, 1000, 1),
    (18_000, 200, 1),
    (24_000, 100, 1),
    (i64::MAX, 50, 1),
];
/// Ten rounds as in 2002, where algo-0 plays them in a second. Nearer to a full space fewer, whole ones: a mean over part of a
/// round would be of the time when most ids are free. The same number for every algorithm at an A, since the ids ahead of
/// the last one thin out from round to round. The deletions are those of 2002.
const FULL_WORK: &Work = &[
    (15_000, 50, 10),
    (17_000, 50, 6),
    (20_000, 50, 4),
    (22_000, 50, 3),
    (26_000, 50, 2),
    (30_000, 50, 1),
    (32_100, 50, 5),
    (32_300, 50, 3),
    (32_400, 50, 2),
    (32_700, 50, 1),
    (32_755, 50, 8),
    (32_760, 50, 5),
    (32_764, 50, 3),
    (i64::MAX, 50, 1),
];

fn work(table: &Work, tasks: i64) -> (i64, i64) {
    let row = table.iter().find(|(most, ..)| tasks <= *most);
    row.map_or((1, 1), |(_, deletes, rounds)| (*deletes, *rounds))
}

pub(super) fn work_of_2002(tasks: i64) -> (i64, i64) {
    let (deletes, rounds) = work(FULL_WORK, tasks);
    let mut rows = published::franke_getpid().iter();
    let row = rows.find(|row| i64::from(row.tasks) == tasks);
    (row.map_or(deletes, |row| i64::from(row.deletes)), rounds)
}

/// The factors of a timed cell of Franke's workload.
fn factors(tasks: i64, (deletes, rounds): (i64, i64), memory: &str, start: &str) -> Params {
    Params::new()
        .with("tasks", tasks)
        .with("deletes", deletes)
        .with("rounds", rounds)
        .with_text("memory", memory)
        .with_text("start", start)
}

/// The plan. `contestants` are those of this build.
pub(super) fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let mut plan = Planner::new(request, contestants, (6, 6, 0.05), (10, 10, 0.02));
    let quick = plan.quick();
    let once = (1, 1, 0.05);
    // A count is the same on every machine and in every round, so one suffices; the twin shows that it is so.
    plan.group(COUNTS, "searches", "replay", 2.2, counts(quick))
        .rounds(once);
    near(&mut plan);
    if !quick {
        // A walk over scattered tasks takes milliseconds. Small tasks, as in Franke's harness, have the D of 2002, once.
        elsewhere(&mut plan, SCATTERED, 15.0, |a| work(SCATTERED_WORK, a));
        elsewhere(&mut plan, PACKED, 5.5, |a| (work_of_2002(a).0, 1));
    }
    let memories = [NEAR, SCATTERED, PACKED];
    let memories = &memories[..plan.either(1, 3)];
    let passes = memories
        .iter()
        .map(|m| Params::new().with("tasks", TASKS).with_text("memory", m));
    let cells = cross(
        &["compare-pass", "mark-pass", "mark-pass-locked"],
        &passes.collect::<Vec<_>>(),
    );
    plan.group(
        PASSES,
        "ns_per_task",
        "compare-pass",
        plan.either(0.16, 0.35),
        cells,
    );
    let fresh = [1000, TASKS].map(|a| factors(a, (1000, 10), NEAR, "fresh"));
    let names = ["algo-0", "algo-1", "algo-2", "pidmap", "larder"];
    plan.group("fresh", COST, names[0], 0.15, cross(&names, &fresh));
    // The list is not walked, so each plays 5000 allocations.
    let peers = [1000, TASKS, NEARLY_FULL];
    let peers = peers.map(|a| factors(a, ((32_767 - a).min(500), 10), NEAR, "aged"));
    plan.group("peers", COST, "pidmap", 0.5, cross(&CRATES, &peers));
    plan.group(REUSE, "median", "reuse", 1.1, reuse())
        .rounds(once);
    large(&mut plan);
    if !quick {
        last(&mut plan);
    }
    for group in KERNEL {
        kernel(&mut plan, contestants, group);
    }
    for (what, why) in LEFT_OUT {
        plan.skip(what, why);
    }
    if quick {
        plan.skip(
            "Franke's 87 numbers of tasks with ten rounds, tasks elsewhere in memory, the last id, and 2^32 ids",
            format!(
                "the quick form times {} of the 87 with fewer allocations; one allocation of algo-0 near 32767 takes seconds. Run with --full",
                QUICK.len()
            ),
        );
    }
    plan.finish()
}

fn counts(quick: bool) -> Vec<Cell> {
    let first = |a: i64| Params::new().with("first", a);
    let batches = batches().into_iter();
    let batches: Vec<i64> = batches
        .filter_map(|b| Some(i64::from(*b.tasks.first()?)))
        .collect();
    let mut cells = Vec::new();
    for (series, _) in POSTED {
        let of = |a: &i64| first(*a).with_text("series", series);
        cells.extend(cross(
            &["replay"],
            &batches.iter().map(of).collect::<Vec<_>>(),
        ));
        // The average is of the rows from 1000 to 30000. That of algo-1 takes longest, and no sentence reads it.
        if series != "algo-2-256" && !(quick && series == "algo-1") {
            cells.extend(cross(&["average"], &[of(&1000)]));
        }
    }
    cells.extend(cross(
        &["variant"],
        &VARIANTS.map(|(rule, _)| first(1000).with_text("rule", rule)),
    ));
    cells
}

fn near(plan: &mut Planner) {
    let quick = plan.quick();
    let posted = published::franke_getpid()
        .iter()
        .map(|row| i64::from(row.tasks));
    let tasks = if quick {
        QUICK.to_vec()
    } else {
        posted.collect()
    };
    let cells = tasks.into_iter().flat_map(|a| {
        let work = if quick {
            work(QUICK_WORK, a)
        } else {
            work_of_2002(a)
        };
        // The quick form has every algorithm where the curves of 2002 crossed, and what the sentences need elsewhere.
        let runs = move |name: &&str| match (*name, a) {
            _ if !quick => true,
            ("algo-2-locked", _) => false,
            (_, TASKS) => true,
            (name, 1000) => !name.ends_with("-post"),
            ("algo-0" | "algo-2", _) => true,
            ("adaptive" | "pidmap" | "larder", NEARLY_FULL) => true,
            ("algo-1" | "algo-1-locked", a) => a != NEARLY_FULL,
            _ => false,
        };
        let names = ALGORITHMS.into_iter().filter(runs);
        names.map(move |name| Cell::new(name, factors(a, work, NEAR, "aged")))
    });
    let cells: Vec<Cell> = cells.collect();
    // Where a round takes minutes, six may do.
    let most = plan.either(6, 10);
    plan.group(NEAR, COST, "algo-0", plan.either(1.4, 240.0), cells)
        .rounds((6, most, 0.05));
}

fn elsewhere(plan: &mut Planner, memory: &str, seconds: f64, work: impl Fn(i64) -> (i64, i64)) {
    let params = ELSEWHERE.map(|a| factors(a, work(a), memory, "aged"));
    let names = [&["algo-0"], &SWEEPS[..]].concat();
    plan.group(memory, COST, "algo-0", seconds, cross(&names, &params));
}

/// algo-0 where two ids are free, as in the last row of Franke's table, against the maps.
fn last(plan: &mut Planner) {
    let params = |rounds| [factors(32_767, (1, rounds), NEAR, "aged")];
    let mut cells = cross(&["algo-0"], &params(2));
    cells.extend(cross(&["bill", "pidmap", "idr", "larder"], &params(1000)));
    plan.group(LAST, COST, "larder", 11.0, cells)
        .rounds((6, 10, 0.02));
}

/// Interval algorithms walk the list in every search: they are looked at with few tasks only.
fn reuse() -> Vec<Cell> {
    let params = RULES.iter().flat_map(|(rule, ..)| {
        let lives = REUSE_AT
            .into_iter()
            .filter(|live| *live == 1000 || !walks(rule));
        let of = |live| Params::new().with_text("rule", rule).with("live", live);
        lives.map(move |live| of(live).with("churns", 100_000))
    });
    cross(&["reuse"], &params.collect::<Vec<_>>())
}

/// In the quick form without the emptiest space, in which ids in use are hard to find, and once with the tree, which takes
/// longest to fill.
fn large(plan: &mut Planner) {
    let quick = plan.quick();
    let params = |bits| {
        let of = |used: &i64| Params::new().with("bits", bits).with("used", *used);
        LEVELS[usize::from(quick)..]
            .iter()
            .map(of)
            .collect::<Vec<_>>()
    };
    let small = params(22);
    let mut cells = cross(&["large-pidmap", "large-larder"], &small);
    cells.extend(cross(&["large-idr"], &small[..plan.either(1, small.len())]));
    if !quick {
        cells.extend(cross(&["large-pidmap", "large-larder"], &params(32)));
    }
    let seconds = plan.either(0.15, 45.0);
    plan.group(LARGE, "ns_per_alloc", "large-pidmap", seconds, cells);
}

fn kernel(plan: &mut Planner, contestants: &[Box<dyn Contestant>], group: &str) {
    let (factor, levels): (_, &[i64]) = match group {
        "kernel-descriptors" => ("open", &[100, 1000, 15_000]),
        "kernel-ports" => ("used", &[100, 9000, 9900]),
        _ => ("used", &[100, 9500]),
    };
    let params: Vec<Params> = levels
        .iter()
        .map(|n| Params::new().with(factor, *n))
        .collect();
    let own = contestants.iter().find(|c| c.name() == group);
    if let Some(Err(why)) = own.map(|c| c.available()) {
        return plan.skip(group, why);
    }
    plan.group(group, COST, group, 0.2, cross(&[group], &params));
}
