//! What a workload is, and how one is run, timed and looked at.

use std::time::Instant;

use anyhow::{anyhow, ensure};

use super::memory::Memory;
use super::stamp::Lost;
use crate::contestants::heaps::Heaps;
use crate::contestants::timing::process_cpu_ns;
use crate::model::{Measures, Params};

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

/// A pattern of allocation. Statically dispatched over the allocator, so that the call is what is timed.
pub(crate) trait Workload {
    /// Its name in the field.
    const NAME: &'static str;

    /// What it does, in one sentence.
    const ABOUT: &'static str;

    /// Whether it is for one thread only.
    const ALONE: bool = false;

    /// Operations of the quick form: some 10 ms.
    const OPS: u64;

    /// Does it; returns the number of operations that were done.
    ///
    /// # Errors
    /// No memory, and a block whose owner's number is gone: such a run is not scored.
    fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64>;
}

/// Runs `work(thread)` in as many threads, each of which returns its operations.
pub(super) fn in_threads(
    threads: usize,
    work: impl Fn(usize) -> anyhow::Result<u64> + Sync,
) -> anyhow::Result<u64> {
    let work = &work;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let mut ops = 0;
        // All are joined before the first error is told.
        let ends: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        for end in ends {
            ops += end.map_err(|_| anyhow!("a thread of the workload panicked"))??;
        }
        Ok(ops)
    })
}

/// The same, each thread with a heap of its own.
pub(super) fn with_heaps<'h, H: Heaps>(
    heaps: &'h H,
    threads: usize,
    work: impl Fn(&mut H::Local<'h>, usize) -> Result<u64, Lost> + Sync,
) -> anyhow::Result<u64> {
    in_threads(threads, |thread| Ok(work(&mut heaps.local()?, thread)?))
}

/// Runs a workload once and measures it.
///
/// # Errors
/// Missing factors and whatever the workload found wrong.
pub(super) fn measured<W: Workload, H: Heaps>(
    heaps: &H,
    params: &Params,
) -> anyhow::Result<Measures> {
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
        !W::ALONE || job.threads == 1,
        "{} is for one thread, and {} were asked for",
        W::NAME,
        job.threads
    );
    ensure!(
        !H::DIES_WHOLE || W::NAME == "interpreters",
        "{} hands blocks from thread to thread or keeps them longer than their heap; heaps that die whole run in interpreters",
        W::NAME
    );
    let memory = Memory::watch();
    let cpu = process_cpu_ns();
    let start = Instant::now();
    let ops = W::run(heaps, &job)?;
    let wall = start.elapsed().as_nanos() as f64;
    let cpu = process_cpu_ns() - cpu;
    ensure!(ops > 0, "{} did nothing", W::NAME);
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
