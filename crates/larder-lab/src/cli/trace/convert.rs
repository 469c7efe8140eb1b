//! `trace convert`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::failure::{Failure, Outcome};
use crate::cli::global::Global;
use crate::cli::output;
use crate::cli::sim::args::Reading;
use crate::cli::sim::{Progress, sim_fault};
use larder_sim::{Encoder, Format, Interner, Output, ReadOptions, Record, Trace, WRITABLE, room};

#[derive(Debug, Args)]
#[command(after_help = "\
OUT's name says format and compression: blocks.txt.gz, web.oracleGeneral.zst, io.csv, ids.u32le; `-` is standard output and \
needs --to. TRACE may be a workload: zipf:blocks=1e5,alpha=0.9 (see larder sim --workloads).

CSV keeps everything: times, blocks, bytes, operations, requests, processes and files. larder names on stderr what the other \
format cannot hold.

Examples:
  larder trace convert build.csv.zst build.oracleGeneral.zst
  larder trace convert zipf:blocks=1e5,alpha=0.9 - --to txt")]
pub(super) struct Convert {
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

fn written() -> String {
    let names: Vec<&str> = WRITABLE.iter().map(|f| f.name()).collect();
    names.join(", ")
}

/// The format to write, by name or by the file's ending.
pub(super) fn target(to: Option<&str>, path: &Path) -> Result<Format, Failure> {
    let format = match to {
        Some(name) => Format::by_name(name).ok_or_else(|| {
            Failure::usage(format!(
                "there is no format '{name}'; larder writes {}",
                written()
            ))
        })?,
        None => {
            let name = path
                .file_name()
                .and_then(|n| n.to_str())
                .unwrap_or_default();
            name.split('.').skip(1).filter_map(Format::by_name).next().ok_or_else(|| {
                Failure::usage(format!(
                    "{} does not say its format; name it for instance x.txt.gz, or say --to NAME; larder writes {}",
                    path.display(),
                    written()
                ))
            })?
        }
    };
    if !WRITABLE.contains(&format) {
        return Err(Failure::usage(format!(
            "larder does not write {}; it writes {}",
            format.name(),
            written()
        )));
    }
    Ok(format)
}

pub(super) fn run(global: &Global, args: &Convert) -> Outcome {
    let to = target(args.to.as_deref(), &args.out)?;
    convert(
        global,
        &args.trace,
        &args.out,
        to,
        args.dense,
        &args.reading.options()?,
    )
}

/// Reads a trace once, or twice for oracleGeneral, which has to know when blocks come again.
pub(super) fn convert(
    global: &Global,
    from: &Path,
    out: &Path,
    to: Format,
    dense: bool,
    options: &ReadOptions,
) -> Outcome {
    let oracle = to == Format::OracleGeneral;
    let once = from == Path::new("-") || std::fs::metadata(from).is_ok_and(|m| !m.is_file());
    if oracle && once {
        return Err(Failure::usage(format!(
            "{} can be read only once, and oracleGeneral says of each use when the next one comes; convert it to csv first",
            from.display()
        )));
    }
    let (uses, times) = if oracle {
        next_uses(global, from, options)?
    } else {
        (Vec::new(), 0..=0)
    };
    let mut trace = Trace::open(from, options).map_err(sim_fault)?;
    let mut bar = Progress::reading(global, from);
    let fail = |e: std::io::Error| {
        Failure::io(format!(
            "{} cannot be written: {e}; nothing was left there",
            out.display()
        ))
    };
    let mut file = Output::create(out).map_err(fail)?;
    let mut encoder = Encoder::new(to, trace.in_microseconds());
    let factor = encoder.fit_times(*times.start(), *times.end());
    let mut interner = Interner::new();
    let (mut records, mut bytes): (Vec<Record>, Vec<u8>) = (Vec::new(), Vec::new());
    encoder.begin(&mut bytes);
    loop {
        records.clear();
        let more = trace.fill(&mut records).map_err(sim_fault)?;
        for record in &mut records {
            if dense {
                record.block = interner
                    .number(record.block)
                    .map(u64::from)
                    .ok_or_else(|| Failure::refused("more blocks than can be numbered"))?;
            }
            let n = encoder.written();
            let next = uses
                .get(usize::try_from(n).unwrap_or(usize::MAX))
                .filter(|n| **n != NEVER);
            encoder
                .record(record, next.map(|n| u64::from(*n)), &mut bytes)
                .map_err(|fault| Failure::refused(format!("{}: {fault}", from.display())))?;
        }
        let kept = size_of_val(uses.as_slice()) as u64 + interner.bytes();
        room(trace.name(), kept, options.max_memory).map_err(sim_fault)?;
        file.write(&bytes).map_err(fail)?;
        bytes.clear();
        bar.at(trace.meter());
        if !more {
            break;
        }
    }
    file.finish().map_err(fail)?;
    bar.end();
    let lost = encoder.lost();
    for (n, what) in [
        (lost.removals, "removals were left out"),
        (lost.states, "changes of a block's state were left out"),
        (lost.readahead, "blocks that were read ahead were left out"),
        (lost.writes, "writes are plain uses there"),
        (
            lost.grouped,
            "uses belonged to one request with the use before, which is not kept",
        ),
        (lost.files, "uses lose the number of their file"),
        (
            lost.tenants,
            "uses lose the number of their process or tenant",
        ),
        (lost.times, "uses lose their time"),
        (lost.sizes, "uses lose their number of bytes"),
    ] {
        if n > 0 {
            output::hint(
                global,
                &format!("{} has no place for everything: {n} {what}", to.name()),
            );
        }
    }
    if let Some(factor) = factor {
        output::hint(
            global,
            &format!(
                "times are too large for the 32 bits of {}: they are counted from the first one{}",
                to.name(),
                if factor > 1 {
                    format!(", and divided by {factor}")
                } else {
                    String::new()
                }
            ),
        );
    }
    output::hint(
        global,
        &format!("wrote {} uses to {}", encoder.written(), out.display()),
    );
    Ok(())
}

const NEVER: u32 = u32::MAX;

/// For each use that is written, the number of the use at which its block comes again. 4 bytes a use.
type NextUses = Vec<u32>;

/// The next uses, and the least and the largest time.
fn next_uses(
    global: &Global,
    from: &Path,
    options: &ReadOptions,
) -> Result<(NextUses, RangeInclusive<u64>), Failure> {
    let mut trace = Trace::open(from, options).map_err(sim_fault)?;
    let encoder = Encoder::new(Format::OracleGeneral, false);
    let mut bar = Progress::reading(global, from);
    let mut interner = Interner::new();
    let (mut next, mut last): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let (mut least, mut most) = (u64::MAX, 0);
    let mut records = Vec::new();
    loop {
        records.clear();
        let more = trace.fill(&mut records).map_err(sim_fault)?;
        next.try_reserve(records.len()).map_err(|_| {
            Failure::refused("no memory for another use; take a part of the trace with --limit")
        })?;
        for record in records.iter().filter(|r| encoder.keeps(r)) {
            let at = u32::try_from(next.len())
                .ok()
                .filter(|n| *n != NEVER)
                .ok_or_else(|| {
                    Failure::refused("more than 2^32 uses; take a part of the trace with --limit")
                })?;
            let block = interner
                .number(record.block)
                .ok_or_else(|| Failure::refused("more blocks than can be numbered"))?
                as usize;
            if block == last.len() {
                last.push(at);
            } else {
                next[last[block] as usize] = at;
                last[block] = at;
            }
            next.push(NEVER);
            least = least.min(record.time);
            most = most.max(record.time);
        }
        let kept = 4 * (next.len() + last.len()) as u64 + interner.bytes();
        room(trace.name(), kept, options.max_memory).map_err(sim_fault)?;
        bar.at(trace.meter());
        if !more {
            return Ok((next, least.min(most)..=most));
        }
    }
}
