//! Many cells over one trace.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::load::{Chunk, Counts, Loaded, Loader};
use super::super::machine::{DiskCounts, Machine, Setup};
use super::super::{Record, SimError, Trace};
use super::cell::{Cell, CellError, Tally};
use super::parts::run_over_parts;
use super::rules::{OPT, knows_the_future, make};
use super::{NextUse, Opt};

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
    // Large caches take longest: begun last, one would keep a thread at work when the others have none.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&n| core::cmp::Reverse(jobs[n].size));
    let turn = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; jobs.len()]);
    let failure: Mutex<Option<SimError>> = Mutex::new(None);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let at = turn.fetch_add(1, Ordering::Relaxed);
            let Some(&n) = order.get(at) else { return };
            match one(&jobs[n]) {
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
        let mut loader = Loader::of(&trace).in_parts(PART);
        let (mut trace, mut more) = (trace, true);
        while more {
            more = trace.step()?;
            let mut wanted = true;
            loader.add(&name, trace.records(), |chunk| {
                seen(&trace, &chunk);
                wanted = send(chunk);
                Ok(())
            })?;
            more &= wanted;
        }
        let (last, counts) = loader.finish();
        if let Some(chunk) = last {
            seen(&trace, &chunk);
            send(chunk);
        }
        Ok(counts)
    })
}

/// Records of a part that is not kept: it stays in a processor's cache while it is made and read, and taking one costs the threads a
/// lock.
const PART: usize = 1 << 16;

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
        let mut part = Vec::new();
        while more {
            let from = part.len();
            more = trace.fill(&mut part)?;
            loader.add(&name, &part[from..], |chunk| {
                seen(&trace, &chunk);
                Ok(())
            })?;
            if part.len() >= PART || !more {
                more &= send(core::mem::take(&mut part));
            }
        }
        let (last, counts) = loader.finish();
        if let Some(chunk) = last {
            seen(&trace, &chunk);
        }
        Ok(counts)
    })
}

/// Runs jobs on threads over what `feed` sends to all of them.
fn shared<T: Send + Sync, C: Send, F>(
    jobs: &[Job],
    threads: usize,
    make: impl Fn(&Job) -> Result<C, SimError>,
    run: impl Fn(&Job, &mut C, &T) -> Result<(), SimError> + Sync,
    end: impl Fn(&Job, C, Duration) -> Outcome,
    feed: impl FnOnce(&mut dyn FnMut(T) -> bool) -> Result<F, SimError>,
) -> Result<(Vec<Outcome>, F), SimError> {
    if let Some(job) = jobs.iter().find(|j| knows_the_future(&j.policy)) {
        return Err(SimError::Future {
            policy: job.policy.clone(),
        });
    }
    let cells: Result<Vec<(C, Duration)>, SimError> = jobs
        .iter()
        .map(|job| Ok((make(job)?, Duration::ZERO)))
        .collect();
    let timed = |n: usize, (cell, took): &mut (C, Duration), part: &T| {
        let start = Instant::now();
        run(&jobs[n], cell, part)?;
        *took += start.elapsed();
        Ok(())
    };
    let (cells, fed) = run_over_parts(cells?, threads, timed, feed)?;
    let outcomes = jobs.iter().zip(cells);
    let outcomes = outcomes.map(|(job, (cell, took))| end(job, cell, took));
    Ok((outcomes.collect(), fed))
}
