//! libCacheSim, through its Python package: the loop over the trace is its C library's.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, bail, ensure};

use super::{HITS, SPEED, trace};
use crate::experiments::scratch::Scratch;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Prints the CPU seconds of one simulation and the share of the requests that missed.
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

/// libCacheSim.
pub(super) struct LibCacheSim;

/// What it calls a rule.
fn its_name(rule: &str) -> anyhow::Result<&'static str> {
    Ok(match rule {
        "lru" => "LRU",
        "s3-fifo" => "S3FIFO",
        "arc" => "ARC",
        "opt" => "Belady",
        other => bail!("rule '{other}' is not compared; lru, s3-fifo, arc and opt are"),
    })
}

fn python(program: &str, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new("python3")
        .args(["-c", program])
        .args(arguments)
        .output()
}

impl Contestant for LibCacheSim {
    fn name(&self) -> &'static str {
        "libcachesim"
    }

    fn about(&self) -> &'static str {
        "libCacheSim's own loop over the same trace in its native format, called from Python"
    }

    fn available(&self) -> Result<(), String> {
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

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let rule = its_name(params.text("rule")?)?;
        let size = params.count("size")?;
        let name = match params.text("form")? {
            "decoded" => "trace.oracleGeneral.bin",
            "zst" => "trace.oracleGeneral.zst",
            other => bail!("form '{other}' is unknown; the forms are decoded and zst"),
        };
        let trace = trace::load(params)?;
        let scratch = Scratch::open("simulator")?;
        let path = scratch.path(name);
        trace::write(&trace, &path)?;
        let requests = trace.counts.uses;
        drop(trace);
        let (seconds, missed) = simulate(&path, rule, size)?;
        Ok(Measures::new()
            .with(SPEED, requests as f64 / 1e6 / seconds.max(1e-9))
            .with(HITS, 100.0 * (1.0 - missed)))
    }
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
