//! SQLite on its own page cache and on larder's.
//!
//! SQLite takes a page cache once, before it begins, so each contestant needs the fresh process that the lab gives it. The lab's own
//! database keeps SQLite's cache: nothing is installed in the process that has it.

mod loads;
mod report;
#[cfg(test)]
mod tests;

use larder_sqlite::Config;

use crate::frame::{Declared, Planner, bench, cross};
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{Metric, Params};

/// SQLite's own page cache.
const OWN: &str = "sqlite";
/// The rule that an installed cache has by default.
const DEFAULT: &str = "adaptive";
/// Rules that run beside it where there is no time for all.
const SOME: [&str; 4] = ["lru", "s3-fifo", "lirs", "w-tinylfu"];

// The groups, which are also the loads of their cells.
const HITS: &str = "hits";
const MIXED: &str = "mixed";
const TRANSACTION: &str = "transaction";
const MISSES: &str = "misses";
const MEMORY: &str = "memory";

const THREADS: [i64; 2] = [1, 2];

/// Lookups of the group of misses, and the sizes of the cache in MB with which each is made.
const LOOKUPS: [(&str, &[i64]); 6] = [
    (loads::POINT, &[10, 25, 50]),
    (loads::INDEX, &[10, 25, 50]),
    (loads::SCAN, &[10, 25, 50]),
    (loads::SMALL, &[10, 25, 50]),
    (loads::ORDER, &[10, 25, 50]),
    (loads::LOOP, &[10]),
];
/// The quick form divides rows, lookups and cache by it.
const SCALE: i64 = 16;

const NS: &str = "ns_per_lookup";
const MS: &str = "ms";
const PAGES: &str = "misses";
const GIVEN: &str = "given_back";
const LOCKED: &str = "locked";

const METRICS: &[Metric] = &[
    Metric::cost(
        NS,
        "ns",
        "wall time of a lookup by primary key whose pages are all in the cache, by each thread",
    ),
    Metric::cost(MS, "ms", "CPU time of the load"),
    Metric::cost(
        PAGES,
        "pages",
        "pages that SQLite asked for and that were not in its cache; a count, the same in every round",
    ),
    Metric::rate(
        GIVEN,
        "%",
        "of the memory that 16 filled caches took, what goes back when 15 of them are released",
    ),
    Metric::count(
        LOCKED,
        "",
        "1 if SQLite was built with SQLITE_ENABLE_MEMORY_MANAGEMENT, which locks its own cache at each page",
    ),
];

/// The experiment `sqlite`.
pub const SQLITE: Declared = Declared {
    name: "sqlite",
    title: "SQLite's page cache",
    source: "SQLite's own page cache, pcache1, measured in the same rounds",
    question: "What does SQLite gain from larder's page cache, in time, in pages read and in memory?",
    metrics: METRICS,
    contestants,
    brief: Some(&[HITS, MIXED, MEMORY]),
    plan,
    afresh: None,
    analyse: report::of,
};

/// SQLite's cache, and larder's with each rule.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let own = bench(OWN, "SQLite's own page cache, with LRU", loads::run);
    let rules = larder_policy::rules().iter().map(|rule| {
        bench(rule.name, rule.about, move |params| {
            // SAFETY: this process was made for this call, and has one thread.
            unsafe { larder_sqlite::install(&Config::new().rule(rule.name))? };
            loads::run(params)
        })
    });
    [own].into_iter().chain(rules).collect()
}

fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let mut plan = Planner::new(request, contestants, (6, 8, 0.05), (15, 33, 0.02));
    let quick = plan.quick();
    let two = [OWN, DEFAULT];
    let some = [&two[..], &SOME].concat();
    let all: Vec<&str> = contestants.iter().map(|c| c.name()).collect();
    let names = plan.either(&two[..], &some[..]);
    let load = |name: &str| Params::new().with_text("load", name);

    let (lookups, seconds) = plan.either((50_000, 0.45), (1_000_000, 16.0));
    let params = THREADS.map(|n| load(HITS).with("threads", n).with("lookups", lookups));
    plan.group(HITS, NS, OWN, seconds, cross(names, &params));

    let (rows, seconds) = plan.either((12_000, 0.55), (60_000, 14.0));
    let params = [load(MIXED).with("rows", rows)];
    plan.group(MIXED, MS, OWN, seconds, cross(names, &params));

    let (mb, seconds) = plan.either((2, 0.25), (16, 2.0));
    let params = [load(MEMORY).with("mb", mb)];
    plan.group(MEMORY, GIVEN, OWN, seconds, cross(&two, &params))
        .rounds((6, 6, 0.05));

    let (scale, seconds) = plan.either((SCALE, 1.0), (1, 60.0));
    let rounds = plan.either((6, 6, 0.05), (6, 10, 0.02));
    let params = [load(TRANSACTION).with("mb", 10).with("scale", scale)];
    let rules = plan.either(&some, &all);
    plan.group(TRANSACTION, MS, OWN, seconds, cross(rules, &params))
        .rounds(rounds);

    let mut cells = Vec::new();
    for (lookups, sizes) in LOOKUPS {
        for mb in sizes {
            let params = load(MISSES).with_text("lookups", lookups);
            let params = params.with("mb", *mb).with("scale", scale);
            cells.extend(cross(names, &[params]));
        }
    }
    let seconds = plan.either(10.0, 900.0);
    plan.group(MISSES, PAGES, OWN, seconds, cells)
        .rounds((1, 1, 0.05));
    if quick {
        plan.skip(
            "a database of 480 MB, and every rule",
            "the quick form has a 16th of its rows, lookups and cache; run with --full, which plans half an hour",
        );
    }
    plan.finish()
}
