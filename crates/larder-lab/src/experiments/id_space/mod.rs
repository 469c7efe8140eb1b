//! The identifiers against their peers: what a pair of free and allocation costs at every occupancy, what is held for it,
//! how it scales, and how long an identifier rests.
//!
//! `batches`, `threads`, `create` and `distance` are the workloads of a source; `distance` also knows the distance that each rule
//! states. `goals` has the bounds.

mod batches;
mod contestants;
mod create;
mod distance;
mod goals;
mod plan;
mod report;
mod rows;
mod threads;

use crate::frame::Declared;
use crate::model::{Analysis, Metric};

/// The experiment `id-space`.
pub const ID_SPACE: Declared = Declared {
    name: "id-space",
    title: "Identifiers: what do a free and an allocation cost?",
    source: "Franke, linux-kernel 2002, for the workload of deleting and allocating again; the peers are measured in the same rounds",
    question: "What does an identifier cost at every occupancy, what is held for it, and how long does it rest?",
    metrics: METRICS,
    contestants: contestants::all,
    brief: None,
    plan: plan::plan,
    afresh: None,
    analyse: |results| Analysis {
        costs: report::costs(results),
        findings: report::findings(results),
        goals: goals::all(results),
        sections: report::sections(results),
        ..Analysis::default()
    },
};

const METRICS: &[Metric] = &[
    Metric::cost("ns_per_pair", "ns", "a free and an allocation, wall time"),
    Metric::cost("ns_per_free", "ns", "the free of such a pair"),
    Metric::cost("ns_per_alloc", "ns", "the allocation of such a pair"),
    Metric::cost("p99_ns_per_pair", "ns", "a pair of the slowest 1 %"),
    Metric::cost("held_bytes", "B", "heap held for the source"),
    Metric::cost("bits_per_id", "", "bits held for each identifier"),
    Metric::rate("mops_per_s", "Mop/s", "pairs of all threads"),
    Metric::rate("mops_per_cpu_s", "Mop/s", "pairs by CPU time"),
    Metric::cost("cpu_ns_per_pair", "ns", "CPU time of a pair"),
    Metric::cost("false_full", "", "times 'full' came too early"),
    Metric::cost("lost_ids", "", "free identifiers out of reach"),
    Metric::cost("ns_per_space", "ns", "making a space"),
    Metric::rate("distance_min", "", "fewest allocations until reuse"),
    Metric::rate("distance_p1", "", "the same, exceeded by 99 of 100"),
    Metric::rate("distance_median", "", "the same, the median"),
    Metric::count("distance_stated", "", "fewest that the rule states"),
    Metric::count("distance_max", "", "the same, the most"),
];
