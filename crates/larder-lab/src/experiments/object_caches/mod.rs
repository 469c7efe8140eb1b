//! The mail on magazines for Parrot: its loop over its allocators and today's, and its question about the second thread.
//!
//! What is timed is in `loops`, `constructed`, `destroy` and `held`; `second` answers the question.

mod constructed;
mod contestants;
mod destroy;
mod findings;
mod goals;
mod held;
mod loops;
mod plan;
mod second;
mod tables;

use super::allocators::seldom_per_cpu;
use crate::frame::Declared;
use crate::model::{Analysis, Metric};

const METRICS: &[Metric] = &[
    Metric::cost(
        "seconds",
        "s",
        "elapsed time for ten million cycles of each thread, from the first that begins to the last that ends",
    ),
    Metric::rate(
        "mcycles_per_s",
        "Mc/s",
        "cycles of allocation and free by all threads together, million per second",
    ),
    Metric::cost(
        "cpu_ns_per_cycle",
        "ns",
        "CPU time of all threads, per cycle",
    ),
    Metric::count(
        "sleeps_per_million",
        "",
        "times that a thread gave its CPU up, per million cycles: waiting for a lock",
    ),
    Metric::count(
        "preemptions_per_million",
        "",
        "times that a thread lost its CPU, per million cycles",
    ),
    Metric::cost(
        "ns_per_pair",
        "ns",
        "one block there and back by one thread, CPU time",
    ),
    Metric::cost(
        "instructions",
        "",
        "instructions of one block there and back with the loop around it, counted by callgrind",
    ),
    Metric::cost(
        "ns_per_object",
        "ns",
        "one constructed object there and back, CPU time",
    ),
    Metric::count("constructor_ns", "ns", "the constructor alone, CPU time"),
    Metric::cost(
        "destroy_ns",
        "ns",
        "the end of a heap: its objects freed, unless they die with it, and the heap dropped",
    ),
    Metric::cost(
        "drop_ns",
        "ns",
        "the drop alone, when all objects are freed",
    ),
    Metric::rate(
        "returned_share",
        "",
        "share of a burst's memory that is back with the system ten intervals after it was freed",
    ),
    Metric::rate("returned_at_once", "", "the same as soon as it is freed"),
    Metric::cost(
        "held_bytes",
        "B",
        "growth of resident memory when every block is back",
    ),
    Metric::rate(
        "path_share",
        "",
        "share of the calls that took the path that the contestant is named for, where it counts them",
    ),
];

/// The experiment `object-caches`.
pub const OBJECT_CACHES: Declared = Declared {
    name: "object-caches",
    title: "Object caches: is the second thread slow, and what does a lock cost?",
    source: "Michael's mail on magazines for Parrot (perl6-internals), after Bonwick and Adams, Magazines and Vmem, USENIX 2001",
    question: "Why is the second thread always the slowest, and what does a block cost from a handle, a lock and today's allocators?",
    metrics: METRICS,
    contestants: contestants::all,
    brief: Some(plan::BRIEF),
    plan: |request, _| plan::plan(request),
    afresh: None,
    analyse: |results| Analysis {
        answers: findings::answers(results),
        costs: findings::costs(results),
        findings: findings::all(results),
        goals: goals::all(results),
        sections: tables::sections(results),
        warnings: seldom_per_cpu(results),
        ..Analysis::default()
    },
};
