//! The workloads of the field, over today's allocators: time, peak and what is held, with a number of its owner's in every
//! block.
//!
//! `work` has the workloads; `stamp` says who owns a block; `workload` runs and measures one.

mod contestants;
mod draw;
mod goals;
mod handover;
mod memory;
mod plan;
mod report;
mod rows;
mod stamp;
mod work;
mod workload;

use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Metric, RunRecord};

pub use work::{ALL, About, run};

/// The experiment `alloc-workloads`.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllocWorkloads;

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

impl Experiment for AllocWorkloads {
    fn name(&self) -> &'static str {
        "alloc-workloads"
    }

    fn title(&self) -> &'static str {
        "The workloads of the field"
    }

    fn source(&self) -> &'static str {
        "the programs that the field compares its allocators with (Leijen's mimalloc-bench and what it collects), written anew"
    }

    fn question(&self) -> &'static str {
        "Which allocator is fastest, and which needs least memory, when blocks are freed late, elsewhere and out of order?"
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
            findings: report::findings(&view),
            goals: goals::all(&view),
            sections: report::sections(&view),
            ..Analysis::default()
        }
    }
}
