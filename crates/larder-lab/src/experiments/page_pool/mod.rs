//! The page pool against the system's malloc, mimalloc and jemalloc as suppliers of pages.
//!
//! The timed loops are in `loops`; `shapes`, `handover` and `threads` are what is done with a supplier; `goals` says
//! which ratio counts as reached.

mod contestants;
mod goals;
mod handover;
mod instructions;
mod loops;
mod plan;
mod report;
mod ring;
mod rows;
mod shapes;
mod threads;

use crate::frame::{Results, cost};
use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Cost, Metric, RunRecord};

/// The experiment `page-pool`.
#[derive(Debug, Clone, Copy, Default)]
pub struct PagePool;

const METRICS: &[Metric] = &[
    Metric::cost(
        "ns_per_page",
        "ns",
        "a page there and back: CPU time of the thread, of all threads in threads, wall time in handover",
    ),
    Metric::rate(
        "mops_per_s",
        "Mop/s",
        "pairs of get and put of all threads together, million per second of wall time",
    ),
    Metric::cost(
        "held_bytes",
        "B",
        "growth of resident memory when every page is back",
    ),
    Metric::cost(
        "growth_bytes",
        "B",
        "resident memory gained from the first fifth of a handover to its end",
    ),
    Metric::cost(
        "growth_bytes_per_s",
        "B/s",
        "slope of resident memory over a handover, first fifth left out",
    ),
    Metric::count(
        "faults_per_page",
        "",
        "pages that the kernel made present, per page",
    ),
    Metric::cost(
        "instructions",
        "",
        "instructions of one warm get, write and put, counted by callgrind",
    ),
];

impl Experiment for PagePool {
    fn name(&self) -> &'static str {
        "page-pool"
    }

    fn title(&self) -> &'static str {
        "The page pool against its peers"
    }

    fn source(&self) -> &'static str {
        "Bonwick and Adams, Magazines and Vmem, USENIX 2001, for the method; the peers are measured in the same rounds"
    }

    fn question(&self) -> &'static str {
        "What does a warm page cost from the pool and from today's allocators, and what do they hold for it?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&["pair", "deep-256", "zeroed-64", "handover"])
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

/// What a page costs, for the summary: in the cheaper of the pool's two forms.
fn costs(run: &RunRecord) -> Vec<Cost> {
    let results = Results::new(run, METRICS);
    let zeroed = plan::zeroed_group(64);
    let rows = [
        ("page, warm", plan::PAIR, "array-stack"),
        ("page, 256 in use", plan::DEEP, "array-stack"),
        ("page, zeroed", zeroed.as_str(), "memset"),
        ("page, handed over", plan::HANDOVER, ""),
    ];
    let row = |(what, group, floor)| {
        let best = |names| results.best(group, names, &[], rows::COST);
        let floor = results.find(group, floor, &[]);
        cost(
            what,
            "ns",
            rows::COST,
            best(&plan::OURS),
            best(&plan::PEERS),
            floor,
        )
    };
    rows.into_iter().filter_map(row).collect()
}
