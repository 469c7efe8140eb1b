//! Arenas: what a range costs, there and back, by the number of ranges that are out.
//!
//! `ranges` has the arenas and their peers behind one trait, `loops` what is timed.

mod contestants;
mod loops;
mod plan;
mod ranges;
mod report;

use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Better, Metric, RunRecord};

/// The experiment `arenas`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arenas;

const METRICS: &[Metric] = &[
    Metric {
        name: report::COST,
        unit: "ns",
        better: Better::Lower,
        about: "one range there and back by one thread, CPU time",
    },
    Metric {
        name: "segments",
        unit: "",
        better: Better::Neither,
        about: "segments of the arena, free and taken, when the clock starts",
    },
    Metric {
        name: "bookkeeping_bytes",
        unit: "B",
        better: Better::Lower,
        about: "growth of resident memory by the arena and its ranges, when the clock starts",
    },
];

impl Experiment for Arenas {
    fn name(&self) -> &'static str {
        "arenas"
    }

    fn title(&self) -> &'static str {
        "Arenas"
    }

    fn source(&self) -> &'static str {
        "Bonwick and Adams, Magazines and Vmem, USENIX 2001: constant time whatever the arena looks like"
    }

    fn question(&self) -> &'static str {
        "Does a range cost the same whether a hundred or a million of them are out?"
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
            goals: report::goals(&view),
            sections: report::sections(&view),
            ..Analysis::default()
        }
    }
}
