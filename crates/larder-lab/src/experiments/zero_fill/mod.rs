//! Experiment `zero-fill`: the four timings and the open questions of "Zerofilling" (Nat!, August 2003).
//!
//! `cells` has the names, `plan` what runs. `findings` and `goals` judge; `tables`, `bill` and `model` show the numbers;
//! `formulas` has the formulas of 2003, `submission` this machine's row in the table of 2003.

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
use crate::frame::{Declared, Results};
use crate::model::Analysis;

/// The experiment.
pub const ZERO_FILL: Declared = Declared {
    name: "zero-fill",
    title: "Zero-filling: what a page costs, and what should zero it",
    source: "Nat! (Mulle kybernetiK), \"Zerofilling\" parts I to VI, August 2003",
    question: "How much of getting a page is zero-filling, and does it pay to fault in batches, to map early or to zero ahead?",
    metrics: cells::METRICS,
    contestants: mapping::all,
    brief: Some(&["steps", "timings", "zero-warm", "bill-write-8"]),
    plan: |request, _| plan::plan(request),
    afresh: None,
    analyse,
};

fn analyse(results: &Results<'_>) -> Analysis {
    let ahead = bill::recommendation(results);
    let routine = findings::recommendation(results);
    Analysis {
        findings: findings::all(results),
        answers: findings::answers(results),
        goals: goals::all(results),
        sections: tables::sections(results),
        recommendations: ahead.into_iter().chain(routine).collect(),
        warnings: findings::too_short(results).into_iter().collect(),
        calculator: presets(results.view.run()),
        ..Analysis::default()
    }
}
