//! Which cells run, quick and full.

use std::time::Duration;

use crate::measure::{Depth, Group, Plan};
use crate::model::{Cell, Params, Skipped};

/// Names of the groups.
pub(super) const THREADED: &str = "threads";
pub(super) const MISS: &str = "miss";
pub(super) const MEMORY: &str = "memory";
pub(super) const INSTRUCTIONS: &str = "instructions";

/// The library's.
pub(super) const OURS: &str = "larder";

/// Today's crates; the first three may be used by several threads.
pub(super) const PEERS: [&str; 5] = ["quick", "quick-arc", "moka", "quick-unsync", "hashlink"];
const SHARED: usize = 3;

/// Threads of the group of threads.
pub(super) const THREADS: [i64; 2] = [1, 2];

/// Blocks of the groups of hits. 32,768 pages are 128 MiB; 1,048,576 are 4 GiB, of which no byte is touched.
pub(super) fn sizes(depth: Depth) -> [i64; 2] {
    match depth {
        Depth::Quick => [1 << 15, 1 << 18],
        Depth::Full => [1 << 15, 1 << 20],
    }
}

/// Every size that a run may have.
pub(super) const SIZES: [i64; 3] = [1 << 15, 1 << 18, 1 << 20];

/// Name of the group of hits among so many blocks.
pub(super) fn hit_group(blocks: i64) -> String {
    format!("hit-{blocks}")
}

fn shape(name: &str, blocks: i64) -> Params {
    Params::new()
        .with_text("shape", name)
        .with("blocks", blocks)
}

/// The plan. `names` are the contestants that this build has.
pub(super) fn plan(depth: Depth, names: &[&str]) -> Plan {
    let quick = depth == Depth::Quick;
    let mut plan = Plan::default();
    let has = |name: &&str| names.contains(name);
    let all: Vec<&str> = [OURS].into_iter().chain(PEERS).filter(has).collect();
    let shared: Vec<&str> = [OURS]
        .into_iter()
        .chain(PEERS.into_iter().take(SHARED))
        .filter(has)
        .collect();
    let rounds = if quick { (6, 6) } else { (15, 33) };
    let mut add = |name: &str, metric, cells: Vec<Cell>, reference: Cell, (quickly, fully)| {
        plan.groups.push(Group {
            name: name.to_owned(),
            reference,
            metric,
            cells,
            min_rounds: rounds.0,
            max_rounds: rounds.1,
            target: 0.05,
            round_guess: Duration::from_secs_f64(if quick { quickly } else { fully }),
        });
    };

    for blocks in sizes(depth) {
        let large = blocks > 1 << 15;
        let turns = match (quick, large) {
            (true, false) => 400_000,
            (true, true) => 600_000,
            (false, _) => 10_000_000,
        };
        let cell = |name: &str| Cell::new(name, shape("hit", blocks).with("turns", turns));
        let mut cells: Vec<Cell> = all
            .iter()
            // Filling it takes a second.
            .filter(|name| !(quick && large && **name == "moka"))
            .map(|name| cell(name))
            .collect();
        cells.push(cell("loop"));
        let guess = if large { (0.75, 12.0) } else { (0.5, 3.0) };
        add(&hit_group(blocks), "ns_per_hit", cells, cell(OURS), guess);
    }

    let milliseconds = if quick { 15 } else { 1000 };
    let cell = |name: &str, threads: i64| {
        let params = shape("threads", 1 << 15)
            .with("threads", threads)
            .with("milliseconds", milliseconds);
        Cell::new(name, params)
    };
    let cells = shared
        .iter()
        .filter(|name| !(quick && **name == "moka"))
        .flat_map(|name| THREADS.map(|threads| cell(name, threads)))
        .collect();
    add(THREADED, "mops_per_s", cells, cell(OURS, 1), (0.2, 10.0));

    let turns = if quick { 30_000 } else { 1_000_000 };
    let cell = |name: &str| Cell::new(name, shape("miss", 1 << 13).with("turns", turns));
    let cells = all.iter().map(|name| cell(name)).collect();
    add(MISS, "ns_per_miss", cells, cell(OURS), (0.1, 5.0));

    let blocks = if quick { 1 << 15 } else { 1 << 17 };
    let cell = |name: &str| Cell::new(name, shape("memory", blocks));
    let cells = all
        .iter()
        .filter(|name| !(quick && **name == "moka"))
        .map(|name| cell(name))
        .collect();
    add(MEMORY, "bytes_per_block", cells, cell(OURS), (0.1, 2.0));

    if quick {
        plan.skipped.push(Skipped {
            what: "1,048,576 blocks, instructions, and moka in three groups".to_owned(),
            why: "the quick form takes 262,144 blocks instead; run with --full, about ten minutes"
                .to_owned(),
        });
    } else {
        match crate::measure::callgrind::available() {
            Ok(()) => {
                let cell = |name: &str| {
                    let params = Params::new().with_text("cache", name);
                    Cell::new("instructions", params)
                };
                let cells = all.iter().chain(&["loop"]).map(|name| cell(name)).collect();
                plan.groups.push(Group {
                    name: INSTRUCTIONS.to_owned(),
                    reference: cell(OURS),
                    metric: "instructions",
                    cells,
                    min_rounds: 1,
                    max_rounds: 1,
                    target: 0.05,
                    round_guess: Duration::from_secs(20),
                });
            }
            Err(why) => plan.skipped.push(Skipped {
                what: "instructions".to_owned(),
                why,
            }),
        }
    }
    plan
}
