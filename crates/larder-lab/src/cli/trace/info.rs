//! `trace info`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::failure::{Failure, Outcome};
use crate::cli::global::Global;
use crate::cli::output::plain;
use crate::cli::sim::{Progress, args::Reading, format_name, sim_fault};
use larder_sim::{Counts, Kind, Loader, Record, Trace};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder trace info build.csv.zst
  larder trace info zipf:blocks=1e5,alpha=0.9 --json")]
pub(super) struct Info {
    /// Traces.
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

/// The description of a trace.
#[derive(Debug, Default, Serialize)]
struct Facts {
    trace: String,
    format: String,
    #[serde(flatten)]
    counts: Counts,
    /// Smallest and largest block, as the trace has them.
    least_block: u64,
    largest_block: u64,
    /// First and last time.
    begin: u64,
    end: u64,
    files: u32,
    tenants: u32,
    bytes_used: u64,
    /// Blocks that are used only once.
    used_once: u64,
    /// Uses of the block that is used most.
    most_uses: u32,
}

pub(super) fn run(global: &Global, args: &Info, out: &mut dyn Write) -> Outcome {
    for path in &args.traces {
        let mut trace = Trace::open(path, &args.reading.options()?).map_err(sim_fault)?;
        let mut bar = Progress::reading(global, path);
        let mut facts = Facts {
            trace: trace.name().to_owned(),
            format: format_name(trace.format()).to_owned(),
            least_block: u64::MAX,
            begin: u64::MAX,
            ..Facts::default()
        };
        let mut loader = Loader::of(&trace);
        let mut uses: Vec<u32> = Vec::new();
        let mut records: Vec<Record> = Vec::new();
        loop {
            records.clear();
            let more = trace.fill(&mut records).map_err(sim_fault)?;
            records.iter().for_each(|r| facts.see(r));
            let mut room = Ok(());
            loader
                .add(&facts.trace, &records, |chunk| {
                    room = count(&mut uses, &chunk);
                    Ok(())
                })
                .map_err(sim_fault)?;
            room?;
            bar.at(trace.meter());
            if !more {
                break;
            }
        }
        let (last, counts) = loader.finish();
        if let Some(chunk) = last {
            count(&mut uses, &chunk)?;
        }
        bar.end();
        facts.counts = counts;
        facts.used_once = uses.iter().filter(|n| **n == 1).count() as u64;
        facts.most_uses = uses.iter().copied().max().unwrap_or(0);
        facts.print(global, out)?;
    }
    Ok(())
}

fn count(uses: &mut Vec<u32>, chunk: &larder_sim::Chunk) -> Result<(), Failure> {
    let more = (chunk.bound as usize).saturating_sub(uses.len());
    uses.try_reserve(more).map_err(|_| {
        Failure::refused(format!(
            "no memory to count the uses of {} blocks",
            chunk.bound
        ))
    })?;
    uses.resize(uses.len() + more, 0);
    chunk.for_each(|block, _, kind| {
        if matches!(kind, Kind::Read | Kind::Write) {
            let n = &mut uses[block as usize];
            *n = n.saturating_add(1);
        }
    });
    Ok(())
}

impl Facts {
    fn see(&mut self, r: &Record) {
        self.least_block = self.least_block.min(r.block);
        self.largest_block = self.largest_block.max(r.block);
        self.begin = self.begin.min(r.time);
        self.end = self.end.max(r.time);
        self.files = self.files.max(r.file.saturating_add(1));
        self.tenants = self.tenants.max(u32::from(r.tenant) + 1);
        if matches!(r.kind, Kind::Read | Kind::Write) {
            self.bytes_used += u64::from(r.bytes);
        }
    }

    fn print(&self, global: &Global, out: &mut dyn Write) -> Outcome {
        if global.json {
            serde_json::to_writer(&mut *out, self)?;
            writeln!(out)?;
            return Ok(());
        }
        let c = &self.counts;
        writeln!(out, "{}: {}", plain(&self.trace), self.format)?;
        writeln!(out, "  uses          {} ({} writes)", c.uses, c.writes)?;
        writeln!(out, "  requests      {}", c.requests)?;
        writeln!(
            out,
            "  blocks        {}, from {} to {}",
            c.blocks, self.least_block, self.largest_block
        )?;
        writeln!(
            out,
            "  used once     {} blocks; the most used one {} times",
            self.used_once, self.most_uses
        )?;
        let best = c.uses.saturating_sub(u64::from(c.blocks)) as f64 / c.uses.max(1) as f64 * 100.0;
        writeln!(
            out,
            "  at most       {best:.2} % hits in a cache of any size"
        )?;
        if c.readahead + c.removed > 0 {
            writeln!(
                out,
                "  read ahead    {}; removed {}",
                c.readahead, c.removed
            )?;
        }
        if self.end > 0 {
            writeln!(out, "  time          {} to {}", self.begin, self.end)?;
        }
        if self.files > 1 || self.tenants > 1 {
            writeln!(
                out,
                "  files         {}; processes or tenants {}",
                self.files, self.tenants
            )?;
        }
        if self.bytes_used > 0 {
            writeln!(out, "  bytes used    {}", self.bytes_used)?;
        }
        writeln!(out, "  checksum      {:016x}", c.checksum)?;
        Ok(())
    }
}
