//! The simulator of `larder sim`.

use std::time::Instant;

use anyhow::{Context, bail, ensure};

use super::{HITS, SPEED, trace};
use crate::contestants::timing::process_cpu_ns;
use crate::experiments::scratch::Scratch;
use crate::measure::Contestant;
use crate::model::{Measures, Params};
use crate::sim::{Job, Loaded, Outcome, ReadOptions, Watch, sweep};

/// `larder sim`.
pub(super) struct Larder;

impl Contestant for Larder {
    fn name(&self) -> &'static str {
        "larder"
    }

    fn about(&self) -> &'static str {
        "what larder sim does, in this process"
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let job = Job {
            policy: params.text("rule")?.to_owned(),
            size: params.count("size")?,
        };
        ensure!(job.size > 0, "a cache of no blocks was asked for");
        let trace = trace::load(params)?;
        match params.text("form")? {
            "decoded" => {
                let from = process_cpu_ns();
                let outcomes = simulate(&trace, &[job], 1)?;
                measures(&outcomes, (process_cpu_ns() - from) as f64 / 1e9)
            }
            "zst" => {
                let scratch = Scratch::open("simulator")?;
                let path = scratch.path("trace.oracleGeneral.zst");
                trace::write(&trace, &path)?;
                drop(trace);
                let from = process_cpu_ns();
                let trace = Loaded::read(&path, &ReadOptions::default(), |_| {})?;
                let outcomes = simulate(&trace, &[job], 1)?;
                measures(&outcomes, (process_cpu_ns() - from) as f64 / 1e9)
            }
            "sweep" => {
                let jobs = sizes(job.size).map(|size| Job {
                    size,
                    ..job.clone()
                });
                let threads = params.count("threads")?;
                let from = Instant::now();
                let outcomes = simulate(&trace, &jobs, threads)?;
                measures(&outcomes, from.elapsed().as_secs_f64())
            }
            other => {
                bail!("form '{other}' is unknown; the forms are decoded, zst and sweep")
            }
        }
    }
}

fn simulate(trace: &Loaded, jobs: &[Job], threads: usize) -> anyhow::Result<Vec<Outcome>> {
    Ok(sweep(trace, jobs, threads, &Watch::default())?)
}

/// The speed over all caches, and the hits of the last one.
fn measures(outcomes: &[Outcome], seconds: f64) -> anyhow::Result<Measures> {
    let uses: u64 = outcomes.iter().map(|o| o.tally.hits + o.tally.misses).sum();
    let last = outcomes.last().context("nothing was simulated")?;
    Ok(Measures::new()
        .with(SPEED, uses as f64 / 1e6 / seconds.max(1e-9))
        .with(HITS, 100.0 * last.tally.hit_ratio()))
}

/// Sixteen sizes, the largest one the given.
fn sizes(largest: usize) -> [usize; 16] {
    core::array::from_fn(|n| (largest * (n + 1) / 16).max(1))
}
