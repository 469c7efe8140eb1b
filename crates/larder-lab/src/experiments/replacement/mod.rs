//! Which replacement rule finds most, on public traces and on workloads made here.
//!
//! `plan` has the traces and sizes, `contestants` the rules, `standing` what a rule's hits are worth.

mod contestants;
mod plan;
mod report;
mod standing;
#[cfg(test)]
mod tests;

use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Metric, RunRecord};

/// The experiment `replacement`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replacement;

/// Share of the uses that hit.
const HITS: &str = "hit_percent";

const METRICS: &[Metric] = &[Metric::rate(
    HITS,
    "%",
    "uses of a block that was there; a count, the same on every machine",
)];

impl Experiment for Replacement {
    fn name(&self) -> &'static str {
        "replacement"
    }

    fn title(&self) -> &'static str {
        "Replacement rules"
    }

    fn source(&self) -> &'static str {
        "Megiddo and Modha 2003, Jiang and Zhang 2002 and others, whose traces are public"
    }

    fn question(&self) -> &'static str {
        "How much of the way from LRU to the best there can be does each rule go, and does the default hold everywhere?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&[plan::MADE])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        let names: Vec<_> = contestants::all().iter().map(|c| c.name()).collect();
        plan::plan(request.depth, &names, plan::folder())
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
