//! Which cells run, quick and full.

use std::time::Duration;

use crate::measure::{Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

/// Our contestants: per CPU and per handle.
pub(super) const OURS: [&str; 2] = ["pool", "pool-handle"];

/// The peers that goals are stated against.
pub(super) const PEERS: [&str; 3] = ["malloc", "mimalloc", "jemalloc"];

/// Depths of the zeroed groups.
pub(super) const ZEROED_DEPTHS: [i64; 3] = [1, 64, 256];

/// Numbers of threads.
pub(super) const THREADS: [i64; 4] = [1, 2, 8, 64];

pub(super) const PAIR: &str = "pair";
pub(super) const DEEP: &str = "deep-256";
pub(super) const HANDOVER: &str = "handover";
pub(super) const THREADED: &str = "threads";
pub(super) const GROWTH: &str = "growth";
pub(super) const INSTRUCTIONS: &str = "instructions";

/// Name of a zeroed group.
pub(super) fn zeroed_group(depth: i64) -> String {
    format!("zeroed-{depth}")
}

/// A cell by contestant, shape and whole-number factors.
pub(super) fn cell(contestant: &str, shape: &str, factors: &[(&str, i64)]) -> Cell {
    let params = factors.iter().fold(
        Params::new().with_text("shape", shape),
        |params, (name, value)| params.with(name, *value),
    );
    Cell::new(contestant, params)
}

/// How many pages each group handles, by depth of the run.
struct Counts {
    pair: i64,
    deep: i64,
    zeroed: i64,
    handover: i64,
    /// Milliseconds, not pages.
    threads: i64,
}

const QUICK: Counts = Counts {
    pair: 2_000_000,
    deep: 500_000,
    zeroed: 200_000,
    handover: 200_000,
    threads: 60,
};

const FULL: Counts = Counts {
    pair: 10_000_000,
    deep: 2_000_000,
    zeroed: 1_000_000,
    handover: 2_000_000,
    threads: 300,
};

/// Seconds of one long handover; with its twin and six rounds they are ten minutes.
const GROWTH_SECONDS: i64 = 50;

/// The plan. `names` are the contestants that this build has and that can run.
pub(super) fn plan(request: &PlanRequest<'_>, names: &[&str]) -> Plan {
    let quick = request.depth == Depth::Quick;
    let counts = if quick { &QUICK } else { &FULL };
    let has = |name: &&str| names.contains(name);
    let reference = if has(&"mimalloc") {
        "mimalloc"
    } else {
        "malloc"
    };
    let ours_and = |others: &[&'static str]| -> Vec<&'static str> {
        OURS.iter().chain(others).copied().filter(has).collect()
    };
    // malloc pays the kernel for nearly every page once many are out: the quick form leaves it to the pairs.
    let deep_peers: &[&'static str] = if quick && reference == "mimalloc" {
        &["mimalloc", "jemalloc"]
    } else {
        &PEERS
    };
    let mut builder = Builder {
        quick,
        reference,
        groups: Vec::new(),
    };
    let pages = ("pages", counts.pair);
    let mut pair = ours_and(&PEERS);
    pair.extend(["array-stack", "empty-loop"]);
    builder.group(PAIR, &pair, "pair", &[&[pages]], 0.7);

    let factors = [("pages", counts.deep), ("depth", 256)];
    let mut deep = ours_and(deep_peers);
    deep.push("array-stack");
    builder.group(DEEP, &deep, "deep", &[&factors], 0.8);

    for depth in ZEROED_DEPTHS {
        let factors = [("pages", counts.zeroed), ("depth", depth)];
        let mut zeroed = ours_and(if depth == 1 { &PEERS } else { deep_peers });
        zeroed.push("memset");
        builder.group(&zeroed_group(depth), &zeroed, "zeroed", &[&factors], 0.5);
    }

    let factors = [("pages", counts.handover)];
    builder.group(
        HANDOVER,
        &ours_and(deep_peers),
        "handover",
        &[&factors],
        0.5,
    );

    let variants = THREADS.map(|n| [("milliseconds", counts.threads), ("threads", n)]);
    let variants: Vec<&[(&str, i64)]> = variants.iter().map(<[_; 2]>::as_slice).collect();
    // The bare stack shows how far the machine itself scales.
    let mut threaded = ours_and(deep_peers);
    threaded.push("array-stack");
    builder.group(THREADED, &threaded, "threads", &variants, 2.0);
    let mut plan = Plan {
        groups: builder.groups,
        ..Plan::default()
    };
    if !quick && has(&"pool") {
        plan.groups.push(growth());
    }
    instructions(&mut plan, names, quick);
    #[cfg(not(feature = "peers"))]
    plan.skipped.push(Skipped {
        what: "mimalloc and jemalloc".to_owned(),
        why: "this program was built without them; build with the default features to compare with them".to_owned(),
    });
    if quick {
        plan.skipped.push(Skipped {
            what: "memory over ten minutes".to_owned(),
            why: "the quick form looks at memory for a moment only; run with --full for ten minutes of handing pages over".to_owned(),
        });
    }
    plan
}

struct Builder {
    quick: bool,
    reference: &'static str,
    groups: Vec<Group>,
}

impl Builder {
    /// A group of all contestants under all variants of the factors. `seconds` is a guess of one round in quick form.
    fn group(
        &mut self,
        name: &str,
        contestants: &[&str],
        shape: &str,
        variants: &[&[(&str, i64)]],
        seconds: f64,
    ) {
        let cells = contestants
            .iter()
            .flat_map(|contestant| {
                variants
                    .iter()
                    .map(|factors| cell(contestant, shape, factors))
            })
            .collect();
        let (min_rounds, max_rounds, target) = if self.quick {
            (6, 10, 0.05)
        } else {
            (15, 33, 0.02)
        };
        let scale = if self.quick { 1.0 } else { 6.0 };
        let first = variants.first().copied().unwrap_or_default();
        self.groups.push(Group {
            name: name.to_owned(),
            metric: "ns_per_page",
            reference: cell(self.reference, shape, first),
            cells,
            min_rounds,
            max_rounds,
            target,
            round_guess: Duration::from_secs_f64(seconds * scale),
        });
    }
}

fn growth() -> Group {
    let cell = cell("pool", "handover", &[("seconds", GROWTH_SECONDS)]);
    Group {
        name: GROWTH.to_owned(),
        metric: "ns_per_page",
        reference: cell.clone(),
        cells: vec![cell],
        min_rounds: 6,
        max_rounds: 6,
        target: 0.02,
        round_guess: Duration::from_secs(2 * 50),
    }
}

/// Counting needs one round: the count does not depend on noise.
fn instructions(plan: &mut Plan, names: &[&str], quick: bool) {
    if let Err(why) = crate::measure::callgrind::available() {
        plan.skipped.push(Skipped {
            what: INSTRUCTIONS.to_owned(),
            why,
        });
        return;
    }
    let suppliers: &[&str] = if quick {
        &["pool-handle", "array-stack"]
    } else {
        &[
            "pool-handle",
            "pool",
            "array-stack",
            "malloc",
            "mimalloc",
            "jemalloc",
        ]
    };
    let cells: Vec<Cell> = suppliers
        .iter()
        .filter(|name| names.contains(name))
        .map(|name| Cell::new("instructions", Params::new().with_text("supplier", name)))
        .collect();
    if let Some(reference) = cells.first().cloned() {
        plan.groups.push(Group {
            name: INSTRUCTIONS.to_owned(),
            metric: "instructions",
            reference,
            round_guess: Duration::from_secs(4 * (cells.len() as u64 + 1)),
            cells,
            min_rounds: 1,
            max_rounds: 1,
            target: 0.05,
        });
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
        let request = PlanRequest {
            depth,
            machine: &machine,
            seed: 1,
        };
        plan(&request, &names)
    }

    #[test]
    fn groups_hold_their_reference_and_no_cell_twice() {
        for depth in [Depth::Quick, Depth::Full] {
            let plan = plan_of(depth);
            for group in &plan.groups {
                assert!(group.cells.contains(&group.reference), "{}", group.name);
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
            }
            for name in [
                PAIR,
                DEEP,
                HANDOVER,
                THREADED,
                "zeroed-1",
                "zeroed-64",
                "zeroed-256",
            ] {
                assert!(plan.groups.iter().any(|group| group.name == name), "{name}");
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
    fn quick_fits() {
        let guess: Duration = plan_of(Depth::Quick)
            .groups
            .iter()
            .map(|group| group.round_guess * group.min_rounds)
            .sum();
        assert!(guess < Duration::from_secs(60), "{guess:?}");
    }
}
