//! Many cells over one trace.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::load::{Chunk, Counts, Loaded, Loader};
use super::super::machine::{DiskCounts, Machine, Setup};
use super::super::{Record, SimError, Trace};
use super::cell::{Cell, CellError, Tally};
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
    /// What the disk did, where one was modelled.
    pub disk: Option<DiskCounts>,
}

/// Receives the progress, and may ask to stop.
#[derive(Debug, Default)]
pub struct Watch {
    /// Records times cells that were done.
    pub done: AtomicU64,
}

fn fault<E: Into<CellError>>(job: &Job) -> impl Fn(E) -> SimError {
    |why| match why.into() {
        CellError::Trace(why) => *why,
        CellError::Rule(why) => SimError::Rule {
            policy: job.policy.clone(),
            size: job.size,
            why,
        },
    }
}

fn outcome(job: &Job, cell: &dyn Cell, took: Duration) -> Outcome {
    Outcome {
        job: job.clone(),
        tally: cell.tally(),
        took,
        bytes: cell.bytes(),
        explain: cell.explain(),
        disk: None,
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
    // Made once, by the first that wants them; one that waits tries itself if that fails.
    let next_use: Mutex<Option<Arc<NextUse>>> = Mutex::new(None);
    let next = || -> Result<Arc<NextUse>, SimError> {
        let mut made = lock(&next_use);
        if let Some(next) = &*made {
            return Ok(Arc::clone(next));
        }
        let next = Arc::new(NextUse::of(trace)?);
        *made = Some(Arc::clone(&next));
        Ok(next)
    };
    let all = trace.counts.blocks.max(1) as usize;
    let one = |job: &Job| -> Result<Outcome, SimError> {
        let mut cell: Box<dyn Cell> = match job.policy.as_str() {
            OPT => Box::new(Opt::new(job.size, next()?).map_err(fault(job))?),
            OPT_HEAP => Box::new(OptHeap::new(job.size, trace).map_err(fault(job))?),
            // A cache of all blocks has the hits of every larger one.
            name => make(name, job.size.min(all)).map_err(fault(job))?,
        };
        let start = Instant::now();
        for chunk in trace.chunks() {
            let chunk = chunk?;
            cell.run(&chunk).map_err(fault(job))?;
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
    trace: Trace,
    jobs: &[Job],
    threads: usize,
    mut seen: impl FnMut(&Trace, &Chunk),
) -> Result<(Vec<Outcome>, Counts), SimError> {
    let make = |job: &Job| make(&job.policy, job.size).map_err(fault(job));
    let run =
        |job: &Job, cell: &mut Box<dyn Cell>, chunk: &Chunk| cell.run(chunk).map_err(fault(job));
    let end = |job: &Job, cell: Box<dyn Cell>, took| outcome(job, cell.as_ref(), took);
    shared(jobs, threads, make, run, end, |send| {
        let name = trace.name().to_owned();
        let mut loader = Loader::of(&trace);
        let (mut trace, mut more) = (trace, true);
        while more {
            more = trace.step()?;
            let mut wanted = true;
            loader.add(&name, trace.records(), |chunk| {
                let chunk = Arc::new(chunk);
                seen(&trace, &chunk);
                wanted = send(chunk);
                Ok(())
            })?;
            more &= wanted;
        }
        let (last, counts) = loader.finish();
        if let Some(chunk) = last {
            let chunk = Arc::new(chunk);
            seen(&trace, &chunk);
            send(chunk);
        }
        Ok(counts)
    })
}

/// As [`stream`], each cell a modelled machine with dirty blocks and a disk, set up alike but for its blocks.
///
/// # Errors
/// [`SimError`].
pub fn on_disk(
    trace: Trace,
    jobs: &[Job],
    threads: usize,
    setup: Setup,
    mut seen: impl FnMut(&Trace, &Chunk),
) -> Result<(Vec<Outcome>, Counts), SimError> {
    let make = |job: &Job| {
        let blocks = job.size;
        Machine::new(&job.policy, Setup { blocks, ..setup }).map_err(fault(job))
    };
    let run = |job: &Job, machine: &mut Machine, records: &Vec<Record>| {
        let mut steps = records.iter().map(|record| machine.step(record));
        steps
            .find_map(Result::err)
            .map_or(Ok(()), |why| Err(fault(job)(why)))
    };
    let end = |job: &Job, machine: Machine, took| {
        let counted = machine.counted();
        Outcome {
            job: job.clone(),
            tally: counted.tally,
            took,
            bytes: machine.bytes(),
            explain: machine.explain(),
            disk: Some(counted.disk),
        }
    };
    shared(jobs, threads, make, run, end, |send| {
        let name = trace.name().to_owned();
        let mut loader = Loader::of(&trace);
        let (mut trace, mut more) = (trace, true);
        while more {
            let mut records = Vec::new();
            more = trace.fill(&mut records)?;
            loader.add(&name, &records, |chunk| {
                seen(&trace, &chunk);
                Ok(())
            })?;
            more &= send(Arc::new(records));
        }
        let (last, counts) = loader.finish();
        if let Some(chunk) = last {
            seen(&trace, &chunk);
        }
        Ok(counts)
    })
}

/// Parts of a trace that wait for a thread. Two let it go on while the next one is read.
const WAITING: usize = 2;

/// Runs jobs on threads over what `feed` sends to all of them. It sends until nothing more is wanted: then a job has failed, and
/// its error is returned.
fn shared<T: Send + Sync, C, F>(
    jobs: &[Job],
    threads: usize,
    make: impl Fn(&Job) -> Result<C, SimError> + Sync,
    run: impl Fn(&Job, &mut C, &T) -> Result<(), SimError> + Sync,
    end: impl Fn(&Job, C, Duration) -> Outcome + Sync,
    feed: impl FnOnce(&mut dyn FnMut(Arc<T>) -> bool) -> Result<F, SimError>,
) -> Result<(Vec<Outcome>, F), SimError> {
    if let Some(job) = jobs.iter().find(|j| knows_the_future(&j.policy)) {
        return Err(SimError::Future {
            policy: job.policy.clone(),
        });
    }
    let threads = threads.clamp(1, jobs.len().max(1));
    let (make, run, end) = (&make, &run, &end);
    thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut workers = Vec::new();
        for n in 0..threads {
            let (sender, receiver) = sync_channel::<Arc<T>>(WAITING);
            senders.push(sender);
            let mine: Vec<(usize, &Job)> =
                jobs.iter().enumerate().skip(n).step_by(threads).collect();
            let work = move || -> Result<Vec<(usize, Outcome)>, SimError> {
                let mut cells = Vec::new();
                for (n, job) in mine {
                    cells.push((n, job, make(job)?, Duration::ZERO));
                }
                for part in receiver {
                    for (_, job, cell, took) in &mut cells {
                        let start = Instant::now();
                        run(job, cell, &part)?;
                        *took += start.elapsed();
                    }
                }
                let ended = cells.into_iter();
                Ok(ended
                    .map(|(n, job, cell, took)| (n, end(job, cell, took)))
                    .collect())
            };
            workers.push(
                thread::Builder::new()
                    .spawn_scoped(scope, work)
                    .map_err(SimError::Thread)?,
            );
        }
        // A worker that fails closes its channel.
        let fed = feed(&mut |part| {
            let sent = senders.iter().map(|sender| sender.send(Arc::clone(&part)));
            sent.fold(true, |all, sent| all & sent.is_ok())
        });
        drop(senders);
        let mut all = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(outcomes) => all.extend(outcomes?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all.sort_by_key(|(n, _)| *n);
        let outcomes = all.into_iter().map(|(_, outcome)| outcome).collect();
        Ok((outcomes, fed?))
    })
}
