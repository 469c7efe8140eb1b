//! How fast the simulator is, against libCacheSim where that is installed.
//!
//! `trace` makes what both simulate, `ours` and `peer` are the two simulators.

mod ours;
mod peer;
mod plan;
mod report;
#[cfg(test)]
mod tests;
mod trace;

use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Metric, RunRecord};

/// The experiment `simulator`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulator;

/// Requests by second.
const SPEED: &str = "mreq_per_s";
/// Share of the requests that hit.
const HITS: &str = "hit_percent";

const METRICS: &[Metric] = &[
    Metric::rate(
        SPEED,
        "M/s",
        "requests times caches that are simulated in a second, in millions: by CPU time, in group sweep by the clock",
    ),
    Metric::count(
        HITS,
        "%",
        "requests that hit, so that it is seen that both do the same work",
    ),
];

impl Experiment for Simulator {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn title(&self) -> &'static str {
        "The simulator's speed"
    }

    fn source(&self) -> &'static str {
        "libCacheSim, measured in the same rounds through its Python package"
    }

    fn question(&self) -> &'static str {
        "How many requests a second does a cache simulation take here, and in the simulator that most people use?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        vec![Box::new(ours::Larder), Box::new(peer::LibCacheSim)]
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&[plan::DECODED, plan::SWEEP])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        plan::plan(request, peer::LibCacheSim.available())
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        let view = RunView::new(run);
        Analysis {
            experiment: self.name().to_owned(),
            title: self.title().to_owned(),
            findings: report::findings(&view),
            goals: report::goals(&view),
            sections: report::sections(&view),
            ..Analysis::default()
        }
    }
}
