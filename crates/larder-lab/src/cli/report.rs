//! `report`: stored runs as table, page, Markdown or JSON.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output::print_json;
use super::{output, results};
use crate::report::{self, Document};

/// Show stored runs again, read by this version of their experiments.
#[derive(Debug, Args)]
#[command(after_help = "\
RUN is the beginning of a run's name, `latest`, or `latest:EXPERIMENT` (see `larder list --runs`).

Examples:
  larder report                         the latest run of each experiment, in the terminal
  larder report --open                  the same as a page in the browser
  larder report --goals                 which goals hold, are missed or were not measured
  larder report latest:zero-fill --format markdown > zero-fill.md
  larder report 3f9a --html page.html")]
pub(super) struct Report {
    /// Runs [default: the latest of each experiment; imported ones where none was taken here].
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Write the page here.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the page (beside the database unless --html says where) and open it in the browser.
    #[arg(long)]
    open: bool,
    /// Print the goals alone: every one with what was measured, and why it was not.
    #[arg(long, conflicts_with_all = ["html", "open", "format"])]
    goals: bool,
    /// What to print.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["html", "open"])]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For the terminal.
    Table,
    /// One self-contained page.
    Html,
    /// For mail and issues.
    Markdown,
    /// For scripts.
    Json,
}

pub(super) fn run(global: &Global, args: &Report, out: &mut dyn Write) -> Outcome {
    let store = results::open(global)?;
    let document = results::document(results::reported(&store, &args.runs)?, Some(&store))?;
    if args.open || args.html.is_some() {
        let path = match &args.html {
            Some(path) => path.clone(),
            None => results::beside(global, PAGE)?,
        };
        write_page(&document, &path)?;
        writeln!(out, "{}", path.display())?;
        return if args.open { open(&path) } else { Ok(()) };
    }
    if args.goals {
        return goals(global, &document, out);
    }
    let format = args.format.unwrap_or(if global.json {
        Format::Json
    } else {
        Format::Table
    });
    match format {
        Format::Table => report::terminal(&document, &output::style(global), out)?,
        Format::Html => out.write_all(report::html(&document).map_err(Failure::io)?.as_bytes())?,
        Format::Markdown => out.write_all(report::markdown(&document).as_bytes())?,
        Format::Json => {
            let imported = store.imported()?;
            let mut json = report::json(&document);
            for (entry, (run, _)) in json["runs"]
                .as_array_mut()
                .into_iter()
                .flatten()
                .zip(&document.runs)
            {
                entry["imported"] = imported.contains(&run.id).into();
            }
            print_json(out, &json)?;
        }
    }
    Ok(())
}

/// The goals alone.
fn goals(global: &Global, document: &Document, out: &mut dyn Write) -> Outcome {
    if !global.json {
        return Ok(report::goals(document, &output::style(global), out)?);
    }
    let all = document.runs.iter().flat_map(|(run, a)| {
        let experiment = &run.experiment;
        a.goals
            .iter()
            .map(move |goal| json!({ "experiment": experiment, "goal": goal }))
    });
    print_json(
        out,
        &json!({ "schema": 1, "goals": all.collect::<Vec<_>>() }),
    )
}

/// Name of the page beside the database.
pub(super) const PAGE: &str = "larder-report.html";

/// Writes the page.
pub(super) fn write_page(document: &Document, path: &Path) -> Outcome {
    let page = report::html(document).map_err(Failure::io)?;
    output::write_file(path, &page)
}

/// Opens a file in what the desktop calls the browser.
fn open(path: &Path) -> Outcome {
    let begun = |program: &str| {
        Command::new(program)
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .is_ok()
    };
    let browser = std::env::var("BROWSER").ok().filter(|b| !b.is_empty());
    if browser.is_some_and(|b| begun(&b)) || begun("xdg-open") || begun("open") {
        Ok(())
    } else {
        Err(Failure::io(format!(
            "no program to open {} with was found; set BROWSER, or open the file yourself",
            path.display()
        )))
    }
}
