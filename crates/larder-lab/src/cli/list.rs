//! `list`: experiments, contestants, stored runs.

use std::io::Write;
use std::time::Duration;

use serde_json::json;

use super::args::List;
use super::compare::short;
use super::failure::Outcome;
use super::global::Global;
use super::output::plain;
use super::output::print_json;
use super::plan::seconds;
use super::{missing, results};
use crate::experiments;
use crate::measure::Experiment;

pub(super) fn run(global: &Global, args: &List, out: &mut dyn Write) -> Outcome {
    if args.missing {
        return match &args.experiment {
            Some(name) => missing::print(global, &[results::experiment(name)?], false, out),
            None => missing::print(global, &experiments::all(), true, out),
        };
    }
    if let Some(name) = &args.experiment {
        return one(global, results::experiment(name)?.as_ref(), out);
    }
    if args.runs {
        return runs(global, out);
    }
    let all = experiments::all();
    if global.json {
        let list: Vec<_> = all.iter().map(|e| to_json(e.as_ref())).collect();
        return print_json(out, &json!({ "schema": 1, "experiments": list }));
    }
    for e in &all {
        writeln!(out, "{:<16} {}", e.name(), e.question())?;
        writeln!(out, "{:<16} {}", "", e.source())?;
    }
    Ok(())
}

fn runs(global: &Global, out: &mut dyn Write) -> Outcome {
    let list = results::open(global)?.list()?;
    if global.json {
        return print_json(out, &json!({ "schema": 1, "runs": list }));
    }
    for r in &list {
        writeln!(
            out,
            "{}  {}  {:<16} {:<5} {:>7}  {:>6} samples  machine {}{}",
            short(&r.id),
            plain(&r.started),
            plain(&r.experiment),
            plain(&r.depth),
            seconds(Duration::try_from_secs_f64(r.seconds).unwrap_or_default()),
            r.samples,
            plain(&r.machine),
            match (r.noisy, r.imported) {
                (false, false) => "",
                (true, false) => "  noisy",
                (false, true) => "  imported",
                (true, true) => "  noisy  imported",
            }
        )?;
    }
    Ok(())
}

fn one(global: &Global, e: &dyn Experiment, out: &mut dyn Write) -> Outcome {
    if global.json {
        return print_json(out, &json!({ "schema": 1, "experiments": [to_json(e)] }));
    }
    writeln!(out, "{}: {}", e.name(), e.title())?;
    writeln!(out, "asks:    {}", e.question())?;
    writeln!(out, "answers: {}", e.source())?;
    writeln!(out, "\nContestants")?;
    for c in e.contestants() {
        writeln!(out, "  {:<20} {}", c.name(), c.about())?;
        if let Err(why) = c.available() {
            writeln!(out, "  {:<20} not here: {why}", "")?;
        }
    }
    writeln!(out, "\nMetrics")?;
    for m in e.metrics() {
        writeln!(out, "  {:<20} {} ({})", m.name, m.about, m.unit)?;
    }
    Ok(())
}

fn to_json(e: &dyn Experiment) -> serde_json::Value {
    let contestants: Vec<_> = e
        .contestants()
        .iter()
        .map(|c| json!({ "name": c.name(), "about": c.about(), "missing": c.available().err() }))
        .collect();
    let metrics: Vec<_> = e
        .metrics()
        .iter()
        .map(|m| json!({ "name": m.name, "unit": m.unit, "better": m.better, "about": m.about }))
        .collect();
    json!({
        "name": e.name(),
        "title": e.title(),
        "source": e.source(),
        "question": e.question(),
        "contestants": contestants,
        "metrics": metrics,
    })
}
