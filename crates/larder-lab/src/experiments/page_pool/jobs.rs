//! The groups as data, and how their cells are looked up.

use std::collections::BTreeMap;

use super::ring::SLOTS;
use crate::frame::words::Bound;
use crate::frame::{At, Results, combined, ratio_of};
use crate::stats::Estimate;

pub(super) const COST: &str = "ns_per_page";
pub(super) const RATE: &str = "mops_per_s";
pub(super) const HELD: &str = "held_bytes";
pub(super) const HANDOVER: &str = "handover";
pub(super) const THREADED: &str = "threads";
pub(super) const GROWTH: &str = "growth";
pub(super) const INSTRUCTIONS: &str = "instructions";

/// Larder's: per CPU and per handle.
pub(super) const OURS: [&str; 2] = ["pool", "pool-handle"];

/// The peers that goals are stated against.
pub(super) const PEERS: [&str; 3] = ["malloc", "mimalloc", "jemalloc"];

/// Numbers of threads.
pub(super) const THREADS: [i64; 4] = [1, 2, 8, 64];

/// Threads between which memory is compared.
pub(super) const FEW: i64 = 8;
pub(super) const MANY: i64 = 64;

/// A group of one shape: what is done, with what beside the pool and its peers, and what is expected.
pub(super) struct Job {
    pub(super) group: &'static str,
    pub(super) shape: &'static str,
    /// Pages out at a time.
    pub(super) depth: i64,
    /// Pages in all, in the quick form and in full.
    pub(super) pages: (i64, i64),
    pub(super) floors: &'static [&'static str],
    pub(super) table: &'static str,
    /// Empty where the tables say enough.
    pub(super) question: &'static str,
    /// How the goals call it, and the share of the best peer's time that it may cost. Neighbours may share a goal.
    pub(super) goal: (&'static str, Bound),
    /// The floor that a goal is stated against, and the contestants that the goal judges.
    pub(super) floor: Option<(&'static str, Bound, &'static [&'static str])>,
}

/// Pages of zeros, this many out at a time.
const fn zeroed(group: &'static str, depth: i64, question: &'static str) -> Job {
    let goal = match depth {
        ..=256 => ("zeroed pages, 1 to 256 deep", Bound::AtMost(0.5)),
        _ => ("zeroed pages, 4096 deep", Bound::Below(1.0)),
    };
    Job {
        group,
        shape: "zeroed",
        depth,
        pages: (100_000, 1_000_000),
        floors: &["memset"],
        table: "Pages of zeros, written and put back, per page",
        question,
        goal,
        floor: Some(("memset", Bound::AtMost(1.05), &OURS)),
    }
}

pub(super) const JOBS: [Job; 7] = [
    Job {
        group: "pair",
        shape: "pair",
        depth: 1,
        pages: (1_000_000, 10_000_000),
        floors: &["array-stack", "empty-loop"],
        table: "One page: get, write 8 bytes, put",
        question: "What does a warm page cost, there and back?",
        goal: ("a warm page there and back", Bound::AtMost(0.7)),
        floor: Some(("array-stack", Bound::AtMost(1.5), &["pool-handle"])),
    },
    Job {
        group: "deep-256",
        shape: "deep",
        depth: 256,
        pages: (300_000, 2_000_000),
        floors: &["array-stack"],
        table: "256 pages out at a time, per page",
        question: "What does a page cost when 256 are out?",
        goal: ("a page, 256 in use", Bound::AtMost(0.4)),
        floor: None,
    },
    zeroed("zeroed-1", 1, ""),
    zeroed("zeroed-64", 64, "What does a page of zeros cost?"),
    zeroed("zeroed-256", 256, ""),
    zeroed("zeroed-4096", 4096, ""),
    Job {
        group: HANDOVER,
        shape: "handover",
        depth: SLOTS as i64,
        pages: (200_000, 2_000_000),
        floors: &[],
        table: "One thread takes and writes, another reads and puts back: wall time",
        question: "What does a page cost that another thread puts back?",
        goal: ("a page to another thread", Bound::Below(1.0)),
        floor: None,
    },
];

pub(super) fn best_peer<'r, 'a>(results: &'r Results<'a>, group: &'r str) -> Option<At<'r, 'a>> {
    results.best(group, &PEERS, &[], COST)
}

/// The peer that is fastest with this many threads.
pub(super) fn fastest<'r, 'a>(results: &'r Results<'a>, threads: i64) -> Option<At<'r, 'a>> {
    results.best(THREADED, &PEERS, &[("threads", threads)], RATE)
}

/// A metric of a supplier with this many threads, by round.
pub(super) fn threaded(
    results: &Results<'_>,
    name: &str,
    threads: i64,
    metric: &str,
) -> BTreeMap<u32, f64> {
    let cell = results.find(THREADED, name, &[("threads", threads)]);
    cell.map(|at| at.by_round(metric)).unwrap_or_default()
}

/// The rate with this many threads over the rate of one, by round.
pub(super) fn scaling(results: &Results<'_>, name: &str, threads: i64) -> BTreeMap<u32, f64> {
    let rate = |n| threaded(results, name, n, RATE);
    combined(&rate(threads), &rate(1), |many, one| many / one)
}

/// That over the same of another supplier.
pub(super) fn scaling_of(
    results: &Results<'_>,
    name: &str,
    other: &str,
    threads: i64,
) -> Option<Estimate> {
    let of = |name| scaling(results, name, threads);
    ratio_of(&of(name), &of(other))
}

/// Bytes that each thread from the 9th to the 64th adds to what is held, by round.
pub(super) fn held_per_thread(results: &Results<'_>, name: &str) -> BTreeMap<u32, f64> {
    let held = |n| threaded(results, name, n, HELD);
    combined(&held(MANY), &held(FEW), |many, few| {
        (many - few) / (MANY - FEW) as f64
    })
}
