//! `trace`: what is in a trace, in another format, and new traces.

mod convert;
mod info;
mod record;

use std::io::Write;

use clap::{Args, Subcommand};

use super::failure::Outcome;
use super::global::Global;
use larder_sim::{Format, WRITABLE};

/// Inspect, convert and record traces.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder trace record -o build.csv.zst -- make -j2
  larder trace info build.csv.zst
  larder trace convert build.csv.zst build.oracleGeneral.zst
  larder trace formats")]
pub(super) struct Trace {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The formats that are read and written.
    #[command(after_help = "Examples:\n  larder trace formats\n  larder trace formats --json")]
    Formats,
    /// What is in a trace.
    Info(info::Info),
    /// Write a trace in another format.
    Convert(convert::Convert),
    /// Follow the files of a command (with strace) and keep what it reads and writes.
    Record(record::Record),
}

pub(super) fn run(global: &Global, args: &Trace, out: &mut dyn Write) -> Outcome {
    match &args.command {
        Command::Formats => formats(global, out),
        Command::Info(args) => info::run(global, args, out),
        Command::Convert(args) => convert::run(global, args),
        Command::Record(args) => record::run(global, args),
    }
}

fn formats(global: &Global, out: &mut dyn Write) -> Outcome {
    if global.json {
        let all: Vec<_> = Format::ALL
            .iter()
            .map(|f| serde_json::json!({ "name": f.name(), "about": f.about(), "written": WRITABLE.contains(f) }))
            .collect();
        return crate::cli::output::print_json(
            out,
            &serde_json::json!({ "schema": 1, "formats": all }),
        );
    }
    for format in Format::ALL {
        let written = if WRITABLE.contains(&format) {
            ", also written"
        } else {
            ""
        };
        writeln!(out, "{:14} {}{written}", format.name(), format.about())?;
    }
    writeln!(out, "All may be compressed: .gz, .xz, .zst.")?;
    Ok(())
}
