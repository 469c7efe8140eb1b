//! What a hit in the block cache costs, and what a cached page costs in memory, against today's crates.

mod contestants;
mod goals;
mod instructions;
mod memory;
mod plan;
mod report;
mod shapes;
#[cfg(test)]
mod tests;

use crate::frame::{Results, cost};
use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Cost, Metric, RunRecord};

/// The experiment `block-cache`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockCaches;

const METRICS: &[Metric] = &[
    Metric::cost(
        "ns_per_hit",
        "ns",
        "CPU time of one get of a block that is there, with drawing its number",
    ),
    Metric::rate(
        "mops_per_s",
        "Mop/s",
        "gets by all threads together, million per second",
    ),
    Metric::cost(
        "ns_per_miss",
        "ns",
        "CPU time to bring a block that is not there, for which another one leaves",
    ),
    Metric::cost(
        "bytes_per_block",
        "B",
        "growth of the process's own memory, without pages, for each block that is in, after three times as many came",
    ),
    Metric::count(
        "said_bytes_per_block",
        "B",
        "the same as the cache itself says",
    ),
    Metric::cost(
        "instructions",
        "",
        "instructions of one hit with the loop around it, counted by callgrind",
    ),
];

impl Experiment for BlockCaches {
    fn name(&self) -> &'static str {
        "block-cache"
    }

    fn title(&self) -> &'static str {
        "A hit in the block cache"
    }

    fn source(&self) -> &'static str {
        "the crates quick_cache, hashlink and moka, measured in the same rounds"
    }

    fn question(&self) -> &'static str {
        "What does a block that is in memory cost, in time and in bytes, here and in today's caches?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        // Filling the larger cache takes most of the time, and with fewer than six rounds no group has a verdict.
        Some(&["hit-32768", plan::THREADED, plan::MISS, plan::MEMORY])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        let contestants = contestants::all();
        let names: Vec<_> = contestants.iter().map(|c| c.name()).collect();
        plan::plan(request.depth, &names)
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

/// What a cached block costs, for the summary.
fn costs(run: &RunRecord) -> Vec<Cost> {
    let results = Results::new(run, METRICS);
    let hit = plan::hit_group(plan::SIZES[0]);
    let rows = [
        ("cached block, found", hit.as_str(), "ns_per_hit"),
        ("cached block, missed", plan::MISS, "ns_per_miss"),
    ];
    let row = |(what, group, metric)| {
        let find = |name| results.find(group, name, &[]);
        let peer = results.best(group, &plan::PEERS, &[], metric);
        cost(what, "ns", metric, find(plan::OURS), peer, find("loop"))
    };
    rows.into_iter().filter_map(row).collect()
}
