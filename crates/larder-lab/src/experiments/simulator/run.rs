//! What is timed: the two simulators, over a workload by Zipf's law in memory or in a file that both read.

use std::path::Path;
use std::process::{Command, Output as Ended};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::contestants::timing::process_cpu_ns;
use crate::experiments::scratch::Scratch;
use crate::model::{Measures, Params};
use larder_sim::{
    Encoder, Format, Job, Loaded, NextUse, Outcome, Output, ReadOptions, Record, Watch, sweep,
};

/// Requests by second.
pub(super) const SPEED: &str = "mreq_per_s";
/// Share of the requests that hit.
pub(super) const HITS: &str = "hit_percent";

/// libCacheSim, through its Python package: the loop over the trace is its C library's. Prints the CPU seconds of one
/// simulation and the share of the requests that missed.
const PROGRAM: &str = "
import sys, time, libcachesim as lcs
path, rule, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = lcs.ReaderInitParam(ignore_obj_size=True)
reader = lcs.TraceReader(trace=path, trace_type=lcs.TraceType.ORACLE_GENERAL_TRACE, reader_init_params=options)
cache = getattr(lcs, rule)(cache_size=size)
start = time.process_time()
missed = cache.process_trace(reader)[0]
print(time.process_time() - start, missed)
";

/// Ends with 0 if the package is there, without loading it.
const LOOK: &str =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('libcachesim') is None)";

/// What `larder sim` does, in this process.
pub(super) fn larder(params: &Params) -> anyhow::Result<Measures> {
    let job = Job {
        policy: params.text("rule")?.to_owned(),
        size: params.count("size")?,
    };
    ensure!(job.size > 0, "a cache of no blocks was asked for");
    let trace = load(params)?;
    let simulate = |trace: &Loaded, jobs: &[Job], threads| -> anyhow::Result<Vec<Outcome>> {
        Ok(sweep(trace, jobs, threads, &Watch::default())?)
    };
    match params.text("form")? {
        "decoded" => {
            let from = process_cpu_ns();
            let outcomes = simulate(&trace, &[job], 1)?;
            measures(&outcomes, (process_cpu_ns() - from) as f64 / 1e9)
        }
        form @ ("file" | "zst") => {
            let scratch = Scratch::open("simulator")?;
            let path = scratch.path(file_of(form)?);
            write(&trace, &path)?;
            drop(trace);
            let from = process_cpu_ns();
            let trace = Loaded::read(&path, &ReadOptions::default(), |_| {})?;
            let outcomes = simulate(&trace, &[job], 1)?;
            measures(&outcomes, (process_cpu_ns() - from) as f64 / 1e9)
        }
        "sweep" => {
            // Sixteen sizes, the largest one the given.
            let jobs: [Job; 16] = core::array::from_fn(|n| Job {
                size: (job.size * (n + 1) / 16).max(1),
                ..job.clone()
            });
            let threads = params.count("threads")?;
            let from = Instant::now();
            let outcomes = simulate(&trace, &jobs, threads)?;
            measures(&outcomes, from.elapsed().as_secs_f64())
        }
        other => bail!("form '{other}' is unknown; the forms are decoded, file, zst and sweep"),
    }
}

/// The speed over all caches, and the hits of the last one.
fn measures(outcomes: &[Outcome], seconds: f64) -> anyhow::Result<Measures> {
    let uses: u64 = outcomes.iter().map(|o| o.tally.hits + o.tally.misses).sum();
    let last = outcomes.last().context("nothing was simulated")?;
    Ok(Measures::new()
        .with(SPEED, uses as f64 / 1e6 / seconds.max(1e-9))
        .with(HITS, 100.0 * last.tally.hit_ratio()))
}

/// What libCacheSim calls a rule.
fn its_name(rule: &str) -> anyhow::Result<&'static str> {
    Ok(match rule {
        "lru" => "LRU",
        "s3-fifo" => "S3FIFO",
        "arc" => "ARC",
        "opt" => "Belady",
        other => bail!("rule '{other}' is not compared; lru, s3-fifo, arc and opt are"),
    })
}

fn python(program: &str, arguments: &[&str]) -> std::io::Result<Ended> {
    let mut python = Command::new("python3");
    python.args(["-c", program]).args(arguments).output()
}

/// Whether libCacheSim is here.
pub(super) fn installed() -> Result<(), String> {
    match python(LOOK, &[]) {
        Ok(end) if end.status.success() => Ok(()),
        Ok(_) => Err(
            "python3 has no module libcachesim; pip install libcachesim, in a virtual environment whose bin comes first in PATH"
                .to_owned(),
        ),
        Err(why) => Err(format!(
            "python3 cannot be run ({why}); install it, and pip install libcachesim"
        )),
    }
}

/// The file of a form. libCacheSim reads one also where larder has the trace in memory.
fn file_of(form: &str) -> anyhow::Result<&'static str> {
    Ok(match form {
        "decoded" | "file" => "trace.oracleGeneral.bin",
        "zst" => "trace.oracleGeneral.zst",
        other => bail!("form '{other}' is unknown; the forms are decoded, file and zst"),
    })
}

/// libCacheSim's own loop over the same trace in a file.
pub(super) fn libcachesim(params: &Params) -> anyhow::Result<Measures> {
    let rule = its_name(params.text("rule")?)?;
    let size = params.count("size")?;
    let name = file_of(params.text("form")?)?;
    let trace = load(params)?;
    let scratch = Scratch::open("simulator")?;
    let path = scratch.path(name);
    write(&trace, &path)?;
    let requests = trace.counts.uses;
    drop(trace);
    let (seconds, missed) = simulate(&path, rule, size)?;
    Ok(Measures::new()
        .with(SPEED, requests as f64 / 1e6 / seconds.max(1e-9))
        .with(HITS, 100.0 * (1.0 - missed)))
}

/// CPU seconds, and the share of misses.
fn simulate(path: &Path, rule: &str, size: usize) -> anyhow::Result<(f64, f64)> {
    let path = path.to_str().context("TMPDIR is not UTF-8")?;
    let end = python(PROGRAM, &[path, rule, &size.to_string()])?;
    ensure!(
        end.status.success(),
        "libcachesim failed: {}",
        String::from_utf8_lossy(&end.stderr).trim()
    );
    two_numbers(&String::from_utf8_lossy(&end.stdout))
}

/// The two numbers of the last line; libCacheSim may have said something before.
fn two_numbers(said: &str) -> anyhow::Result<(f64, f64)> {
    let last = said.trim_end().lines().next_back().unwrap_or_default();
    let wrong = || format!("libcachesim printed '{last}' and not two numbers");
    let (seconds, missed) = last.split_once(' ').with_context(wrong)?;
    Ok((
        seconds.parse().with_context(wrong)?,
        missed.parse().with_context(wrong)?,
    ))
}

/// The workload of a cell.
pub(super) fn load(params: &Params) -> anyhow::Result<Loaded> {
    let (blocks, requests) = (params.count("blocks")?, params.count("requests")?);
    ensure!(
        blocks > 0 && requests > 0,
        "{requests} requests for {blocks} blocks were asked for; both must be at least 1"
    );
    let seed = params.count("seed")?;
    let name = format!("zipf:blocks={blocks},requests={requests},seed={seed}");
    let options = ReadOptions::default();
    Ok(Loaded::read(Path::new(&name), &options, |_| {})?)
}

/// Writes it as oracleGeneral, compressed as the name says: 24 bytes a request, with the request at which its block is used next.
pub(super) fn write(trace: &Loaded, path: &Path) -> anyhow::Result<()> {
    let lost = || format!("{} cannot be written", path.display());
    let next = NextUse::of(trace)?;
    let mut encoder = Encoder::new(Format::OracleGeneral, false);
    let mut out = Output::create(path).with_context(lost)?;
    let mut bytes = Vec::new();
    for (n, chunk) in trace.chunks().enumerate() {
        let chunk = chunk?;
        let next = next.part(n)?;
        bytes.clear();
        for (&block, &next) in chunk.blocks.iter().zip(&*next) {
            let record = Record {
                block: chunk.originals.of(block),
                bytes: 4096,
                ..Record::default()
            };
            encoder
                .record(
                    &record,
                    (next < u32::MAX).then_some(next.into()),
                    &mut bytes,
                )
                .map_err(anyhow::Error::msg)?;
        }
        out.write(&bytes).with_context(lost)?;
    }
    out.finish().with_context(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read_or_shown() {
        let said = "[INFO] something\n0.25 0.125\n";
        assert_eq!(two_numbers(said).expect("two numbers"), (0.25, 0.125));
        let error = two_numbers("no trace").expect_err("no number");
        assert!(error.to_string().contains("'no trace'"), "{error}");
    }

    #[test]
    fn other_rules_are_refused() {
        let error = its_name("fifo").expect_err("not compared");
        assert!(error.to_string().contains("'fifo'"), "{error}");
    }
}
