//! The workloads of the field, over today's allocators: time, peak and held memory, with a number of the owner in every
//! block.
//!
//! `work` has the workloads; `stamp` checks the ownership of blocks; `workload` runs and measures one.

pub(super) mod draw;
pub(super) mod handover;
pub(super) mod memory;
mod plan;
mod report;
mod stamp;
mod work;
pub(super) mod workload;

use super::allocators::{Work, classes, peers};
use crate::contestants::heaps::{Heaps, LarderGlobal, LarderHeaps, LarderPrivate};
use crate::frame::{Declared, bench};
use crate::measure::Contestant;
use crate::model::{Measures, Metric, Params};

pub use work::{ALL, run};
pub use workload::About;

/// The library's allocators.
const OURS: [&str; 3] = ["heap", "classes", "global"];

/// Heaps that die whole: only for interpreters.
const WHOLE: [&str; 2] = ["heap-whole", "mimalloc-heap"];

/// The workload in which heaps of their own take part.
const INTERPRETERS: &str = "interpreters";

const METRICS: &[Metric] = &[
    Metric::cost(
        "ns_per_op",
        "ns",
        "a block there and back: wall time over the operations of all threads",
    ),
    Metric::cost("cpu_ns_per_op", "ns", "the same by CPU time of all threads"),
    Metric::cost(
        "peak_bytes",
        "B",
        "growth of resident memory at its highest",
    ),
    Metric::cost(
        "held_bytes",
        "B",
        "growth of resident memory when every block is back and every thread has ended",
    ),
    Metric::rate(
        "path_share",
        "",
        "share of the calls that took the path that the contestant is named for, where it counts them",
    ),
];

/// The experiment `alloc-workloads`.
pub const ALLOC_WORKLOADS: Declared = Declared {
    name: "alloc-workloads",
    title: "The workloads of the field",
    source: "the programs that the field compares its allocators with (Leijen's mimalloc-bench and what it collects), written anew",
    question: "Which allocator is fastest, and which needs least memory, when blocks are freed late, elsewhere and out of order?",
    metrics: METRICS,
    contestants,
    brief: None,
    plan: |request, _| plan::plan(request),
    afresh: None,
    analyse: report::of,
};

/// The workload that the factors name.
struct Named;

impl Work for Named {
    fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
        run(heaps, params)
    }
}

/// Every contestant, in the order of the tables.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let ours = [
        bench(
            "heap",
            "larder's explicit heap, one for each thread, over shared classes",
            |params| run(&LarderHeaps::new()?, params),
        ),
        classes::<Named>(),
        bench(
            "global",
            "larder as Rust's global allocator: sized and aligned",
            |params| run(&LarderGlobal, params),
        ),
        bench(
            "heap-whole",
            "a private heap of larder's for each interpreter, dropped whole",
            |params| run(&LarderPrivate::new()?, params),
        ),
    ];
    ours.into_iter().chain(peers::<Named>()).collect()
}
