//! Which cells run, quick and full.

use std::time::Duration;

use crate::measure::{Contestant, Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

use super::elsewhere;
use super::harness::{self, POSTED, VARIANTS};
use super::large::{self, LEVELS};
use super::reuse::RULES;
use super::work::{his_tasks, his_work, quick_work};

/// Names of the groups.
pub(super) const COUNTS: &str = "counts";
pub(super) const NEAR: &str = "near";
pub(super) const SCATTERED: &str = "scattered";
pub(super) const PACKED: &str = "packed";
pub(super) const FRESH: &str = "fresh";
pub(super) const PEERS: &str = "peers";
pub(super) const PASSES: &str = "passes";
pub(super) const LAST: &str = "last-id";
pub(super) const REUSE: &str = "reuse";
pub(super) const LARGE: &str = "large";
pub(super) const DESCRIPTORS: &str = "kernel-descriptors";
pub(super) const PORTS: &str = "kernel-ports";
pub(super) const PROCESSES: &str = "kernel-processes";

/// A of the quick form: every region of his table, denser where his curves cross.
const QUICK: [i64; 10] = [
    100, 1000, 4000, 8000, 16_000, 20_000, 22_000, 24_000, 28_000, 30_000,
];
/// A at which all algorithms run in the quick form.
const ALL_AT: [i64; 3] = [1000, 22_000, 32_700];
/// A at which whole passes are timed.
const PASSES_AT: [i64; 1] = [22_000];
/// The algorithms whose curves may cross.
pub(super) const CROSSING: [&str; 5] = [
    "algo-0",
    "algo-1",
    "algo-1-locked",
    "algo-2",
    "algo-2-locked",
];
/// The others that walk the list.
const WALKING: [&str; 6] = [
    "algo-1-post",
    "algo-2-post",
    "algo-2-256",
    "algo-2-256-post",
    "adaptive",
    "andrea",
];
/// Those that keep a map.
pub(super) const KEEPING: [&str; 4] = ["bill", "pidmap", "idr", "larder"];
/// Crates of others, where they fit, and what keeps a map.
const CRATES: [&str; 9] = [
    "crate-roaring",
    "crate-range-set-blaze",
    "crate-hibitset",
    "crate-id-pool",
    "crate-slab",
    "crate-slotmap",
    "crate-sharded-slab",
    "pidmap",
    "larder",
];
/// Numbers of live ids at which reuse is looked at.
pub(super) const REUSE_AT: [i64; 3] = [1000, 22_000, 32_700];
/// Open descriptors.
const OPEN: [i64; 3] = [100, 1000, 15_000];
/// Shares of the ports in use, in hundredths of a percent.
const PORT_LEVELS: [i64; 3] = [100, 9000, 9900];
/// Shares of the process ids in use.
const PROCESS_LEVELS: [i64; 2] = [100, 9500];

/// A timed cell of his workload.
pub(super) fn cell(contestant: &str, tasks: i64, deletes: i64, rounds: i64, memory: &str) -> Cell {
    started(contestant, tasks, deletes, rounds, memory, "aged")
}

fn started(
    contestant: &str,
    tasks: i64,
    deletes: i64,
    rounds: i64,
    memory: &str,
    start: &str,
) -> Cell {
    Cell::new(
        contestant,
        Params::new()
            .with("tasks", tasks)
            .with("deletes", deletes)
            .with("rounds", rounds)
            .with_text("memory", memory)
            .with_text("start", start),
    )
}

/// The plan. `contestants` are those of this build.
pub(super) fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let quick = request.depth == Depth::Quick;
    let work = if quick { quick_work } else { his_work };
    let mut plan = Plan::default();
    plan.groups.push(counts());
    plan.groups.push(near(quick, work));
    plan.groups.extend(elsewhere::groups(quick));
    plan.groups.push(passes(quick));
    plan.groups.push(fresh(quick));
    peers(&mut plan, contestants, quick);
    plan.groups.push(reuse());
    plan.groups.push(large_group(quick));
    if !quick {
        plan.groups.push(last());
    }
    kernel(&mut plan, contestants, quick);
    for (what, why) in large::LEFT_OUT {
        plan.skipped.push(Skipped {
            what: what.to_owned(),
            why: why.to_owned(),
        });
    }
    if quick {
        plan.skipped.push(Skipped {
            what: "his 87 numbers of tasks with his ten rounds, the last id, and 2^32 ids".to_owned(),
            why: format!(
                "the quick form times {} of his A with fewer allocations; one allocation of algo-0 near 32767 takes up to seconds. Run with --full",
                QUICK.len() + 1
            ),
        });
    }
    plan
}

/// What is counted: the same on every machine and in every round, so one suffices; the twin shows that it is so.
fn counts() -> Group {
    let first: Vec<i64> = harness::batches()
        .iter()
        .filter_map(|batch| batch.tasks.first().map(|a| i64::from(*a)))
        .collect();
    let mut cells = Vec::new();
    for (series, _) in POSTED {
        let of = |contestant: &str, first: i64| {
            Cell::new(
                contestant,
                Params::new()
                    .with("first", first)
                    .with_text("series", series),
            )
        };
        cells.extend(first.iter().map(|a| of("replay", *a)));
        // The average is of the rows from 1000 to 30000.
        if series != "algo-2-256" {
            cells.push(of("average", 1000));
        }
    }
    for (rule, _) in VARIANTS {
        cells.push(Cell::new(
            "variant",
            Params::new().with("first", 1000).with_text("rule", rule),
        ));
    }
    Group {
        name: COUNTS.to_owned(),
        reference: cells[0].clone(),
        cells,
        metric: "searches",
        min_rounds: 1,
        max_rounds: 1,
        target: 0.05,
        round_guess: Duration::from_millis(2500),
    }
}

fn near(quick: bool, work: impl Fn(i64) -> (i64, i64)) -> Group {
    let mut cells = Vec::new();
    let mut add = |name: &str, a: i64| {
        let (d, r) = work(a);
        cells.push(cell(name, a, d, r, "near"));
    };
    if quick {
        for a in QUICK {
            CROSSING[..4].iter().for_each(|name| add(name, a));
        }
        for a in ALL_AT {
            if !QUICK.contains(&a) {
                CROSSING[..4].iter().for_each(|name| add(name, a));
            }
            WALKING.iter().chain(&KEEPING).for_each(|name| add(name, a));
        }
    } else {
        for a in his_tasks() {
            for name in CROSSING.iter().chain(&WALKING).chain(&KEEPING) {
                add(name, a);
            }
        }
    }
    let near = group(
        NEAR,
        cells,
        "us_per_alloc",
        quick,
        if quick { 1600 } else { 240_000 },
    );
    // Where a round takes minutes, six may do.
    Group {
        min_rounds: 6,
        target: 0.05,
        ..near
    }
}

fn passes(quick: bool) -> Group {
    let mut cells = Vec::new();
    for memory in ["near", "scattered", "packed"] {
        for a in PASSES_AT {
            for name in ["compare-pass", "mark-pass", "mark-pass-locked"] {
                cells.push(Cell::new(
                    name,
                    Params::new().with("tasks", a).with_text("memory", memory),
                ));
            }
        }
    }
    group(PASSES, cells, "ns_per_task", quick, 200)
}

fn fresh(quick: bool) -> Group {
    let cells = [1000, 22_000]
        .into_iter()
        .flat_map(|a| {
            ["algo-0", "algo-1", "algo-2", "pidmap", "larder"]
                .map(|name| started(name, a, 1000, 10, "near", "fresh"))
        })
        .collect();
    group(FRESH, cells, "us_per_alloc", quick, 150)
}

/// The crates under his workload. The list is not walked, so each plays 5000 allocations.
fn peers(plan: &mut Plan, contestants: &[Box<dyn Contestant>], quick: bool) {
    let here = |name: &str| contestants.iter().any(|c| c.name() == name);
    if !CRATES.into_iter().all(here) {
        plan.skipped.push(Skipped {
            what: PEERS.to_owned(),
            why: "this program was built without the crates of others; build with the default features to compare with them".to_owned(),
        });
        return;
    }
    let of = |name: &str, a: i64| cell(name, a, (32_767 - a).min(500), 10, "near");
    let cells: Vec<Cell> = ALL_AT
        .into_iter()
        .flat_map(|a| CRATES.map(|name| of(name, a)))
        .collect();
    plan.groups.push(Group {
        reference: of("pidmap", ALL_AT[0]),
        ..group(PEERS, cells, "us_per_alloc", quick, 250)
    });
}

fn reuse() -> Group {
    let mut cells = Vec::new();
    for (rule, _, _) in RULES {
        for live in REUSE_AT {
            // algo-0 walks the list in every search: fewer turns where searches are long.
            let walks = matches!(rule, "algo-0" | "algo-1-post" | "algo-2");
            if walks && live > 1000 {
                continue;
            }
            cells.push(Cell::new(
                "reuse",
                Params::new()
                    .with_text("rule", rule)
                    .with("live", live)
                    .with("churns", 100_000),
            ));
        }
    }
    Group {
        name: REUSE.to_owned(),
        reference: cells[0].clone(),
        cells,
        metric: "median",
        min_rounds: 1,
        max_rounds: 1,
        target: 0.05,
        round_guess: Duration::from_millis(500),
    }
}

fn large_group(quick: bool) -> Group {
    let cell = |name: &str, bits: i64, used: i64| {
        Cell::new(name, Params::new().with("bits", bits).with("used", used))
    };
    let mut cells = Vec::new();
    for name in ["large-pidmap", "large-idr", "large-larder"] {
        // The tree takes longest to fill; in the quick form once is enough to see where it stands.
        let levels = LEVELS
            .iter()
            .filter(|used| !quick || name != "large-idr" || **used == 5000);
        cells.extend(levels.map(|used| cell(name, 22, *used)));
    }
    if !quick {
        for name in ["large-pidmap", "large-larder"] {
            cells.extend(LEVELS.map(|used| cell(name, 32, used)));
        }
    }
    let reference = cell("large-pidmap", 22, 5000);
    Group {
        reference,
        ..group(
            LARGE,
            cells,
            "ns_per_alloc",
            quick,
            if quick { 500 } else { 45_000 },
        )
    }
}

/// algo-0 where two ids are free, as in the last row of his table, against the maps.
fn last() -> Group {
    let mut cells = vec![cell("algo-0", 32_767, 1, 2, "near")];
    for name in ["pidmap", "larder"] {
        cells.push(cell(name, 32_767, 1, 1000, "near"));
    }
    Group {
        reference: cell("larder", 32_767, 1, 1000, "near"),
        min_rounds: 6,
        max_rounds: 10,
        ..group(LAST, cells, "us_per_alloc", false, 8000)
    }
}

fn kernel(plan: &mut Plan, contestants: &[Box<dyn Contestant>], quick: bool) {
    let of = |name: &str, factor: &str, values: &[i64]| -> Vec<Cell> {
        values
            .iter()
            .map(|v| Cell::new(name, Params::new().with(factor, *v)))
            .collect()
    };
    for (name, cells) in [
        (DESCRIPTORS, of(DESCRIPTORS, "open", &OPEN)),
        (PORTS, of(PORTS, "used", &PORT_LEVELS)),
        (PROCESSES, of(PROCESSES, "used", &PROCESS_LEVELS)),
    ] {
        let Some(contestant) = contestants.iter().find(|c| c.name() == name) else {
            continue;
        };
        match contestant.available() {
            Ok(()) => plan
                .groups
                .push(group(name, cells, "us_per_alloc", quick, 80)),
            Err(why) => plan.skipped.push(Skipped {
                what: name.to_owned(),
                why,
            }),
        }
    }
}

pub(super) fn group(
    name: &str,
    cells: Vec<Cell>,
    metric: &'static str,
    quick: bool,
    guess_ms: u64,
) -> Group {
    let (min_rounds, max_rounds, target) = if quick { (6, 6, 0.05) } else { (10, 10, 0.02) };
    Group {
        name: name.to_owned(),
        // The first is of the smallest space, so that its twin takes no time.
        reference: cells[0].clone(),
        cells,
        metric,
        min_rounds,
        max_rounds,
        target,
        round_guess: Duration::from_millis(guess_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MachineRecord;

    fn plan_of(depth: Depth) -> Plan {
        let machine = MachineRecord::default();
        plan(
            &PlanRequest {
                depth,
                machine: &machine,
                seed: 1,
            },
            &super::super::contestants(),
        )
    }

    #[test]
    fn cells_are_unique_known_and_hold_their_reference() {
        let known: Vec<&str> = super::super::contestants()
            .iter()
            .map(|c| c.name())
            .collect();
        for depth in [Depth::Quick, Depth::Full] {
            for group in plan_of(depth).groups {
                assert!(group.cells.contains(&group.reference), "{}", group.name);
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
                assert!(cells.iter().all(|c| known.contains(&c.contestant.as_str())));
            }
        }
    }

    #[test]
    fn full_has_all_of_his_rows_and_the_last_id() {
        let plan = plan_of(Depth::Full);
        let near = plan.groups.iter().find(|g| g.name == NEAR).unwrap();
        let of = |name: &str| near.cells.iter().filter(|c| c.contestant == name).count();
        assert_eq!((of("algo-0"), of("larder")), (87, 87));
        assert!(plan.groups.iter().any(|g| g.name == LAST));
        assert!(
            plan.skipped
                .iter()
                .any(|s| s.why.contains("walks every task"))
        );
    }

    #[test]
    fn quick_takes_half_a_minute_at_most() {
        let guess: Duration = plan_of(Depth::Quick)
            .groups
            .iter()
            .map(|group| group.round_guess * group.max_rounds)
            .sum();
        assert!(guess < Duration::from_secs(30), "{guess:?}");
    }
}
