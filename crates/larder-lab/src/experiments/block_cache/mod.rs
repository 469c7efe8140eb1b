//! What a hit in the block cache costs, and what a cached page costs in memory, against today's crates.

mod memory;
mod report;
mod shapes;
#[cfg(test)]
mod tests;

use anyhow::bail;

use crate::contestants::block_cache::{Blocks, Larder, SharedBlocks};
use crate::frame::{Counted, Declared, Planner, bench, cross};
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{Measures, Metric, Params};

/// Names of the groups; [`hit_group`] has those of hits.
const THREADED: &str = "threads";
const MISS: &str = "miss";
const MEMORY: &str = "memory";
const INSTRUCTIONS: &str = "instructions";

/// The library's.
const OURS: &str = "larder";

/// Today's crates; the first three may be used by several threads.
const PEERS: [&str; 5] = ["quick", "quick-arc", "moka", "quick-unsync", "hashlink"];
const SHARED: usize = 3;

/// Threads of the group of threads.
const THREADS: [i64; 2] = [1, 2];

/// Blocks of the groups of hits: the first in both forms, the second in the quick one, the last in the full one. 32,768 pages are
/// 128 MiB; 1,048,576 are 4 GiB, of which no byte is touched.
const SIZES: [i64; 3] = [1 << 15, 1 << 18, 1 << 20];

/// Name of the group of hits among this many blocks.
fn hit_group(blocks: i64) -> String {
    format!("hit-{blocks}")
}

const METRICS: &[Metric] = &[
    Metric::cost(
        "ns_per_hit",
        "ns",
        "CPU time of one get of a block that is there, with drawing its number",
    ),
    Metric::rate(
        "mops_per_s",
        "Mop/s",
        "gets by all threads together, million per second",
    ),
    Metric::cost(
        "ns_per_miss",
        "ns",
        "CPU time of one use of a block that is not there, for which another one leaves: by the cache's own loading call, if it has one",
    ),
    Metric::cost(
        "bytes_per_block",
        "B",
        "growth of the process's own memory, without pages, for each block that is in, after three times as many came",
    ),
    Metric::count(
        "said_bytes_per_block",
        "B",
        "the same as the cache itself says",
    ),
    Metric::cost(
        INSTRUCTIONS,
        "",
        "instructions of one hit with the loop around it, counted by callgrind",
    ),
];

/// The experiment `block-cache`.
pub const BLOCK_CACHE: Declared = Declared {
    name: "block-cache",
    title: "A hit in the block cache",
    source: "the crates quick_cache, hashlink and moka, measured in the same rounds",
    question: "What does a block that is in memory cost, in time and in bytes, here and in today's caches?",
    metrics: METRICS,
    contestants,
    brief: // Filling the larger cache takes most of the time, and with fewer than six rounds no group has a verdict.
Some(&["hit-32768", THREADED, MISS, MEMORY]),
    plan,
    afresh: None,
    analyse: report::of,
};

/// Every contestant, in the order of the tables.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let mut all = vec![
        bench(
            OURS,
            "BlockCache with its default rule: a get is a guard that pins the block, and its end",
            ours,
        ),
        bench(
            "loop",
            "the loop alone: a number is drawn and nothing looked up",
            shapes::empty,
        ),
    ];
    #[cfg(feature = "peers")]
    {
        use crate::contestants::block_cache::{HashLink, Moka, Quick, QuickArc, QuickUnsync};
        all.extend([
            bench(
                "quick",
                "quick_cache's sync::Cache<u64, u32>: a copy of the value, nothing pinned",
                shared::<Quick>,
            ),
            bench(
                "quick-arc",
                "quick_cache's sync::Cache<u64, Arc<u64>>: the value stays while the Arc is held",
                shared::<QuickArc>,
            ),
            bench(
                "quick-unsync",
                "quick_cache's unsync::Cache<u64, u32>: one thread, nothing pinned",
                alone::<QuickUnsync>,
            ),
            bench(
                "hashlink",
                "hashlink's LruCache<u64, u32>: one thread, nothing pinned",
                alone::<HashLink>,
            ),
            bench(
                "moka",
                "moka's sync::Cache<u64, u32>: a copy of the value, nothing pinned",
                shared::<Moka>,
            ),
        ]);
    }
    all.push(Box::new(Counted {
        about: "instructions of one hit of the named cache, counted by callgrind",
        experiment: "block-cache",
        factor: "cache",
        pieces: 1_000_000,
        warm_share: shapes::WARM_SHARE,
        params: |turns| shape("hit", SIZES[0]).with("turns", turns),
    }));
    all
}

fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let mut plan = Planner::new(request, contestants, (6, 8, 0.05), (15, 33, 0.05));
    let quick = plan.quick();
    let caches = |count: usize| -> Vec<&str> {
        let peers = PEERS.into_iter().take(count);
        // Filling it takes longer than all the others together.
        let peers = peers.filter(|name| !(quick && *name == "moka"));
        [OURS].into_iter().chain(peers).collect()
    };
    let (all, shared) = (caches(PEERS.len()), caches(SHARED));

    let sizes = plan.either(
        [(SIZES[0], 400_000, 0.24), (SIZES[1], 600_000, 0.75)],
        [(SIZES[0], 10_000_000, 3.0), (SIZES[2], 10_000_000, 12.0)],
    );
    for (blocks, turns, seconds) in sizes {
        let params = shape("hit", blocks).with("turns", turns);
        let cells = cross(&[&all[..], &["loop"]].concat(), &[params]);
        plan.group(&hit_group(blocks), "ns_per_hit", OURS, seconds, cells);
    }

    let (milliseconds, seconds) = plan.either((15, 0.35), (1000, 10.0));
    let threads = THREADS.map(|threads| {
        let params = shape("threads", SIZES[0]).with("threads", threads);
        params.with("milliseconds", milliseconds)
    });
    plan.group(
        THREADED,
        "mops_per_s",
        OURS,
        seconds,
        cross(&shared, &threads),
    );

    let (turns, seconds) = plan.either((30_000, 0.12), (1_000_000, 5.0));
    let params = shape("miss", 1 << 13).with("turns", turns);
    plan.group(MISS, "ns_per_miss", OURS, seconds, cross(&all, &[params]));

    let (blocks, seconds) = plan.either((SIZES[0], 0.16), (1 << 17, 2.0));
    let cells = cross(&all, &[shape("memory", blocks)]);
    plan.group(MEMORY, "bytes_per_block", OURS, seconds, cells);

    if quick {
        plan.skip(
            "1,048,576 blocks, moka and instructions",
            "the quick form takes 262,144 blocks instead, and moka is slow to fill; run with --full, about ten minutes",
        );
    } else {
        plan.instructions("cache", &[&all[..], &["loop"]].concat());
    }
    plan.finish()
}

fn shape(name: &str, blocks: i64) -> Params {
    Params::new()
        .with_text("shape", name)
        .with("blocks", blocks)
}

fn ours(params: &Params) -> anyhow::Result<Measures> {
    match params.text("shape")? {
        "memory" => memory::with(params, |cache: &Larder| Some(cache.table_bytes())),
        _ => shared::<Larder>(params),
    }
}

/// Caches for one thread.
fn alone<B: Blocks>(params: &Params) -> anyhow::Result<Measures> {
    match params.text("shape")? {
        "hit" => shapes::hit::<B>(params),
        "miss" => shapes::miss::<B>(params),
        "memory" => memory::with::<B>(params, |_| None),
        other => bail!("shape '{other}' is unknown; the shapes are hit, miss and memory"),
    }
}

/// Caches for many threads.
fn shared<B: SharedBlocks>(params: &Params) -> anyhow::Result<Measures> {
    match params.text("shape")? {
        "threads" => shapes::threads::<B>(params),
        _ => alone::<B>(params),
    }
}
