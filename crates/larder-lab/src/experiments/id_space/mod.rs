//! The identifiers against their peers: what a pair of free and allocation costs at every occupancy, what is held for it,
//! how it scales, and how long an identifier rests.
//!
//! `batches`, `threads`, `create` and `distance` are what is done with a source; `distance` also says what each rule states
//! of the rest. `goals` says which ratio counts as reached.

mod batches;
mod contestants;
mod create;
mod distance;
mod goals;
mod plan;
mod report;
mod rows;
mod threads;

use crate::frame;
use crate::measure::{Contestant, Experiment, Plan, PlanRequest};
use crate::model::{Analysis, Metric, RunRecord};

/// The experiment `id-space`.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdSpaces;

const METRICS: &[Metric] = &[
    Metric::cost(
        "ns_per_pair",
        "ns",
        "one free and one allocation, wall time; of each thread in threads",
    ),
    Metric::cost("ns_per_free", "ns", "the free of such a pair"),
    Metric::cost("ns_per_alloc", "ns", "the allocation of such a pair"),
    Metric::cost(
        "p99_ns_per_pair",
        "ns",
        "a pair of a slow batch, one in 100",
    ),
    Metric::cost(
        "held_bytes",
        "B",
        "what the C library's heap holds for the source, headers included",
    ),
    Metric::cost(
        "bits_per_id",
        "",
        "bits for each identifier of the range, by the source's own account; by the heap where it gives none",
    ),
    Metric::rate("mops_per_s", "Mop/s", "pairs of all threads together"),
    Metric::rate(
        "mops_per_cpu_s",
        "Mop/s",
        "the same for each second of CPU time",
    ),
    Metric::cost("cpu_ns_per_pair", "ns", "CPU time of a pair in threads"),
    Metric::cost("false_full", "", "times that 'full' was said too early"),
    Metric::cost("lost_ids", "", "free identifiers that could not be had"),
    Metric::cost(
        "ns_per_space",
        "ns",
        "making a space, and taking its first identifier where 'first' is 1",
    ),
    Metric::rate(
        "distance_min",
        "",
        "fewest allocations between a free and the same identifier's return",
    ),
    Metric::rate("distance_p1", "", "the same, exceeded by 99 of 100"),
    Metric::rate("distance_median", "", "the same, the median"),
    Metric::count(
        "distance_stated",
        "",
        "fewest that the rule states, 0 is nothing; like the others in allocations, under a rule by a clock in its ticks",
    ),
    Metric::count("distance_max", "", "the same, the most"),
];

impl Experiment for IdSpaces {
    fn name(&self) -> &'static str {
        "id-space"
    }

    fn title(&self) -> &'static str {
        "Identifiers: what do a free and an allocation cost?"
    }

    fn source(&self) -> &'static str {
        "Franke, linux-kernel 2002, for the workload of deleting and allocating again; the peers are measured in the same rounds"
    }

    fn question(&self) -> &'static str {
        "What does an identifier cost at every occupancy, what is held for it, and how long does it rest?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        plan::plan(request, &contestants::all())
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        frame::analysis(self, run, |results| Analysis {
            costs: report::costs(results),
            findings: report::findings(results),
            goals: goals::all(results),
            sections: report::sections(results),
            ..Analysis::default()
        })
    }
}
