//! Many cells over one trace.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use larder_policy::PolicyError;

use super::super::load::{Chunk, Counts, Loaded, Loader};
use super::super::{SimError, Trace};
use super::cell::{Cell, Tally};
use super::rules::{OPT, OPT_HEAP, knows_the_future, make};
use super::{NextUse, Opt, OptHeap};

/// A rule and a size.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Job {
    /// The rule's name.
    pub policy: String,
    /// Blocks.
    pub size: usize,
}

/// Its result.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The job.
    pub job: Job,
    /// The counts.
    pub tally: Tally,
    /// Time that the cell's loops took, in place of processor time.
    pub took: Duration,
    /// Bytes of state at the end.
    pub bytes: usize,
    /// The rule's explanation of its decisions.
    pub explain: Vec<(&'static str, f64)>,
}

/// Receives the progress, and may ask to stop.
#[derive(Debug, Default)]
pub struct Watch {
    /// Records times cells that were done.
    pub done: AtomicU64,
}

fn fault(job: &Job) -> impl Fn(PolicyError) -> SimError {
    |why| SimError::Rule {
        policy: job.policy.clone(),
        size: job.size,
        why,
    }
}

fn outcome(job: &Job, cell: &dyn Cell, took: Duration) -> Outcome {
    Outcome {
        job: job.clone(),
        tally: cell.tally(),
        took,
        bytes: cell.bytes(),
        explain: cell.explain(),
    }
}

/// Runs all jobs over a trace in memory, on this many threads. The outcomes come in the order of the jobs, and do not depend on
/// the number of threads.
///
/// # Errors
/// [`SimError`]: the first that was met.
pub fn sweep(
    trace: &Loaded,
    jobs: &[Job],
    threads: usize,
    watch: &Watch,
) -> Result<Vec<Outcome>, SimError> {
    let next_use: OnceLock<Result<Arc<NextUse>, PolicyError>> = OnceLock::new();
    let one = |job: &Job| -> Result<Outcome, SimError> {
        let mut cell: Box<dyn Cell> = match job.policy.as_str() {
            OPT => {
                let next = next_use
                    .get_or_init(|| NextUse::of(trace).map(Arc::new))
                    .clone();
                let cell = next
                    .and_then(|next| Opt::new(job.size, next))
                    .map_err(fault(job))?;
                Box::new(cell)
            }
            OPT_HEAP => Box::new(OptHeap::new(job.size, trace).map_err(fault(job))?),
            name => make(name, job.size).map_err(fault(job))?,
        };
        let start = Instant::now();
        for chunk in &trace.chunks {
            cell.run(chunk).map_err(fault(job))?;
            watch
                .done
                .fetch_add(chunk.blocks.len() as u64, Ordering::Relaxed);
        }
        Ok(outcome(job, cell.as_ref(), start.elapsed()))
    };
    let turn = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; jobs.len()]);
    let failure: Mutex<Option<SimError>> = Mutex::new(None);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let n = turn.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(n) else { return };
            match one(job) {
                Ok(outcome) => lock(&results)[n] = Some(outcome),
                Err(why) => {
                    stop.store(true, Ordering::Relaxed);
                    lock(&failure).get_or_insert(why);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.clamp(1, jobs.len().max(1)) {
            thread::Builder::new()
                .spawn_scoped(scope, work)
                .map_err(SimError::Thread)?;
        }
        work();
        Ok::<(), SimError>(())
    })?;
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(why) => Err(why),
        None => {
            let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
            Ok(results.into_iter().flatten().collect())
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs all jobs while the trace is read, without keeping it: a few chunks are in memory at a time, and the cells' state.
/// Sizes must be known, and OPT is not possible. `seen` gets each chunk, with the trace as far as it was read.
///
/// # Errors
/// [`SimError`].
pub fn stream(
    mut trace: Trace,
    jobs: &[Job],
    threads: usize,
    mut seen: impl FnMut(&Trace, &Chunk),
) -> Result<(Vec<Outcome>, Counts), SimError> {
    if let Some(job) = jobs.iter().find(|j| knows_the_future(&j.policy)) {
        return Err(SimError::Future {
            policy: job.policy.clone(),
        });
    }
    let threads = threads.clamp(1, jobs.len().max(1));
    let name = trace.name().to_owned();
    thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut workers = Vec::new();
        for n in 0..threads {
            let (sender, receiver) = sync_channel::<Arc<Chunk>>(2);
            senders.push(sender);
            let mine: Vec<(usize, &Job)> =
                jobs.iter().enumerate().skip(n).step_by(threads).collect();
            let work = move || -> Result<Vec<(usize, Outcome)>, SimError> {
                let mut cells = Vec::new();
                for (n, job) in mine {
                    cells.push((
                        n,
                        job,
                        make(&job.policy, job.size).map_err(fault(job))?,
                        Duration::ZERO,
                    ));
                }
                for chunk in receiver {
                    for (_, job, cell, took) in &mut cells {
                        let start = Instant::now();
                        cell.run(&chunk).map_err(fault(job))?;
                        *took += start.elapsed();
                    }
                }
                Ok(cells
                    .iter()
                    .map(|(n, job, cell, took)| (*n, outcome(job, cell.as_ref(), *took)))
                    .collect())
            };
            workers.push(
                thread::Builder::new()
                    .spawn_scoped(scope, work)
                    .map_err(SimError::Thread)?,
            );
        }
        let mut loader = Loader::of(&trace);
        let mut records = Vec::new();
        // A worker that fails closes its channel; the others go on to the end, and then its error is returned.
        let mut send = |trace: &Trace, chunk: Chunk, senders: &mut Vec<_>| {
            let chunk = Arc::new(chunk);
            senders.retain(|s: &std::sync::mpsc::SyncSender<Arc<Chunk>>| {
                s.send(chunk.clone()).is_ok()
            });
            seen(trace, &chunk);
        };
        loop {
            records.clear();
            let more = trace.fill(&mut records)?;
            loader.add(&name, &records, |chunk| {
                send(&trace, chunk, &mut senders);
                Ok(())
            })?;
            if !more || senders.is_empty() {
                break;
            }
        }
        let (last, counts) = loader.finish();
        if let Some(chunk) = last {
            send(&trace, chunk, &mut senders);
        }
        drop(senders);
        let mut all = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(outcomes) => all.extend(outcomes?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all.sort_by_key(|(n, _)| *n);
        Ok((
            all.into_iter().map(|(_, outcome)| outcome).collect(),
            counts,
        ))
    })
}
