//! Blocks of every size: what one costs, there and back, from 16 bytes to 64 MiB, and where larder is furthest behind.
//!
//! The rows of other tables have a few chosen sizes. This experiment runs the same few loops at every size and shows the worst size
//! first. `plan` has the loops and their sizes, `turns` what is timed, `report` the results.

mod plan;
mod report;
mod turns;

use self::turns::Turns;
use super::allocators::{Work, peers, preloaded};
use crate::contestants::heaps::{LarderGlobal, LarderHeaps};
use crate::frame::{Declared, bench};
use crate::measure::Contestant;
use crate::model::Metric;

const NS: &str = "ns_per_op";
const WALL: &str = "wall_ns_per_op";
const PEAK: &str = "peak_bytes";
const ELSEWHERE: &str = "freed_elsewhere";

const METRICS: &[Metric] = &[
    Metric::cost(
        NS,
        "ns",
        "a block taken and one put back, or a block made larger: CPU time of all threads over the turns of all",
    ),
    Metric::cost(
        WALL,
        "ns",
        "the same by the time from the first thread's start to the last one's end",
    ),
    Metric::cost(
        PEAK,
        "B",
        "growth of resident memory at its highest, the live blocks included",
    ),
    Metric::count(
        ELSEWHERE,
        "",
        "of the blocks that another thread should free, the share that found room in its mailbox",
    ),
];

/// Larder's.
const OURS: [&str; 2] = ["heap", "global"];

/// Larder's malloc, preloaded.
const LARDER_PRELOADED: &str = "larder-preloaded";

/// The experiment `alloc-sweep`.
pub const ALLOC_SWEEP: Declared = Declared {
    name: "alloc-sweep",
    title: "Blocks of every size: where is an allocator slow?",
    source: "Bonwick and Adams, Magazines and Vmem, USENIX 2001: quantum caches make every size cost what a small one costs",
    question: "At which sizes does a block cost more than the best allocator asks, and how much more?",
    metrics: METRICS,
    contestants,
    brief: None,
    plan: plan::coarse,
    afresh: Some(plan::stage),
    analyse: report::of,
};

/// Every contestant, in the order of the tables.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let ours = [
        bench(
            "heap",
            "larder's explicit heap of the thread's own",
            |params| Turns::run(&LarderHeaps::new()?, params),
        ),
        bench(
            "global",
            "larder as Rust's global allocator: sized and aligned",
            |params| Turns::run(&LarderGlobal, params),
        ),
        preloaded::<Turns>(LARDER_PRELOADED, "liblarder_malloc.so, preloaded"),
    ];
    ours.into_iter().chain(peers::<Turns>()).collect()
}
