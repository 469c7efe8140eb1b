//! `compare`: runs against runs.

use std::collections::HashSet;
use std::io::Write;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::failure::{Code, Failure, Outcome};
use super::global::Global;
use super::output::print_json;
use super::{output, results};
use crate::experiments;
use crate::measure::{Changes, changes_of};
use crate::model::{Better, RunRecord};
use crate::report::number;
use crate::stats::{Estimate, Verdict};
use crate::store::Store;

/// Compare two runs of one experiment, or several before with several after.
#[derive(Debug, Args)]
#[command(after_help = "\
First comes the mean of each contestant over its cells, then the cells. A cell is called changed only where its \
contestant is. Each cell is compared with its group's reference inside its own run. \
With one run a side the scatter between runs is estimated from the contestants that did not change. With several it is \
measured: use five a side to find changes of a few percent.
Times are shown beside them only when both runs come from the same machine.

Examples:
  larder compare 3f9a latest
  larder compare 3f9a,51c0,77de 9b02,c4f1,latest
  larder compare 3f9a latest --fail-on slower   exit 1 if anything is slower, 3 if inconclusive
  larder compare 3f9a latest --times            exit 4 if the machines differ")]
pub(super) struct Compare {
    /// The run before, or several with commas between.
    #[arg(value_name = "RUN")]
    before: String,
    /// The run after, or several with commas between.
    #[arg(value_name = "RUN")]
    after: String,
    /// Ask for times: refused when the runs come from two machines.
    #[arg(long)]
    times: bool,
    /// End with 1 when a contestant's verdict is this, with 3 when none is but some are inconclusive.
    #[arg(long, value_enum, value_name = "VERDICT")]
    fail_on: Option<FailOn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A contestant became slower.
    Slower,
    /// A contestant became slower or faster.
    Changed,
}

pub(super) fn run(global: &Global, args: &Compare, out: &mut dyn Write) -> Outcome {
    let store = results::open(global)?;
    let before = side(&store, &args.before)?;
    let after = side(&store, &args.after)?;
    let first = &before[0];
    let mut seen = HashSet::new();
    for run in before.iter().chain(&after) {
        if run.experiment != first.experiment {
            return Err(Failure::usage(format!(
                "{} is a run of '{}' and {} one of '{}'; compare two runs of one experiment",
                first.id, first.experiment, run.id, run.experiment
            )));
        }
        if before.len() + after.len() > 2 && !seen.insert(&run.id) {
            return Err(Failure::usage(format!(
                "{} is named twice; a run counts once, on one side",
                run.id
            )));
        }
    }
    let metrics = experiments::find(&first.experiment).map_or(&[][..], |e| e.metrics());
    let compared = changes_of(&refs(&before), &refs(&after), |name| {
        metrics
            .iter()
            .find(|m| m.name == name)
            .map_or(Better::Neither, |m| m.better)
    });
    if let (true, Some(why)) = (args.times, &compared.no_times) {
        return Err(Failure::refused(format!(
            "times of two machines say nothing about each other: {why}; leave --times out"
        )));
    }
    if global.json {
        print_json(
            out,
            &json!({
                "schema": 1,
                "before": first.id,
                "after": after[0].id,
                "runs_before": ids(&before),
                "runs_after": ids(&after),
                "compared": compared,
            }),
        )?;
    } else {
        print(global, &before, &after, &compared, out)?;
    }
    out.flush()?;
    match args.fail_on {
        Some(condition) => judge(condition, &compared),
        None => Ok(()),
    }
}

/// The runs of one side.
fn side(store: &Store, names: &str) -> Result<Vec<RunRecord>, Failure> {
    names.split(',').map(|n| results::one(store, n)).collect()
}

fn refs(runs: &[RunRecord]) -> Vec<&RunRecord> {
    runs.iter().collect()
}

fn ids(runs: &[RunRecord]) -> Vec<&str> {
    runs.iter().map(|r| r.id.as_str()).collect()
}

fn print(
    global: &Global,
    before: &[RunRecord],
    after: &[RunRecord],
    compared: &Changes,
    out: &mut dyn Write,
) -> Outcome {
    let sides = before.iter().map(|r| ("before", r));
    for (name, run) in sides.chain(after.iter().map(|r| ("after", r))) {
        writeln!(
            out,
            "{name:<7} {}  {}  {}{}",
            short(&run.id),
            output::plain(&run.started),
            output::plain(&run.depth),
            if run.noise.noisy { "  noisy" } else { "" }
        )?;
    }
    if let Some(why) = &compared.no_times {
        writeln!(out, "{}", output::plain(why))?;
    }
    let wide = Some(output::style(global).width);
    let rows = compared.contestants.iter().map(|c| {
        vec![
            output::plain(&c.contestant),
            c.cells.to_string(),
            ratio(Some(&c.change)),
            number::verdict(&c.verdict),
        ]
    });
    if !compared.contestants.is_empty() {
        let heads = ["contestant", "cells", "after / before", ""];
        output::table(heads, rows.collect(), 0..0, wide, out)?;
    }
    for name in &compared.changed_references {
        writeln!(
            out,
            "The reference {} changed: `after / before` of the cells held against it is corrected for that.",
            output::plain(name)
        )?;
    }
    let mut head = vec!["group", "cell", "before", "after", "after / before", ""];
    if compared.no_times.is_none() {
        head.push("times");
    }
    let rows = compared.changes.iter().map(|c| {
        let mut row = vec![
            output::plain(&c.group),
            output::plain(&c.cell.to_string()),
            ratio(c.before.as_ref()),
            ratio(c.after.as_ref()),
            ratio(c.change.as_ref()),
            number::verdict(&c.verdict),
        ];
        if let Some((a, b)) = c.times {
            row.push(format!(
                "{} to {} ({})",
                number::number(a, ""),
                number::number(b, ""),
                output::plain(&c.metric)
            ));
        }
        row
    });
    output::table(head, rows.collect(), 0..0, wide, out)?;
    if compared.changes.is_empty() {
        writeln!(out, "The two runs have no cell in common.")?;
    }
    if compared.unmatched > 0 {
        writeln!(out, "{} cells are in one run only.", compared.unmatched)?;
    }
    writeln!(
        out,
        "Ratios are to each group's reference in the same rounds. A contestant's mean is against the middle contestant of \
         its groups; a cell counts as changed only where its contestant does. The intervals know the scatter between runs."
    )?;
    Ok(())
}

fn ratio(e: Option<&Estimate>) -> String {
    e.map_or("too few rounds".to_owned(), |e| number::estimate(e, ""))
}

/// Enough of an id to find it again.
pub(super) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// The contestants decide: cells say where, and are too many to be a gate.
fn judge(condition: FailOn, compared: &Changes) -> Outcome {
    let all = &compared.contestants;
    let count =
        |wanted: &dyn Fn(&Verdict) -> bool| all.iter().filter(|c| wanted(&c.verdict)).count();
    let hits = count(&|v| match v {
        Verdict::Slower => true,
        Verdict::Faster => condition == FailOn::Changed,
        _ => false,
    });
    if hits > 0 {
        return Err(Failure::Because(
            Code::Condition,
            format!(
                "{hits} of {} contestants changed as --fail-on says",
                all.len()
            ),
        ));
    }
    let open = count(&|v| matches!(v, Verdict::Inconclusive | Verdict::Refused | Verdict::Noisy));
    if open > 0 || all.is_empty() {
        return Err(Failure::Because(
            Code::Inconclusive,
            format!(
                "{open} of {} contestants cannot be told; compare several runs a side, or take more rounds with \
                 `larder measure --full`",
                all.len()
            ),
        ));
    }
    Ok(())
}
