//! `export` and `import`: JSON lines between machines.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output::print_json;
use super::{output, results};
use crate::calc::Submission;
use crate::model::RunRecord;
use crate::store;

/// Write runs as JSON lines.
#[derive(Debug, Args)]
#[command(after_help = "\
The first line says what the file is, each further line is a run. `larder import` reads it anywhere; importing \
twice changes nothing.

Examples:
  larder export > all.jsonl
  larder export latest:zero-fill --out mine.jsonl
  larder export --submission > row.jsonl    this machine's row for the table of machines")]
pub(super) struct Export {
    /// Runs [default: all; with --submission the latest of zero-fill].
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Only this machine's row: processor, system, four timings, day. No host or user name.
    #[arg(long)]
    submission: bool,
    /// Write here instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Add runs that `larder export` wrote, here or on another machine.
#[derive(Debug, Args)]
#[command(after_help = "\
All of the file or nothing: a bad line is named and leaves the database as it was. Imported runs are marked as such, \
are never `latest`, and no settings come from them, also where they were taken on this machine. A run that the database \
has already stays what it is.

Examples:
  larder import row.jsonl
  ssh other larder export | larder import -")]
pub(super) struct Import {
    /// A file that `larder export` wrote; - is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn export(global: &Global, args: &Export, out: &mut dyn Write) -> Outcome {
    let store = results::open(global)?;
    let (runs, submissions) = if args.submission {
        let names = match args.runs.as_slice() {
            [] => &["latest:zero-fill".to_owned()],
            names => names,
        };
        let rows = names
            .iter()
            .map(|n| submission(&results::one(&store, n)?))
            .collect::<Result<Vec<_>, Failure>>()?;
        (Vec::new(), rows)
    } else if args.runs.is_empty() {
        let mut all = store.list()?;
        all.reverse();
        let runs = all.iter().map(|r| store.get(&r.id));
        (runs.collect::<Result<Vec<_>, _>>()?, store.submissions()?)
    } else {
        (results::several(&store, &args.runs)?, Vec::new())
    };
    match &args.out {
        None => store::export(runs, submissions, out)?,
        Some(path) => {
            let mut text = Vec::new();
            store::export(runs, submissions, &mut text)?;
            output::write_file(path, &String::from_utf8_lossy(&text))?;
            output::hint(global, &format!("written to {}", path.display()));
        }
    }
    Ok(())
}

/// The row of the machine that a run was taken on.
fn submission(run: &RunRecord) -> Result<Submission, Failure> {
    let analysis = results::analyse(run);
    let preset = analysis.calculator.first().ok_or_else(|| {
        Failure::refused(format!(
            "run {} of '{}' holds no timings for the table of machines; take them with `larder measure zero-fill`",
            &run.id, run.experiment
        ))
    })?;
    Ok(Submission {
        machine: run.machine.text("cpu.model").to_owned(),
        os: format!("Linux {}", run.machine.text("kernel.release")),
        timings: preset.timings,
        date: run.started.get(..10).unwrap_or(&run.started).to_owned(),
    })
}

pub(super) fn import(global: &Global, args: &Import, out: &mut dyn Write) -> Outcome {
    let mut store = results::create(global)?;
    let done = if args.file == Path::new("-") {
        store.import_from(io::stdin().lock(), Path::new("standard input"))?
    } else {
        store.import(&args.file)?
    };
    if global.json {
        return print_json(out, &json!({ "schema": 1, "imported": done }));
    }
    writeln!(
        out,
        "{} runs and {} machines added, {} known already",
        done.runs, done.submissions, done.known
    )?;
    Ok(())
}
