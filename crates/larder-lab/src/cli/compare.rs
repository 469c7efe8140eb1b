//! `compare`: one run against another.

use std::io::Write;

use clap::{Args, ValueEnum};
use comfy_table::{Table, presets};
use serde_json::json;

use super::args::Global;
use super::failure::{Code, Failure, Outcome};
use super::{output, print_json, results};
use crate::experiments;
use crate::measure::{Change, Changes, changes};
use crate::model::{Better, RunRecord};
use crate::report::number;
use crate::stats::{Estimate, Verdict};

/// Compare two runs of one experiment by the ratios inside each.
#[derive(Debug, Args)]
#[command(after_help = "\
Each cell is compared with its group's reference inside its own run, and the two ratios with each other.
Times are shown beside them only when both runs come from the same machine.

Examples:
  larder compare 3f9a latest
  larder compare 3f9a latest --fail-on slower   exit 1 if anything is slower, 3 if it cannot be told
  larder compare 3f9a latest --times            exit 4 if the machines differ")]
pub(super) struct Compare {
    /// The run before.
    #[arg(value_name = "RUN")]
    before: String,
    /// The run after.
    #[arg(value_name = "RUN")]
    after: String,
    /// Ask for times: refused when the runs come from two machines.
    #[arg(long)]
    times: bool,
    /// End with 1 when a cell's verdict is this, with 3 when no cell's is but some cannot be told.
    #[arg(long, value_enum, value_name = "VERDICT")]
    fail_on: Option<FailOn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A cell became slower.
    Slower,
    /// A cell became slower or faster.
    Changed,
}

pub(super) fn run(global: &Global, args: &Compare, out: &mut dyn Write) -> Outcome {
    let store = results::open(global)?;
    let before = results::one(&store, &args.before)?;
    let after = results::one(&store, &args.after)?;
    if before.experiment != after.experiment {
        return Err(Failure::usage(format!(
            "{} is a run of '{}' and {} one of '{}'; compare two runs of one experiment",
            before.id, before.experiment, after.id, after.experiment
        )));
    }
    let metrics = experiments::find(&before.experiment).map_or(&[][..], |e| e.metrics());
    let compared = changes(&before, &after, |name| {
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
            &json!({ "schema": 1, "before": before.id, "after": after.id, "compared": compared }),
        )?;
    } else {
        print(global, &before, &after, &compared, out)?;
    }
    out.flush()?;
    match args.fail_on {
        Some(condition) => judge(condition, &compared.changes),
        None => Ok(()),
    }
}

fn print(
    global: &Global,
    before: &RunRecord,
    after: &RunRecord,
    compared: &Changes,
    out: &mut dyn Write,
) -> Outcome {
    for (name, run) in [("before", before), ("after", after)] {
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
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_width(u16::try_from(output::style(global).width).unwrap_or(100));
    table.style_mut().row_separator = comfy_table::LineStyle::none();
    let mut head = vec!["group", "cell", "before", "after", "after / before", ""];
    if compared.no_times.is_none() {
        head.push("times");
    }
    table.set_header(head);
    for c in &compared.changes {
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
        table.add_row(row);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    if compared.changes.is_empty() {
        writeln!(out, "The two runs have no cell in common.")?;
    }
    if compared.unmatched > 0 {
        writeln!(out, "{} cells are in one run only.", compared.unmatched)?;
    }
    writeln!(
        out,
        "Ratios are to each group's reference in the same rounds; a change counts beyond both runs' A/A floors."
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

fn judge(condition: FailOn, changes: &[Change]) -> Outcome {
    let count =
        |wanted: &dyn Fn(&Verdict) -> bool| changes.iter().filter(|c| wanted(&c.verdict)).count();
    let hits = count(&|v| match v {
        Verdict::Slower => true,
        Verdict::Faster => condition == FailOn::Changed,
        _ => false,
    });
    if hits > 0 {
        return Err(Failure::Because(
            Code::Condition,
            format!(
                "{hits} of {} cells changed as --fail-on says",
                changes.len()
            ),
        ));
    }
    let open = count(&|v| matches!(v, Verdict::Inconclusive | Verdict::Refused | Verdict::Noisy));
    if open > 0 || changes.is_empty() {
        return Err(Failure::Because(
            Code::Inconclusive,
            format!(
                "{open} of {} cells cannot be told; take more rounds with `larder measure --full`",
                changes.len()
            ),
        ));
    }
    Ok(())
}
