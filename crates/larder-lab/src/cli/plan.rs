//! `measure --plan`: what would run, and for how long.

use std::io::Write;
use std::time::Duration;

use serde_json::json;

use super::failure::Outcome;
use super::output::print_json;
use crate::measure::{Experiment, Options};
use crate::model::MachineRecord;

/// Prints the plans of all experiments.
pub(super) fn print(
    experiments: &[Box<dyn Experiment>],
    options: &Options,
    machine: &MachineRecord,
    as_json: bool,
    out: &mut dyn Write,
) -> Outcome {
    if as_json {
        let plans: Vec<_> = experiments
            .iter()
            .map(|e| to_json(e.as_ref(), &options.of(e.as_ref()), machine))
            .collect();
        return print_json(
            out,
            &json!({ "schema": 1, "seed": options.seed, "plans": plans }),
        );
    }
    let mut total = Duration::ZERO;
    for experiment in experiments {
        let options = options.of(experiment.as_ref());
        let plan = options.plan(experiment.as_ref(), machine);
        let guess = Options {
            time_cap: None,
            ..options.clone()
        }
        .guess(&plan);
        total += guess;
        writeln!(
            out,
            "{}: {} groups, about {} if every round is taken",
            experiment.name(),
            plan.groups.len(),
            seconds(guess)
        )?;
        for group in &plan.groups {
            writeln!(
                out,
                "  {:<32} {:>4} cells and the twin, {} to {} rounds of about {}, until {} is known to {} %",
                group.name,
                group.cells.len(),
                group.min_rounds.min(options.rounds_of(group)),
                options.rounds_of(group),
                seconds(group.round_guess),
                group.metric,
                group.target * 100.0,
            )?;
        }
        for skipped in &plan.skipped {
            writeln!(out, "  left out: {}: {}", skipped.what, skipped.why)?;
        }
    }
    match options.time_cap {
        Some(cap) if cap < total => writeln!(
            out,
            "In all about {}, cut to {} by the time cap.",
            seconds(total),
            seconds(cap)
        )?,
        _ => writeln!(out, "In all about {}.", seconds(total))?,
    }
    Ok(())
}

fn to_json(
    experiment: &dyn Experiment,
    options: &Options,
    machine: &MachineRecord,
) -> serde_json::Value {
    let plan = options.plan(experiment, machine);
    let groups: Vec<_> = plan
        .groups
        .iter()
        .map(|g| {
            json!({
                "name": g.name,
                "metric": g.metric,
                "reference": g.reference,
                "cells": g.cells,
                "min_rounds": g.min_rounds,
                "max_rounds": options.rounds_of(g),
                "target": g.target,
                "round_guess_seconds": g.round_guess.as_secs_f64(),
            })
        })
        .collect();
    json!({
        "experiment": experiment.name(),
        "guess_seconds": options.guess(&plan).as_secs_f64(),
        "groups": groups,
        "skipped": plan.skipped,
    })
}

/// A time for people.
pub(super) fn seconds(d: Duration) -> String {
    let s = d.as_secs_f64();
    match s {
        _ if s < 1.0 => format!("{:.0} ms", s * 1e3),
        _ if s < 120.0 => format!("{s:.0} s"),
        _ if s < 7200.0 => format!("{:.0} min", s / 60.0),
        _ => format!("{:.1} h", s / 3600.0),
    }
}
