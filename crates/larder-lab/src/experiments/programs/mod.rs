//! Real programs on the preloaded malloc, beside the system's and the peers' found on the machine.
//!
//! `work` has the programs, one to a file; `process` runs one and looks at what it wrote.

mod contestants;
mod goals;
mod plan;
mod process;
mod report;
mod rows;
mod shop;
mod work;

use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Metric, RunRecord, Skipped};

use crate::contestants::heaps::found::{self as libraries, LARDER, Library, found};
pub use rows::OUTPUT;

/// The experiment `programs`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Programs;

const METRICS: &[Metric] = &[
    Metric::cost(
        rows::SECONDS,
        "s",
        "wall time from the start of the program to its end",
    ),
    Metric::cost(
        rows::CPU,
        "s",
        "user and system time of the program and of what it started",
    ),
    Metric::cost(
        rows::PEAK,
        "B",
        "largest resident set of any of its processes, but no less than that of the lab's process that started it",
    ),
    Metric::cost(rows::FAULTS, "", "page faults, minor and major"),
    Metric::count(
        OUTPUT,
        "",
        "52 bits of the SHA-256 of everything that it wrote",
    ),
];

/// Programs that cannot run here, whether or not there is a malloc to compare.
#[must_use]
pub fn absent() -> Vec<Skipped> {
    let why = |program: &work::Program| {
        program.missing().map(|why| Skipped {
            what: program.name.to_owned(),
            why,
        })
    };
    work::ALL.iter().filter_map(why).collect()
}

impl Experiment for Programs {
    fn name(&self) -> &'static str {
        "programs"
    }

    fn title(&self) -> &'static str {
        "Real programs"
    }

    fn source(&self) -> &'static str {
        "what malloc-bench, mimalloc-bench and Hoard's authors took for real programs: interpreters, compilers, databases"
    }

    fn question(&self) -> &'static str {
        "Is any program slower with larder's malloc preloaded than with the system's, and how do the other mallocs fare?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
    }

    /// Two that most machines have.
    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&["git", "python-objects"])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        plan::plan(request, found(), &|program| program.missing())
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        let view = RunView::new(run);
        Analysis {
            experiment: self.name().to_owned(),
            title: self.title().to_owned(),
            findings: report::findings(&view),
            goals: goals::all(&view),
            sections: report::sections(&view),
            warnings: report::warnings(&view),
            ..Analysis::default()
        }
    }
}
