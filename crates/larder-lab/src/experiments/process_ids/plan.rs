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

/// A of the quick form: the regions of Franke's table in which the curves of 2002 or of today cross.
const QUICK: [i64; 7] = [1000, 4000, 8000, 16_000, 22_000, 28_000, 30_000];
/// A at which all algorithms run in the quick form.
const ALL_AT: [i64; 3] = [1000, 22_000, 32_700];
/// A at which tasks lie elsewhere: quick, and full, where the curves of 2002 cross and on both sides of it.
const ELSEWHERE: [i64; 3] = [8000, 22_000, 30_000];
const ELSEWHERE_FULL: [i64; 12] = [
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

/// In the quick form, so that algo-0 takes some 20 ms; the same for every algorithm.
const QUICK_WORK: &Work = &[
    (500, 50, 100),
    (2000, 500, 5),
    (4000, 1000, 2),
    (8000, 600, 1),
    (12_000, 400, 1),
    (16_000, 200, 1),
    (20_000, 120, 1),
    (24_000, 80, 1),
    (28_000, 40, 1),
    (32_000, 24, 1),
    (i64::MAX, 1, 1),
];
/// The same where tasks lie elsewhere: a walk over scattered tasks takes ten times as long.
const ELSEWHERE_WORK: &Work = &[(10_000, 150, 1), (25_000, 30, 1), (i64::MAX, 10, 1)];
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
const HIS_ROUNDS: &Work = &[
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
    let (deletes, rounds) = work(HIS_ROUNDS, tasks);
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
    let once = (1, 1, 0.05);
    // A count is the same on every machine and in every round, so one suffices; the twin shows that it is so.
    plan.group(COUNTS, "searches", "replay", 1.6, counts())
        .rounds(once);
    near(&mut plan);
    for memory in [SCATTERED, PACKED] {
        elsewhere(&mut plan, memory);
    }
    let memories = [NEAR, SCATTERED, PACKED];
    let passes = memories.map(|m| Params::new().with("tasks", 22_000).with_text("memory", m));
    let kinds = ["compare-pass", "mark-pass", "mark-pass-locked"];
    plan.group(PASSES, "ns_per_task", kinds[0], 0.2, cross(&kinds, &passes));
    let fresh = [1000, 22_000].map(|a| factors(a, (1000, 10), NEAR, "fresh"));
    let names = ["algo-0", "algo-1", "algo-2", "pidmap", "larder"];
    plan.group("fresh", COST, names[0], 0.15, cross(&names, &fresh));
    // The list is not walked, so each plays 5000 allocations.
    let peers = ALL_AT.map(|a| factors(a, ((32_767 - a).min(500), 10), NEAR, "aged"));
    plan.group("peers", COST, "pidmap", 0.5, cross(&CRATES, &peers));
    plan.group(REUSE, "median", "reuse", 0.5, reuse())
        .rounds(once);
    large(&mut plan);
    if !plan.quick() {
        last(&mut plan);
    }
    for group in KERNEL {
        kernel(&mut plan, contestants, group);
    }
    for (what, why) in LEFT_OUT {
        plan.skip(what, why);
    }
    if plan.quick() {
        plan.skip(
            "Franke's 87 numbers of tasks with ten rounds, the last id, and 2^32 ids",
            format!(
                "the quick form times {} of the 87 with fewer allocations; one allocation of algo-0 near 32767 takes seconds. Run with --full",
                QUICK.len() + 1
            ),
        );
    }
    plan.finish()
}

fn counts() -> Vec<Cell> {
    let first = batches()
        .into_iter()
        .filter_map(|b| Some(i64::from(*b.tasks.first()?)));
    let first: Vec<Params> = first.map(|a| Params::new().with("first", a)).collect();
    let mut cells = Vec::new();
    for (series, _) in POSTED {
        let of = |params: &Params| params.clone().with_text("series", series);
        let params: Vec<Params> = first.iter().map(of).collect();
        cells.extend(cross(&["replay"], &params));
        // The average is of the rows from 1000 to 30000.
        if series != "algo-2-256" {
            cells.extend(cross(
                &["average"],
                &[of(&Params::new().with("first", 1000))],
            ));
        }
    }
    let rule = |rule: &str| Params::new().with("first", 1000).with_text("rule", rule);
    cells.extend(cross(&["variant"], &VARIANTS.map(|(name, _)| rule(name))));
    cells
}

fn near(plan: &mut Planner) {
    let quick = plan.quick();
    let posted = published::franke_getpid()
        .iter()
        .map(|row| i64::from(row.tasks));
    let mut tasks: Vec<i64> = if quick {
        QUICK.to_vec()
    } else {
        posted.collect()
    };
    if quick {
        tasks.extend(ALL_AT.iter().filter(|a| !QUICK.contains(a)));
    }
    let cells = tasks.into_iter().flat_map(|a| {
        let work = if quick {
            work(QUICK_WORK, a)
        } else {
            work_of_2002(a)
        };
        let runs = move |name: &&str| match *name {
            "algo-2-locked" => !quick,
            // As measured in 2002: one A of the quick form shows what that costs.
            name if name.ends_with("-post") => !quick || a == 22_000,
            name => {
                !quick || ALL_AT.contains(&a) || name == "algo-0" || SWEEPS[..3].contains(&name)
            }
        };
        let names = ALGORITHMS.into_iter().filter(runs);
        names.map(move |name| Cell::new(name, factors(a, work, NEAR, "aged")))
    });
    // Where a round takes minutes, six may do.
    plan.group(NEAR, COST, "algo-0", if quick { 1.3 } else { 240.0 }, cells)
        .rounds(if quick { (6, 6, 0.05) } else { (6, 10, 0.05) });
}

fn elsewhere(plan: &mut Planner, memory: &str) {
    let quick = plan.quick();
    let tasks: &[i64] = plan.either(&ELSEWHERE, &ELSEWHERE_FULL);
    let params = tasks.iter().map(|a| {
        let work = match (quick, memory) {
            (true, _) => work(ELSEWHERE_WORK, *a),
            (false, SCATTERED) => work(SCATTERED_WORK, *a),
            // Small tasks, as in Franke's harness: the D of 2002, once.
            (false, _) => (work_of_2002(*a).0, 1),
        };
        factors(*a, work, memory, "aged")
    });
    let params: Vec<Params> = params.collect();
    let mut names = vec!["algo-0"];
    names.extend(&SWEEPS[..plan.either(2, SWEEPS.len())]);
    let full = if memory == SCATTERED { 15.0 } else { 5.5 };
    let seconds = plan.either(0.25, full);
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
        lives.map(|live| {
            Params::new()
                .with_text("rule", rule)
                .with("live", live)
                .with("churns", 100_000)
        })
    });
    cross(&["reuse"], &params.collect::<Vec<_>>())
}

fn large(plan: &mut Planner) {
    let params = |bits| LEVELS.map(|used| Params::new().with("bits", bits).with("used", used));
    let mut cells = cross(&["large-pidmap", "large-larder"], &params(22));
    // The tree takes longest to fill; in the quick form once is enough to see where it stands.
    let trees = if plan.quick() {
        &params(22)[1..2]
    } else {
        &params(22)[..]
    };
    cells.extend(cross(&["large-idr"], trees));
    if !plan.quick() {
        cells.extend(cross(&["large-pidmap", "large-larder"], &params(32)));
    }
    let seconds = plan.either(0.2, 45.0);
    plan.group(LARGE, "ns_per_alloc", "large-pidmap", seconds, cells);
}

fn kernel(plan: &mut Planner, contestants: &[Box<dyn Contestant>], group: &str) {
    let (factor, levels): (_, &[i64]) = match group {
        "kernel-descriptors" => ("open", &[100, 1000, 15_000]),
        "kernel-ports" => ("used", &[100, 9000, 9900]),
        _ => ("used", &[100, 9500]),
    };
    let of = |n: &i64| Params::new().with(factor, *n);
    let params: Vec<Params> = levels.iter().map(of).collect();
    match contestants
        .iter()
        .find(|c| c.name() == group)
        .map(|c| c.available())
    {
        Some(Err(why)) => plan.skip(group, why),
        _ => {
            plan.group(group, COST, group, 0.2, cross(&[group], &params));
        }
    }
}
