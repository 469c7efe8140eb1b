//! How many allocations lie between a free and the next time that the same identifier is handed out.

use std::cell::{Cell, RefCell};
use std::hint;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use larder::ids::{Allocate, IdError};

use crate::contestants::ids::{IdSource, Live, Rng, Stack, Start};
use crate::contestants::mapping::pin::{allowed_cpus, stay_on};
use crate::model::{Measures, Params};

/// What one cell asks for.
struct Job {
    live: u64,
    batch: usize,
    allocs: u64,
    start: Start,
    rng: Rng,
}

impl Job {
    fn of(params: &Params) -> anyhow::Result<Self> {
        let (count, live) = (params.count("count")? as u64, params.count("live")? as u64);
        let (batch, allocs) = (params.count("batch")?, params.count("allocs")? as u64);
        ensure!(
            batch > 0 && allocs > 0,
            "batches of {batch} and {allocs} allocations were asked for; both must be at least 1"
        );
        let mut rng = Rng::new(count ^ live);
        let start = Start::random(count, live, &mut rng)?;
        Ok(Self {
            live,
            batch,
            allocs,
            start,
            rng,
        })
    }
}

/// The distances of a source of one owner, in allocations: see [`observe`].
///
/// # Errors
/// Missing factors, and a source that hands out what somebody has or says 'full' too early.
pub(super) fn run<S: IdSource>(params: &Params) -> anyhow::Result<Measures> {
    let job = Job::of(params)?;
    let shadow = Live::new::<S>(&job.start);
    let source = RefCell::new(S::start(&job.start)?);
    observe(
        job,
        shadow,
        |id| source.borrow_mut().free(id),
        || source.borrow_mut().alloc(),
        |made| made,
    )
}

/// The same of a space by a rule, of one owner or shared, with what the rule states beside. `tick` is what the rule counts:
/// it is given the number of allocations.
///
/// A shared space is used by one thread that goes on to the next CPU after every 97 allocations and keeps to no order of
/// frees and CPUs, so that identifiers come to lie ready everywhere: what is counted is the same in every run but for the
/// moments at which the kernel moves the thread.
///
/// # Errors
/// As [`run`], and what the space cannot hold.
pub(super) fn run_ruled<A: Allocate>(
    params: &Params,
    ids: &A,
    stated: impl Fn(u64, u64) -> u64,
    tick: impl Fn(u64) -> u64,
) -> anyhow::Result<Measures> {
    let job = Job::of(params)?;
    for id in job.start.taken_ids() {
        ids.alloc_at(u64::from(id))?;
    }
    let shadow = Live::new::<Stack>(&job.start);
    let cpus = if ids.is_shared() {
        allowed_cpus()
    } else {
        Vec::new()
    };
    // The kernel may not tell.
    let least = stated(job.start.count() - job.live, cpus.len().max(1) as u64);
    let allocs = Cell::new(0);
    let alloc = || {
        let n = allocs.get() + 1;
        allocs.set(n);
        // What lies ready is made for all CPUs, so the thread stays where it is until then.
        if n > 2 * STAY && n.is_multiple_of(STAY) && cpus.len() > 1 {
            stay_on(cpus[(n / STAY) as usize % cpus.len()]);
        }
        let start = Instant::now();
        loop {
            match ids.alloc() {
                Ok(id) => return Some(id),
                Err(IdError::Resting { .. }) if start.elapsed() < PATIENCE => hint::spin_loop(),
                Err(_) => return None,
            }
        }
    };
    let measures = observe(job, shadow, |id| ids.free(id).is_ok(), alloc, tick)?;
    Ok(measures.with("distance_stated", least as f64))
}

/// Allocations on a CPU before the thread goes on to the next. No divisor of what lies ready or of a batch.
const STAY: u64 = 97;

/// After so long a rest is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(20);

/// Frees `batch` random identifiers and allocates as many, again and again, and notes how long each had rested.
///
/// Identifiers that are freed before as many allocations as there were free ones at the start are not looked at: the
/// start is a burst of frees, or of allocations, and what is promised for their alternation begins behind it.
fn observe(
    mut job: Job,
    mut shadow: Live,
    mut free: impl FnMut(u64) -> bool,
    mut alloc: impl FnMut() -> Option<u64>,
    tick: impl Fn(u64) -> u64,
) -> anyhow::Result<Measures> {
    let (count, allocs) = (job.start.count(), job.allocs);
    // When the identifier was freed; those that were free at the start count for nothing.
    let mut freed_at: Vec<Option<u64>> = vec![None; usize::try_from(count)?];
    let mut seen = Vec::new();
    let mut ids = vec![0; job.batch];
    let mut made = 0;
    let warm = (count - job.live).min(allocs / 2);
    while made < allocs {
        shadow.draw(&mut job.rng, &mut ids)?;
        for &id in &ids {
            // Before the free, so that no rest looks shorter than it was.
            let now = tick(made);
            ensure!(free(id), "it refused {id}, which was taken");
            *slot(&mut freed_at, id)? = (made >= warm).then_some(now);
        }
        for out in &mut ids {
            let Some(id) = alloc() else {
                bail!("it said 'full' although identifiers were free");
            };
            *out = id;
            if let Some(at) = slot(&mut freed_at, id)?.take() {
                seen.push(tick(made) - at);
            }
            made += 1;
        }
        shadow.give(&ids)?;
    }
    ensure!(
        !seen.is_empty(),
        "no identifier came back in {allocs} allocations; give more in 'allocs'"
    );
    seen.sort_unstable();
    let at = |part: usize| seen[(seen.len() - 1) * part / 100] as f64;
    Ok(Measures::new()
        .with("distance_min", at(0))
        .with("distance_p1", at(1))
        .with("distance_median", at(50))
        .with("distance_max", at(100)))
}

fn slot(of: &mut [Option<u64>], id: u64) -> anyhow::Result<&mut Option<u64>> {
    let place = id & u64::from(u32::MAX);
    of.get_mut(place as usize)
        .with_context(|| format!("identifier {place} is beyond the range"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::ids::{OrderedSet, Ring, Stack};

    fn of<S: IdSource>(live: i64, batch: i64) -> Measures {
        let params = Params::new()
            .with("count", 1000)
            .with("live", live)
            .with("batch", batch)
            .with("allocs", 10_000);
        run::<S>(&params).expect("runs")
    }

    #[test]
    fn a_ring_rests_for_all_that_were_free_and_a_stack_not_at_all() {
        let ring = of::<Ring>(300, 1);
        assert_eq!(ring.get("distance_min"), Some(700.0));
        assert_eq!(ring.get("distance_max"), Some(700.0));
        let stack = of::<Stack>(300, 1);
        assert_eq!(stack.get("distance_max"), Some(0.0));
        // The last of a batch comes first.
        assert_eq!(of::<Stack>(300, 10).get("distance_max"), Some(9.0));
        let cyclic = of::<OrderedSet<true>>(300, 1);
        assert!(cyclic.get("distance_median").expect("seen") > 100.0);
    }

    #[test]
    fn nothing_to_see_is_an_error() {
        let params = Params::new()
            .with("count", 1000)
            .with("live", 10)
            .with("batch", 1)
            .with("allocs", 10);
        assert!(run::<Ring>(&params).is_err());
        assert!(run::<Ring>(&params.with("batch", 0)).is_err());
    }
}
