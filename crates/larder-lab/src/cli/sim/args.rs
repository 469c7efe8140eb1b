//! The arguments of `sim`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::failure::Failure;
use crate::machine;
use larder_sim::machine::{Requests, Setup};
use larder_sim::{Format, ReadOptions, Size, SpillTo, knows_the_future, names};

/// Simulate caches over traces: hit ratios of every rule at every size.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
A trace is a file of any format that `larder trace formats` lists, also as .gz, .xz or .zst; `-` is standard input. \
A workload may stand where a trace does, by its name, a colon and parameters: zipf:blocks=1e5,requests=1e6,alpha=0.9,seed=1 \
(see --workloads); a file of such a name is written ./zipf:
Sizes are numbers of blocks (1000, 4k, 1M), bytes (64MiB, in blocks of --block-size) or shares of the trace's different blocks (1%).
Bytes are refused where the blocks are objects with sizes of their own.

Examples:
  larder sim trace.oracleGeneral.zst                    every rule at 0.1, 1 and 10 %
  larder sim web.csv --policy lru,s3-fifo,opt --size 1000,5%
  larder sim disk.spc.gz --mrc --html curve.html        how hits rise with the size
  larder sim zipf: loop:blocks=2000 --size 1000         made here, no file needed
  larder sim dbench:clients=16                          16 clients of dbench's loadfile (Debian: dbench)
  larder sim disk.spc.gz --disk=seek=4,rate=160         what a disk then reads and writes, and how long that takes
  larder sim disk.spc.gz --size 256MiB --settings larder.toml    a block cache's rule and size, for the library
  larder sim *.txt --json > rows.jsonl                  a line of JSON for each trace, rule and size
  larder sim plan *.txt --shards 16                     what each of 16 machines would do (see docs/simulator.md)")]
pub(in crate::cli) struct Sim {
    #[command(subcommand)]
    pub(super) batch: Option<Batch>,
    #[command(flatten)]
    pub(super) what: What,
    /// Also write a page with charts here.
    #[arg(long, value_name = "FILE.html")]
    pub(super) html: Option<PathBuf>,
    /// Write the best rule that a block cache has, and the size, into this settings file: of one trace and one --size.
    #[arg(long, value_name = "FILE", requires = "size", conflicts_with = "mrc")]
    pub(super) settings: Option<PathBuf>,
    /// Print comma-separated values.
    #[arg(long, conflicts_with = "json")]
    pub(super) csv: bool,
    /// Miss-ratio curves: exact for LRU in one pass, sampled for all.
    #[arg(long, conflicts_with = "disk")]
    pub(super) mrc: bool,
    /// Share of the blocks that sampled curves look at [default: about 16384 blocks].
    #[arg(long, value_name = "SHARE", requires = "mrc")]
    pub(super) mrc_rate: Option<f64>,
    /// Leave out the exact curves of rules other than LRU; the error of the samples is then unknown.
    #[arg(long, requires = "mrc")]
    pub(super) mrc_sampled: bool,
    /// Simulate while reading, for traces larger than memory. So it is in any case where no rule must know the future; this leaves
    /// opt out of all.
    #[arg(long, conflicts_with = "mrc")]
    pub(super) stream: bool,
    /// List the rules.
    #[arg(long)]
    pub(super) rules: bool,
    /// List the workloads that may stand where a trace does.
    #[arg(long)]
    pub(super) workloads: bool,
    /// Say how fast it was, on stderr.
    #[arg(long, conflicts_with = "mrc")]
    pub(super) times: bool,
}

/// Traces, rules and sizes.
#[derive(Debug, Clone, Args)]
pub(super) struct What {
    /// Traces: files, or workloads as zipf:blocks=1e5,alpha=0.9.
    #[arg(value_name = "TRACE")]
    pub(super) traces: Vec<PathBuf>,
    /// Rules, or `all` (see --rules) [default: all; with --mrc opt, the default rule, two others and lru].
    #[arg(
        long,
        visible_alias = "rule",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    pub(super) policy: Option<Vec<String>>,
    /// Sizes: blocks, bytes or shares [default: 0.1%,1%,10%; 24 sizes with --mrc].
    #[arg(
        long,
        alias = "sizes",
        value_name = "N|NMiB|N%,…",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    pub(super) size: Option<Vec<String>>,
    /// Model dirty blocks, their write-back and a disk behind the cache: seek in ms, rate in MB/s, dirty in % of the cache,
    /// old in s, cpu in MB/s that are moved where nothing waits, readahead [default: seek=8.5,rate=20,dirty=40,old=30,readahead=no].
    #[arg(
        long,
        value_name = "NAME=N,…",
        value_parser = disk,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "readahead=no",
        conflicts_with = "tick"
    )]
    pub(super) disk: Option<Setup>,
    /// Threads [default: all processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) threads: Option<u16>,
    /// Directory of the file for what --max-memory does not hold, where a rule must know the future [default: TMPDIR or /var/tmp].
    #[arg(long, value_name = "DIR")]
    pub(super) spill: Option<PathBuf>,
    /// Bytes that the file may have; 0 for no file [default: eight times --max-memory, but half of what is free there].
    #[arg(long, value_name = "BYTES", value_parser = bytes_or_none)]
    pub(super) max_spill: Option<u64>,
    #[command(flatten)]
    pub(super) reading: Reading,
}

/// How traces are read.
#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct Reading {
    /// Format of the traces [default: auto-detect].
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) format: Option<String>,
    /// Bytes of a block: what traces of byte ranges are cut into, and sizes in bytes are counted in.
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) block_size: u32,
    /// Columns of a CSV: time, id or offset or sector, size, op, file, tenant; by number or heading.
    #[arg(long, value_name = "NAME=N,…")]
    pub(in crate::cli) columns: Option<String>,
    /// Column delimiter of a CSV [default: auto-detect].
    #[arg(long, value_name = "CHAR")]
    pub(in crate::cli) delimiter: Option<char>,
    /// Accept any text as the name of a block in CSV and text traces.
    #[arg(long)]
    pub(in crate::cli) text_ids: bool,
    /// What a mapping in a trace by strace counts as, which does not show the pages that were touched [default: whole].
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(in crate::cli) mmap: Option<Mapped>,
    /// Stop after N uses of blocks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::cli) limit: Option<u64>,
    /// Memory that a trace may take, for instance 500M or 4G [default: a quarter of the machine's or the control group's].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(in crate::cli) max_memory: Option<u64>,
    /// Whether the uses of one request count as one use or as several, for rules that distinguish them.
    #[arg(long, value_enum, default_value_t = Touches::Request, value_name = "WHAT")]
    pub(in crate::cli) touches: Touches,
    /// Uses that are a second to the kernels' rules, which age by time [default: time stands still].
    #[arg(
        long,
        value_name = "USES",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(in crate::cli) tick: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(in crate::cli) enum Mapped {
    /// The mapped range is read once.
    #[default]
    Whole,
    /// Nothing is read.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(in crate::cli) enum Touches {
    /// Requests are those of the trace.
    #[default]
    Request,
    /// Each use is a request.
    Use,
}

impl Reading {
    pub(in crate::cli) fn options(&self) -> Result<ReadOptions, Failure> {
        let format = match &self.format {
            None => None,
            Some(name) => Some(Format::by_name(name).ok_or_else(|| {
                Failure::usage(format!(
                    "there is no format '{name}'; there are {}",
                    Format::names()
                ))
            })?),
        };
        if let Some(format) = format {
            self.fit(format)?;
        }
        Ok(ReadOptions {
            format,
            block_size: self.block_size,
            columns: self.columns.clone(),
            delimiter: self.delimiter,
            text_ids: self.text_ids,
            mapped: self.mapped() == Mapped::Whole,
            limit: self.limit,
            touches_apart: self.touches == Touches::Use,
            tick: self.tick,
            max_memory: self.max_memory.unwrap_or_else(share_of_memory),
            spill: None,
        })
    }

    pub(super) fn mapped(&self) -> Mapped {
        self.mmap.unwrap_or_default()
    }

    /// Refuses what a reader of the named format would not look at.
    fn fit(&self, named: Format) -> Result<(), Failure> {
        let options = [
            ("--columns", self.columns.is_some(), Format::Csv),
            ("--delimiter", self.delimiter.is_some(), Format::Csv),
            ("--mmap", self.mmap.is_some(), Format::Strace),
        ];
        let unused = |(_, given, of): &(&str, bool, Format)| *given && *of != named;
        options
            .into_iter()
            .find(unused)
            .map_or(Ok(()), |(option, _, of)| {
                Err(Failure::usage(format!(
                    "{option} says how {} is read, but --format names {}; leave one of them out",
                    of.name(),
                    named.name()
                )))
            })
    }
}

/// A number of bytes, or of KiB, MiB or GiB.
pub(in crate::cli) fn bytes(text: &str) -> Result<u64, String> {
    let plain = text.trim_end_matches("iB").trim_end_matches('B');
    let (digits, unit) = match plain.as_bytes().last() {
        Some(b'k' | b'K') => (&plain[..plain.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&plain[..plain.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&plain[..plain.len() - 1], 1 << 30),
        _ => (plain, 1),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(unit))
        .filter(|n| *n > 0)
        .ok_or_else(|| format!("'{text}' is no number of bytes; write for instance 500M or 4G"))
}

fn bytes_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { bytes(text) }
}

/// The words of `--disk`. The cache's blocks and their bytes come later.
fn disk(text: &str) -> Result<Setup, String> {
    let mut setup = Setup::new(1);
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (name.trim(), value.trim());
        if name == "readahead" {
            setup.readahead = match value {
                "yes" => true,
                "no" => false,
                _ => return Err(format!("readahead is '{value}'; it is yes or no")),
            };
            continue;
        }
        let (place, unit, least, most) = match name {
            "seek" => (&mut setup.drive.seek, 1e-3, 0.0, 1e6),
            "rate" => (&mut setup.drive.rate, 1e6, 1e-3, 1e9),
            "cpu" => (&mut setup.cpu, 1e6, 1e-3, 1e9),
            "dirty" => (&mut setup.dirty, 1e-2, 0.0, 100.0),
            "old" => (&mut setup.old, 1.0, 0.0, 1e9),
            _ => {
                return Err(format!(
                    "there is no '{name}'; there are seek (ms), rate (MB/s), dirty (%), old (s), cpu (MB/s), readahead (yes or no)"
                ));
            }
        };
        let number = value.parse::<f64>().ok();
        *place = number
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(|| format!("{name} is '{value}'; it is a number from {least} to {most}"))?
            * unit;
    }
    Ok(setup)
}

/// Where a temporary file may be large: not in memory, as /tmp often is.
fn large_files() -> PathBuf {
    let named = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
    let usual = || {
        let usual = PathBuf::from("/var/tmp");
        if usual.is_dir() {
            usual
        } else {
            std::env::temp_dir()
        }
    };
    named.map_or_else(usual, PathBuf::from)
}

/// A quarter: OPT and the rules take as much again, and other programs want some.
fn share_of_memory() -> u64 {
    machine::memory_limit(&machine::Root::system()).map_or(u64::MAX, |all| all / 4)
}

impl What {
    /// The rules asked for; these if none are.
    pub(super) fn policies_or(&self, these: &[&str]) -> Result<Vec<String>, Failure> {
        let these = || these.iter().map(|&name| name.to_owned()).collect();
        let asked = self.policy.clone().unwrap_or_else(these);
        let names = names(&asked).map_err(Failure::usage)?;
        if names.is_empty() {
            return Err(Failure::usage("--policy names no rule"));
        }
        Ok(names)
    }

    /// The rules; of all those that are possible, if they do not see the whole trace first.
    pub(super) fn policies(&self, streamed: bool) -> Result<Vec<String>, Failure> {
        let mut names = self.policies_or(&["all"])?;
        let asked = self.policy.as_ref();
        let all = asked.is_none_or(|asked| asked.iter().any(|name| name == "all"));
        if all && (streamed || self.disk.is_some()) {
            names.retain(|name| !knows_the_future(name));
        }
        Ok(names)
    }

    /// Blocks of a size, for a trace with so many different ones.
    pub(super) fn blocks(&self, size: &Size, blocks: u32) -> Result<usize, Failure> {
        let block_size = self.reading.block_size;
        let of = size.of(blocks, block_size);
        of.map_err(|why| Failure::usage(format!("--size {why}")))
    }

    pub(super) fn sizes(&self) -> Result<Vec<Size>, Failure> {
        let asked = self
            .size
            .clone()
            .unwrap_or_else(|| ["0.1%", "1%", "10%"].map(str::to_owned).to_vec());
        let sizes: Result<Vec<_>, _> = asked.iter().map(|s| Size::parse(s)).collect();
        let sizes = sizes.map_err(|why| Failure::usage(format!("--size {why}")))?;
        if sizes.is_empty() {
            return Err(Failure::usage("--size names no size"));
        }
        Ok(sizes)
    }

    /// How traces are read that are kept.
    pub(super) fn kept(&self) -> Result<ReadOptions, Failure> {
        let mut options = self.reading.options()?;
        let dir = self.spill.clone().unwrap_or_else(large_files);
        let most = self.max_spill.unwrap_or_else(|| {
            let free = rustix::fs::statvfs(&dir)
                .map_or(u64::MAX, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
            options.max_memory.saturating_mul(8).min(free / 2)
        });
        options.spill = (most > 0).then_some(SpillTo { dir, most });
        Ok(options)
    }

    /// The modelled disk, with everything but the cache's size.
    pub(super) fn disk(&self) -> Option<Setup> {
        let mut setup = self.disk?;
        setup.drive.block = f64::from(self.reading.block_size);
        if self.reading.touches == Touches::Use {
            setup.requests = Requests::Apart;
        }
        Some(setup)
    }

    pub(super) fn threads(&self) -> usize {
        let here = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(here, usize::from)
    }
}

/// Parts of a sweep for a batch engine.
#[derive(Debug, Subcommand)]
pub(super) enum Batch {
    /// What each shard of a sweep would do.
    Plan(Plan),
    /// One shard of a sweep: writes a part.
    Run(RunShard),
    /// All parts of a sweep as one result.
    Merge(Merge),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder sim plan *.txt --shards 16                     what each of 16 machines would do
  larder sim plan *.txt --size 1%,10% --shards 16 --json | jq .cells[0]")]
pub(super) struct Plan {
    #[command(flatten)]
    pub(super) what: What,
    /// Number of shards.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) shards: u32,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Which shard this is comes from the first of these that is there:
  --shard K/N; --index I --shards N
  LARDER_SHARD_INDEX (from 0), of LARDER_SHARDS or --shards: what any engine can be configured to set
  SLURM_ARRAY_TASK_ID less SLURM_ARRAY_TASK_MIN, of SLURM_ARRAY_TASK_COUNT or --shards (a Slurm job array)
  JOB_COMPLETION_INDEX, of LARDER_SHARDS or --shards (a Kubernetes indexed job)
HTCondor sets none of them by itself; its submit file does:
  environment = \"LARDER_SHARD_INDEX=$(Process) LARDER_SHARDS=16\"

Examples:
  larder sim run *.txt --shard 3/16 --out part-%k.jsonl
  LARDER_SHARDS=16 larder sim run *.txt --size 1%,10% --out parts/part-%k.jsonl    in a job array")]
pub(super) struct RunShard {
    #[command(flatten)]
    pub(super) what: What,
    /// Which of how many, counted from 1, for instance 3/16.
    #[arg(long, value_name = "K/N", conflicts_with_all = ["index", "shards"])]
    pub(super) shard: Option<String>,
    /// Which, counted from 0.
    #[arg(long, value_name = "I", requires = "shards")]
    pub(super) index: Option<u32>,
    /// How many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) shards: Option<u32>,
    /// Write the part here; %k becomes the shard's number [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    pub(super) out: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder sim merge part-*.jsonl                         the table of all parts
  larder sim merge part-*.jsonl --html sweep.html --json > rows.jsonl")]
pub(super) struct Merge {
    /// The parts, in any order.
    #[arg(value_name = "PART", required = true)]
    pub(super) parts: Vec<PathBuf>,
    /// Also write a page with charts here.
    #[arg(long, value_name = "FILE.html")]
    pub(super) html: Option<PathBuf>,
    /// Print comma-separated values.
    #[arg(long, conflicts_with = "json")]
    pub(super) csv: bool,
}
