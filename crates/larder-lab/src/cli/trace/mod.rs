//! `trace`: what is in a trace, in another format, and traces of one's own.

mod convert;
mod info;
mod record;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::args::Global;
use super::failure::Outcome;
use super::sim::args::Reading;
use larder_sim::{Format, WRITABLE};

/// Look into traces, convert them, record one's own.
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
    Info(Info),
    /// Write a trace in another format.
    Convert(Convert),
    /// Follow the files of a command (with strace) and keep what it reads and writes.
    Record(Record),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder trace info build.csv.zst
  larder trace info zipf:blocks=1e5,alpha=0.9 --json")]
struct Info {
    /// Traces.
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Args)]
#[command(after_help = "\
OUT's name says format and compression: blocks.txt.gz, web.oracleGeneral.zst, io.csv, ids.u32le; `-` is standard output and
needs --to. TRACE may be a workload: zipf:blocks=1e5,alpha=0.9 (see larder sim --workloads). 
CSV keeps times, blocks, bytes, operations, requests and tenants; of its file a block keeps only its number. What another
format has no place for is said on stderr.

Examples:
  larder trace convert build.csv.zst build.oracleGeneral.zst
  larder trace convert zipf:blocks=1e5,alpha=0.9 - --to txt")]
struct Convert {
    /// The trace: a file or a workload.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The new file.
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Its format [default: by its name].
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// Number blocks from 0 in order of arrival.
    #[arg(long)]
    dense: bool,
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder trace record -o build.csv.zst -- make -j2
  larder trace record -o build.strace.gz -- make      keep strace's own text
  larder sim build.csv.zst

The command's exit code is larder's (128 + n where signal n ended it), also where no trace can be made of what it did.
Where larder itself fails before the command runs, the code is one of those that `larder --help` lists.")]
struct Record {
    /// The new trace; its name says format and compression as for convert, or .strace.
    #[arg(long, short, value_name = "OUT")]
    out: PathBuf,
    /// Bytes of a block.
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    block_size: u32,
    /// The program that follows system calls.
    #[arg(long, value_name = "PROGRAM", default_value = "strace")]
    strace: PathBuf,
    /// The command.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<std::ffi::OsString>,
}

pub(super) fn run(global: &Global, args: &Trace, out: &mut dyn Write) -> Outcome {
    match &args.command {
        Command::Formats => formats(global, out),
        Command::Info(args) => info::run(global, &args.traces, &args.reading, out),
        Command::Convert(args) => convert::run(global, args, out),
        Command::Record(args) => record::run(global, args),
    }
}

fn formats(global: &Global, out: &mut dyn Write) -> Outcome {
    if global.json {
        let all: Vec<_> = Format::ALL
            .iter()
            .map(|f| serde_json::json!({ "name": f.name(), "about": f.about(), "written": WRITABLE.contains(f) }))
            .collect();
        return super::print_json(out, &serde_json::json!({ "schema": 1, "formats": all }));
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
