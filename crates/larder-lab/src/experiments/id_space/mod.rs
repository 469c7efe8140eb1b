//! The identifiers against their peers: what a pair of free and allocation costs at every occupancy, what is held for it,
//! how it scales, and how long an identifier rests.
//!
//! The timed loops are in `loops`; `batches`, `threads`, `create` and `distance` are what is done with a source; `ruled`
//! says what each rule states of the rest; `goals` says which ratio counts as reached.

mod batches;
mod contestants;
mod create;
mod distance;
mod goals;
mod loops;
mod plan;
mod promise;
mod report;
mod rows;
mod ruled;
mod tables;
mod thread_goals;
mod threads;

use crate::frame::{Results, cost};
use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Cost, Metric, RunRecord};

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
        "a pair of the batch that one in a hundred exceeds",
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
    Metric::rate(
        "mops_per_s",
        "Mop/s",
        "pairs of all threads together, million per second",
    ),
    Metric::rate(
        "mops_per_cpu_s",
        "Mop/s",
        "pairs of all threads together, million for each second of CPU time that they used",
    ),
    Metric::cost("cpu_ns_per_pair", "ns", "CPU time of a pair in threads"),
    Metric::cost(
        "false_full",
        "",
        "times that 'full' was said although identifiers were free",
    ),
    Metric::cost(
        "lost_ids",
        "",
        "free identifiers that could not be had when all were asked for",
    ),
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
        "Identifiers against their peers"
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

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&["cyclic", "lowest", "bits", "create"])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        let contestants = contestants::all();
        let names: Vec<_> = contestants.iter().map(|c| c.name()).collect();
        plan::plan(request, &names)
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        let view = RunView::new(run);
        Analysis {
            experiment: self.name().to_owned(),
            title: self.title().to_owned(),
            costs: costs(run),
            findings: report::findings(&view),
            goals: goals::all(&view),
            sections: report::sections(&view),
            ..Analysis::default()
        }
    }
}

/// What an identifier costs two thirds full, for the summary.
fn costs(run: &RunRecord) -> Vec<Cost> {
    let results = Results::new(run, METRICS);
    let factors = [("live", plan::SMALL_LIVES[2])];
    let peers = |own: &[&'static str]| -> Vec<&'static str> {
        let ordered = plan::ORDERED.into_iter().chain(own.iter().copied());
        ordered.collect()
    };
    let rows = [
        (
            "identifier, cyclic",
            plan::CYCLIC,
            peers(&plan::CYCLIC_PEERS),
        ),
        (
            "identifier, lowest",
            plan::LOWEST,
            peers(&plan::LOWEST_PEERS),
        ),
    ];
    let row = |(what, group, peers): (&str, &str, Vec<&str>)| {
        let ours = results.find(group, "ids", &factors);
        let peer = results.best(group, &peers, &factors, rows::COST);
        cost(what, "ns", rows::COST, ours, peer, None)
    };
    rows.into_iter().filter_map(row).collect()
}
