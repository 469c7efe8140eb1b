//! `trace info`.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::failure::{Failure, Outcome};
use crate::cli::global::Global;
use crate::cli::output::plain;
use crate::cli::sim::{Progress, args::Reading, format_name, sim_fault};
use larder_sim::{Chunk, Counts, Kind, Loader, Record, Trace};

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
    /// Different files, and whether there are more than are counted.
    files: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more_files: bool,
    /// Different processes or tenants.
    tenants: usize,
    bytes_used: u64,
    /// Blocks that are used only once.
    used_once: u64,
    /// Uses of the block that is used most.
    most_uses: u32,
    /// Uses that hit in a cache that evicts nothing.
    possible_hits: u64,
}

/// Files that are told apart: some 8 MiB.
const MOST_FILES: usize = 1 << 20;

/// The different files and tenants of a trace. There are 2^16 tenants at most.
#[derive(Debug, Default)]
struct Owners {
    files: HashSet<u32>,
    more_files: bool,
    tenants: HashSet<u16>,
    last: Option<(u32, u16)>,
}

impl Owners {
    fn see(&mut self, record: &Record) {
        let owner = Some((record.file, record.tenant));
        if self.last == owner {
            return;
        }
        self.last = owner;
        self.tenants.insert(record.tenant);
        if self.files.len() < MOST_FILES {
            self.files.insert(record.file);
        } else {
            self.more_files |= !self.files.contains(&record.file);
        }
    }
}

/// What is counted of each block, by its dense number.
#[derive(Debug, Default)]
struct Blocks {
    uses: Vec<u32>,
    /// Whether a cache that evicts nothing has it.
    there: Vec<bool>,
    hits: u64,
}

impl Blocks {
    fn reserve(&mut self, blocks: usize) -> Result<(), Failure> {
        let more = blocks.saturating_sub(self.uses.len());
        let reserved = self.uses.try_reserve(more);
        let reserved = reserved.and_then(|()| self.there.try_reserve(more));
        reserved.map_err(|_| {
            Failure::refused(format!("no memory to count the uses of {blocks} blocks"))
        })?;
        self.uses.resize(self.uses.len() + more, 0);
        self.there.resize(self.there.len() + more, false);
        Ok(())
    }

    fn count(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        self.reserve(chunk.bound as usize)?;
        chunk.for_each(|block, _, kind| {
            let block = block as usize;
            if kind.is_state() {
                return;
            }
            let was = std::mem::replace(&mut self.there[block], kind != Kind::Remove);
            if kind.is_use() {
                self.hits += u64::from(was);
                self.uses[block] = self.uses[block].saturating_add(1);
            }
        });
        Ok(())
    }
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
        let (mut blocks, mut owners) = (Blocks::default(), Owners::default());
        let mut records: Vec<Record> = Vec::new();
        loop {
            records.clear();
            let more = trace.fill(&mut records).map_err(sim_fault)?;
            for record in &records {
                facts.see(record);
                owners.see(record);
            }
            let mut room = Ok(());
            loader
                .add(&facts.trace, &records, |chunk| {
                    room = blocks.count(&chunk);
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
            blocks.count(&chunk)?;
        }
        bar.end();
        facts.counts = counts;
        facts.used_once = blocks.uses.iter().filter(|n| **n == 1).count() as u64;
        facts.most_uses = blocks.uses.iter().copied().max().unwrap_or(0);
        facts.possible_hits = blocks.hits;
        facts.files = owners.files.len();
        facts.more_files = owners.more_files;
        facts.tenants = owners.tenants.len();
        facts.print(global, out)?;
    }
    Ok(())
}

impl Facts {
    fn see(&mut self, r: &Record) {
        self.least_block = self.least_block.min(r.block);
        self.largest_block = self.largest_block.max(r.block);
        self.begin = self.begin.min(r.time);
        self.end = self.end.max(r.time);
        if r.kind.is_use() {
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
        let best = self.possible_hits as f64 / c.uses.max(1) as f64 * 100.0;
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
        if c.states > 0 {
            writeln!(
                out,
                "  state         {} times dirty, clean or held, or a second",
                c.states
            )?;
        }
        if self.end > 0 {
            writeln!(out, "  time          {} to {}", self.begin, self.end)?;
        }
        if self.files > 1 || self.tenants > 1 {
            writeln!(
                out,
                "  files         {}{}; processes or tenants {}",
                if self.more_files { "more than " } else { "" },
                self.files,
                self.tenants
            )?;
        }
        if self.bytes_used > 0 {
            writeln!(out, "  bytes used    {}", self.bytes_used)?;
        }
        writeln!(out, "  checksum      {:016x}", c.checksum)?;
        Ok(())
    }
}
