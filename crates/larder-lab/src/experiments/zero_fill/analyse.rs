//! All parts of the answer, most important first.

use super::look::{Look, append};
use super::submission::presets;
use super::{batch, bill, first_touch, formulas, model, routines, steps, timings};
use crate::model::{Analysis, RunRecord};

/// Rounds under which no interval exists.
const LEAST_ROUNDS: u32 = 6;

pub(super) fn analyse(run: &RunRecord, title: &str) -> Analysis {
    let look = Look::new(run);
    let mut whole = Analysis {
        experiment: run.experiment.clone(),
        title: title.to_owned(),
        calculator: presets(run),
        ..Analysis::default()
    };
    for part in [
        steps::part(&look),
        formulas::part(&look),
        batch::part(&look),
        bill::part(&look),
        first_touch::part(&look),
        timings::part(&look),
        model::part(&look),
        routines::part(&look),
    ] {
        append(&mut whole, part);
    }
    order_sections(&mut whole);
    let short: Vec<&str> = run
        .groups
        .iter()
        .filter(|g| g.rounds < LEAST_ROUNDS)
        .map(|g| g.name.as_str())
        .collect();
    if !short.is_empty() {
        whole.warnings.push(format!(
            "Fewer than {LEAST_ROUNDS} complete rounds of {}: their numbers stand without intervals and decide nothing.",
            short.join(", ")
        ));
    }
    whole
}

/// His own table comes first among the sections, though not among the answers.
fn order_sections(whole: &mut Analysis) {
    const FIRST: [&str; 3] = [
        "The four timings",
        "What four timings say",
        "The better model",
    ];
    let place = |title: &str| {
        FIRST
            .iter()
            .position(|t| *t == title)
            .unwrap_or(FIRST.len())
    };
    whole.sections.sort_by_key(|s| place(&s.title));
}
