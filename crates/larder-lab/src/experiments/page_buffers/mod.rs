//! Page buffers from clusters of tunable size (Walfield 2001), with today's suppliers beside them.
//!
//! The workload and the contestants are in `workload` and `contestants`, what explains them in `parts`; the plan, the
//! findings and the tables each have a file of their own.

mod cache_size;
mod contestants;
mod curve;
mod findings;
mod goals;
mod parts;
mod plan;
mod tables;
mod workload;

use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Cost, Metric, RunRecord};

pub use workload::{ALLOCS, PER_TURN, allocations_of};

/// The experiment `page-buffers`.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageBuffers;

const METRICS: &[Metric] = &[
    Metric::cost(
        "ns_per_page",
        "ns",
        "CPU time of a page's life, user and system",
    ),
    Metric::cost("elapsed_s", "s", "wall time of the whole workload"),
    Metric::cost(
        "setup_s",
        "s",
        "wall time of making the supplier, before the workload",
    ),
    Metric::cost(
        "get_ns",
        "ns",
        "mapping clusters and handing their pages out, per page",
    ),
    Metric::cost(
        "touch_ns",
        "ns",
        "filling a page, its fault included, per page",
    ),
    Metric::cost(
        "give_back_ns",
        "ns",
        "giving pages back to the kernel, per page",
    ),
    Metric::cost("call_ns", "ns", "one call that gives pages back"),
    Metric::count(
        "calls_per_page",
        "",
        "system calls that the supplier made, per page",
    ),
    Metric::count(
        "faults_per_page",
        "",
        "pages that the kernel made present, per page",
    ),
    Metric::count(
        "mappings",
        "",
        "mappings of the process while 100 pages are out",
    ),
    Metric::cost(
        "held_bytes",
        "B",
        "growth of resident memory when every page is back",
    ),
];

impl Experiment for PageBuffers {
    fn name(&self) -> &'static str {
        "page-buffers"
    }

    fn title(&self) -> &'static str {
        "Page buffers: which cluster size?"
    }

    fn source(&self) -> &'static str {
        "Neal H. Walfield, Re: Allocating buffers in ext2fs, bug-hurd, 20 December 2001"
    }

    fn question(&self) -> &'static str {
        "How many pages should one call to the kernel supply, and why do smaller and larger clusters cost more?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&["total", "give-back"])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        let contestants = contestants::all();
        let names: Vec<_> = contestants.iter().map(|c| c.name()).collect();
        plan::plan(request, &names)
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        let view = RunView::new(run);
        let mut warnings = Vec::new();
        if run.machine.text("thp.enabled").contains("[always]") {
            warnings.push(
                "Transparent huge pages are on for every mapping (thp.enabled is always): clusters of 512 pages and more may get huge pages, which 2001 did not have. Set it to madvise to see single pages."
                    .to_owned(),
            );
        }
        Analysis {
            experiment: self.name().to_owned(),
            title: self.title().to_owned(),
            findings: findings::all(&view),
            goals: goals::all(&view),
            sections: tables::sections(&view),
            costs: from_the_kernel(&view).into_iter().collect(),
            answers: findings::answers(&view),
            recommendations: goals::recommendation(&view).into_iter().collect(),
            warnings,
            ..Analysis::default()
        }
    }
}

/// What a page costs without larder: one mmap and one munmap for each.
fn from_the_kernel(view: &RunView<'_>) -> Option<Cost> {
    let total = *findings::totals(view).last()?;
    let cell = plan::cell("unbuffered", total, None);
    let ns = view.middle(&plan::total_group(total), &cell, findings::COST)?;
    Some(Cost {
        what: "page, from the kernel".to_owned(),
        unit: "ns".to_owned(),
        peer: Some(("mmap".to_owned(), ns)),
        ..Cost::default()
    })
}
