//! The mail on magazines for Parrot: his loop over his allocators and today's, and his question about the second thread.
//!
//! The timed loops are in `his_loop`, `pair` and `constructed`; `second` answers the question. `destroy` and `held` are about
//! the ends: of a heap, and of a burst.

mod constructed;
mod contestants;
mod depot;
mod destroy;
mod ends;
mod ends_report;
mod goals;
mod held;
mod his_loop;
mod instructions;
mod kept;
mod pair;
mod path;
mod plan;
mod report;
mod rows;
mod second;
mod tables;

use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Metric, RunRecord};

/// The experiment `object-caches`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObjectCaches;

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

impl Experiment for ObjectCaches {
    fn name(&self) -> &'static str {
        "object-caches"
    }

    fn title(&self) -> &'static str {
        "Magazines for Parrot"
    }

    fn source(&self) -> &'static str {
        "Michael's mail on magazines for Parrot (perl6-internals), after Bonwick and Adams, Magazines and Vmem, USENIX 2001"
    }

    fn question(&self) -> &'static str {
        "Why is the second thread always the slowest, and what does a block cost from a handle, a lock and today's allocators?"
    }

    /// All but the counts of instructions.
    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&[
            plan::THREADS,
            plan::SECOND,
            "pair",
            "preloaded",
            plan::CONSTRUCTED,
            ends::DESTROY,
            ends::HELD,
        ])
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
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
            answers: report::answers(&view),
            costs: report::costs(&view),
            findings: [
                report::findings(&view),
                depot::findings(&view).into_iter().collect(),
                ends_report::findings(&view),
            ]
            .concat(),
            goals: [
                goals::all(&view),
                ends_report::goals(&view),
                instructions::goals(&view),
            ]
            .concat(),
            sections: [
                tables::sections(&view),
                depot::section(&view).into_iter().collect(),
                ends_report::sections(&view),
                instructions::section(&view).into_iter().collect(),
                path::section(&view).into_iter().collect(),
            ]
            .concat(),
            ..Analysis::default()
        }
    }
}
