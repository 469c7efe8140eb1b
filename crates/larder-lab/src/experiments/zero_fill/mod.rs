//! Experiment `zero-fill`: the four timings and the open questions of "Zerofilling" (Nat!, August 2003).
//!
//! `cells` has the names, `plan` what runs. `findings` and `goals` judge; `tables`, `bill` and `model` show the numbers;
//! `formulas` is what the text of 2003 makes of four timings, `submission` this machine's row in its table.

mod bill;
mod cells;

mod findings;
mod formulas;
mod goals;
mod model;
mod plan;
mod submission;
mod tables;

pub use submission::{presets, submission_row};

use crate::contestants::mapping;
use crate::frame;
use crate::measure::{Contestant, Experiment, Plan, PlanRequest};
use crate::model::{Analysis, Metric, RunRecord};

/// The experiment.
pub struct ZeroFill;

impl Experiment for ZeroFill {
    fn name(&self) -> &'static str {
        "zero-fill"
    }

    fn title(&self) -> &'static str {
        "Zero-filling: what a page costs, and what should zero it"
    }

    fn source(&self) -> &'static str {
        "Nat! (Mulle kybernetiK), \"Zerofilling\" parts I to VI, August 2003"
    }

    fn question(&self) -> &'static str {
        "How much of getting a page is zero-filling, and does it pay to fault in batches, to map early or to zero ahead?"
    }

    fn metrics(&self) -> &'static [Metric] {
        cells::METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        mapping::all()
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&["steps", "timings", "zero-warm", "bill-write-8"])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        plan::plan(request)
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        frame::analysis(self, run, |results| {
            let ahead = bill::recommendation(results);
            let routine = findings::recommendation(results);
            Analysis {
                findings: findings::all(results),
                answers: findings::answers(results),
                goals: goals::all(results),
                sections: tables::sections(results),
                recommendations: ahead.into_iter().chain(routine).collect(),
                warnings: findings::too_short(results).into_iter().collect(),
                calculator: presets(run),
                ..Analysis::default()
            }
        })
    }
}
