//! Process ids (Franke 2002): his harness again, the algorithms of his day and of ours, and the kernel itself.
//!
//! What is counted is in `harness` and `counts`, what is timed in `timed`, `passes`, `reuse` and `large`; the plan, the
//! findings, the tables and the goal each have a file of their own.

mod charts;
mod counted;
mod counts;
mod curve;
mod elsewhere;
mod findings;
mod goals;
pub mod harness;
mod large;
mod plan;
mod reasons;
mod reuse;
mod tables;
mod timed;
mod work;

use crate::contestants::kernel_ids::{Descriptors, Ports, Processes};
use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Better, Metric, RunRecord};

/// The experiment `process-ids`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessIds;

const fn metric(
    name: &'static str,
    unit: &'static str,
    better: Better,
    about: &'static str,
) -> Metric {
    Metric {
        name,
        unit,
        better,
        about,
    }
}

const METRICS: &[Metric] = &[
    metric(
        "us_per_alloc",
        "us",
        Better::Lower,
        "CPU time of one allocation with its task added: Franke's G",
    ),
    metric(
        "us_per_free",
        "us",
        Better::Lower,
        "CPU time of telling a map that an id is free",
    ),
    metric(
        "us_per_search",
        "us",
        Better::Lower,
        "CPU time of all allocations per search",
    ),
    metric(
        "searches",
        "",
        Better::Neither,
        "interval searches: Franke's S",
    ),
    metric(
        "allocations",
        "",
        Better::Neither,
        "allocations that were timed: Franke's T",
    ),
    metric(
        "passes",
        "",
        Better::Neither,
        "tasks looked at per search and task",
    ),
    metric(
        "task_lines",
        "",
        Better::Neither,
        "cache lines of tasks that an allocation touches",
    ),
    metric(
        "capped",
        "",
        Better::Neither,
        "1 where the time was up before all allocations were made",
    ),
    metric(
        "ns_per_task",
        "ns",
        Better::Lower,
        "CPU time of a pass over the list, per task",
    ),
    metric(
        "ns_per_alloc",
        "ns",
        Better::Lower,
        "CPU time of one allocation, batches of 256",
    ),
    metric(
        "ns_per_free",
        "ns",
        Better::Lower,
        "CPU time of one free, batches of 256",
    ),
    metric(
        "bits_per_id",
        "",
        Better::Lower,
        "memory held, per id of the space",
    ),
    metric(
        "least",
        "",
        Better::Neither,
        "least number of allocations between an id's end and its return",
    ),
    metric(
        "p1",
        "",
        Better::Neither,
        "the same, of one return in a hundred",
    ),
    metric(
        "median",
        "",
        Better::Neither,
        "the same, of half of the returns",
    ),
    metric("most", "", Better::Neither, "the greatest"),
];

/// Every contestant.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let mut all = timed::all();
    #[cfg(feature = "peers")]
    all.extend(timed::crates());
    all.extend(timed::passes());
    all.extend(counts::contestants());
    all.push(reuse::contestant());
    all.extend(large::all());
    all.push(Box::new(Descriptors));
    all.push(Box::new(Ports));
    all.push(Box::new(Processes));
    all
}

impl Experiment for ProcessIds {
    fn name(&self) -> &'static str {
        "process-ids"
    }

    fn title(&self) -> &'static str {
        "Process ids by walk, by sweep and by map"
    }

    fn source(&self) -> &'static str {
        "Hubertus Franke, Analysis for Linux-2.5 fix/improve get_pid(), linux-kernel, 9 August 2002"
    }

    fn question(&self) -> &'static str {
        "From how many tasks on does a bitmap find a free pid sooner than a walk over the tasks, and can it reach 32 bits?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants()
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        plan::plan(request, &contestants())
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        let view = RunView::new(run);
        let mut sections = tables::sections(&view);
        sections.push(charts::section(&view));
        Analysis {
            experiment: self.name().to_owned(),
            title: self.title().to_owned(),
            answers: findings::answers(&view),
            findings: findings::all(&view),
            goals: goals::all(&view),
            sections,
            ..Analysis::default()
        }
    }
}
