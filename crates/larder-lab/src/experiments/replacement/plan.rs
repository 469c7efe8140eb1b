//! The traces and the sizes of the caches.

use std::path::PathBuf;
use std::time::Duration;

use crate::measure::{Depth, Group, Plan};
use crate::model::{Cell, Params, Skipped};

use super::HITS;

/// Names of the groups.
pub(super) const MADE: &str = "made";
pub(super) const PUBLIC: &str = "public";
pub(super) const ELSEWHERE: &str = "elsewhere";

/// Where the public traces are.
pub(super) const VARIABLE: &str = "LARDER_TRACES";

/// Rules that are looked at apart.
pub(super) const DEFAULT: &str = "adaptive";
pub(super) const LRU: &str = "lru";
pub(super) const OPT: &str = "opt";

/// A trace or workload, and blocks of caches.
pub(super) type Sizes = (&'static str, &'static [i64]);

/// Workloads that need no trace.
const MADE_CELLS: &[Sizes] = &[
    ("zipf:blocks=50000,requests=300000,alpha=0.9", &[1000, 5000]),
    ("mixed:blocks=20000,requests=300000", &[2000]),
    ("loop:blocks=3000,requests=150000", &[2700]),
    ("correlated:blocks=20000,requests=300000", &[2000]),
    ("dbench-like:clients=4", &[3000]),
    ("build-like:units=60,grep-pages=20000", &[10_000]),
];

/// Twelve cells, those of one trace together; the last ones of the list are read slowly, and left out of the quick form.
const PUBLIC_CELLS: &[Sizes] = &[
    ("arc-OLTP.lis.zst", &[1000, 5000, 15_000]),
    ("cloudPhysicsIO.oracleGeneral.bin", &[4000, 10_000]),
    ("lirs-sprite.txt.gz", &[400]),
    ("lirs-loop.txt.gz", &[900]),
    ("arc-P3.lis.zst", &[32_768, 131_072]),
    ("cloudphysics-w106.u32be.xz", &[1000, 10_000, 33_764]),
];
const QUICK: usize = 4;

/// Traces that nothing was chosen by.
const ELSEWHERE_CELLS: &[Sizes] = &[
    ("lirs-multi1.txt.gz", &[1000]),
    ("lirs-multi2.txt.gz", &[2000]),
    ("lirs-2_pools.txt.gz", &[450]),
    ("lirs-cs.txt.gz", &[900]),
    ("lirs-gli.txt.gz", &[1000]),
    ("cache2k-orm-busy.i32be.xz", &[1000]),
    ("cache2k-web07.i32be.xz", &[1000]),
];

/// The folder with the traces, if one is named.
pub(super) fn folder() -> Option<PathBuf> {
    std::env::var_os(VARIABLE)
        .map(PathBuf::from)
        .filter(|folder| folder.is_dir())
}

/// Cells of a group, trace and size of each.
pub(super) fn all_cells(group: &str) -> Vec<(&'static str, i64)> {
    let list = match group {
        MADE => MADE_CELLS,
        PUBLIC => PUBLIC_CELLS,
        _ => ELSEWHERE_CELLS,
    };
    list.iter()
        .flat_map(|(trace, sizes)| sizes.iter().map(|size| (*trace, *size)))
        .collect()
}

/// The plan. `rules` are the contestants.
pub(super) fn plan(depth: Depth, rules: &[&str], folder: Option<PathBuf>) -> Plan {
    let mut plan = Plan::default();
    let cell = |rule: &str, (trace, size): (&str, i64)| {
        let params = Params::new().with_text("trace", trace).with("size", size);
        Cell::new(rule, params)
    };
    let quick = depth == Depth::Quick;
    let there = |name: &str| folder.as_ref().is_some_and(|f| f.join(name).is_file());
    for (name, seconds) in [(MADE, 8), (PUBLIC, 150), (ELSEWHERE, 60)] {
        let mut cells = all_cells(name);
        if name == PUBLIC && quick {
            let slow: Vec<&str> = PUBLIC_CELLS[QUICK..]
                .iter()
                .map(|(trace, _)| *trace)
                .collect();
            cells.retain(|(trace, _)| !slow.contains(trace));
        }
        if name != MADE {
            cells.retain(|(trace, _)| there(trace));
        }
        let (Some(first), false) = (cells.first(), name == ELSEWHERE && quick) else {
            continue;
        };
        plan.groups.push(Group {
            name: name.to_owned(),
            reference: cell(LRU, *first),
            metric: HITS,
            cells: cells
                .iter()
                .flat_map(|&at| rules.iter().map(move |rule| cell(rule, at)))
                .collect(),
            // Counts are the same in every round.
            min_rounds: 1,
            max_rounds: 1,
            target: 0.05,
            round_guess: Duration::from_secs(if quick { 5 } else { seconds }),
        });
    }
    if folder.is_none() {
        plan.skipped.push(Skipped {
            what: "public traces".to_owned(),
            why: format!(
                "{VARIABLE} names no folder that has them; see docs/experiments/replacement.md"
            ),
        });
    } else if quick {
        plan.skipped.push(Skipped {
            what: "P3, w106 and seven other traces".to_owned(),
            why: "they take minutes; run with --full".to_owned(),
        });
    }
    plan
}
