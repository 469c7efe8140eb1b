//! Workloads, and how one is run, timed and checked.

use std::time::Instant;

use anyhow::{anyhow, ensure};

use super::INTERPRETERS;
use super::memory::Memory;
use super::stamp::Lost;
use crate::contestants::heaps::Heaps;
use crate::contestants::timing::process_cpu_ns;
use crate::model::{Measures, Params};

/// A workload, as the plan needs to know it.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its name in the field.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Whether it is for one thread only.
    pub alone: bool,
    /// Operations of the quick form: some 10 ms.
    pub ops: u64,
}

/// How much a workload is asked to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    /// Threads that work at a time.
    pub(super) threads: usize,
    /// Operations of all threads together, about: an operation is a block there and back.
    pub(super) ops: u64,
}

impl Job {
    /// Operations of one thread.
    pub(super) fn share(&self) -> u64 {
        (self.ops / self.threads as u64).max(1)
    }
}

/// Runs `work(thread)` in as many threads; what each returned.
pub(in crate::experiments) fn in_threads<T: Send>(
    threads: usize,
    work: impl Fn(usize) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let work = &work;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        // All are joined before the first error is returned.
        let ends: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        let end = |end: std::thread::Result<_>| {
            end.map_err(|_| anyhow!("a thread of the workload panicked"))?
        };
        ends.into_iter().map(end).collect()
    })
}

/// The same, each thread with a heap of its own; the sum of what each returned.
pub(super) fn with_heaps<'h, H: Heaps>(
    heaps: &'h H,
    threads: usize,
    work: impl Fn(&mut H::Local<'h>, usize) -> Result<u64, Lost> + Sync,
) -> anyhow::Result<u64> {
    let ops = in_threads(threads, |thread| Ok(work(&mut heaps.local()?, thread)?))?;
    Ok(ops.iter().sum())
}

/// Runs a workload once, by `work`, which returns the number of operations that it did, and measures it.
///
/// # Errors
/// Missing factors and whatever the workload found wrong.
pub(super) fn measured<H: Heaps>(
    workload: &About,
    heaps: &H,
    params: &Params,
    work: impl FnOnce(&Job) -> anyhow::Result<u64>,
) -> anyhow::Result<Measures> {
    let name = workload.name;
    let job = Job {
        threads: params.count("threads")?,
        ops: params.count("ops")? as u64,
    };
    ensure!(
        (1..=256).contains(&job.threads) && job.ops > 0,
        "{} operations of {} threads were asked for; both must be at least 1, and threads at most 256",
        job.ops,
        job.threads
    );
    ensure!(
        !workload.alone || job.threads == 1,
        "{name} is for one thread, and {} were asked for",
        job.threads
    );
    ensure!(
        !H::DIES_WHOLE || name == INTERPRETERS,
        "{name} hands blocks from thread to thread or keeps them longer than their heap; heaps that die whole run in interpreters"
    );
    let memory = Memory::watch();
    let cpu = process_cpu_ns();
    let start = Instant::now();
    let ops = work(&job)?;
    let wall = start.elapsed().as_nanos() as f64;
    let cpu = process_cpu_ns() - cpu;
    ensure!(ops > 0, "{name} did nothing");
    let peak = memory.peak();
    let share = heaps.path_taken()?;
    let mut measures = Measures::new()
        .with("ns_per_op", wall / ops as f64)
        .with("cpu_ns_per_op", cpu as f64 / ops as f64)
        .with("held_bytes", memory.held() as f64);
    if let Some(peak) = peak {
        measures = measures.with("peak_bytes", peak as f64);
    }
    if let Some(share) = share {
        measures = measures.with("path_share", share);
    }
    Ok(measures)
}
