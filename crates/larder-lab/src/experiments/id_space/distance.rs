//! How many allocations lie between a free and the next time that the same identifier is handed out, and what each rule
//! guarantees.

use std::cell::RefCell;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use larder::ids::rule::{self, Clock, NearFull, Rested};
use larder::ids::{Allocate, IdError, IdRange, IdSpace, Ids, Rule, Shape};

use super::plan::{CALLS, CYCLIC, EPOCHS, FIRST_FREED, LAST_FREED, LOWEST, RESTED, TIMED};
use crate::contestants::ids::{IdSource, Live, Rng, Stack, Start};
use crate::contestants::mapping::pin::{allowed_cpus, stay_on};
use crate::model::{Measures, Params};

/// Allocations that [`RESTED`] asks for.
const REST: u64 = 48;
/// Calls, which are ticks of its clock, that [`CALLS`] asks for.
const REST_CALLS: u64 = 100;
/// What [`TIMED`] asks for.
const REST_TIME: Duration = Duration::from_micros(100);

/// Allocations on a CPU before the thread goes on to the next. No divisor of what lies ready or of a batch.
const STAY: usize = 97;
/// After so long a rest is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a rule states while `free` are free before a batch, whatever was freed before: 0 is nothing.
pub(super) fn stated(rule: &str, free: u64, batch: i64) -> u64 {
    match rule {
        FIRST_FREED => free,
        // Of frees and allocations that alternate. The rounding of the sets takes one.
        EPOCHS if batch == 1 => (free / 2).saturating_sub(1),
        RESTED => REST,
        _ => 0,
    }
}

/// What is stated of a shared space: the documentation of [`Shape`], as numbers.
fn of_shape(shape: Shape, alone: impl Fn(u64) -> u64, free: u64, cpus: u64) -> u64 {
    let ready = (64 * cpus).min(free / 4);
    match shape {
        Shape::Exact => alone(free),
        Shape::Near => 0,
        Shape::InOrder if free < 4 * cpus => alone(free),
        Shape::InOrder => alone(free.saturating_sub(128 * cpus)).saturating_sub(ready),
        Shape::InPlace => alone(free).saturating_sub(ready),
    }
}

/// The distances of a source of one owner, in allocations: see [`observe`].
///
/// # Errors
/// Missing factors, and a source that hands out a taken identifier or says 'full' too early.
pub(super) fn run<S: IdSource>(params: &Params) -> anyhow::Result<Measures> {
    let (start, rng) = begin(params)?;
    let shadow = Live::new::<S>(&start);
    let source = RefCell::new(S::start(&start)?);
    observe(
        params,
        (&start, rng),
        shadow,
        |id| source.borrow_mut().free(id),
        || source.borrow_mut().alloc(),
        |made| made,
    )
}

/// How a space by a rule is made, and how far it keeps the rule.
pub(super) trait Kind {
    fn make<R: Rule<Order: Send>>(
        range: IdRange,
        rule: R,
    ) -> Result<impl Allocate<Id = u64>, IdError>;
    fn shape<R: Rule<Order: Send>>() -> Shape;
}

/// [`Ids`], of one owner.
pub(super) struct Owned;

impl Kind for Owned {
    fn make<R: Rule<Order: Send>>(
        range: IdRange,
        rule: R,
    ) -> Result<impl Allocate<Id = u64>, IdError> {
        Ids::new(range, rule).map(RefCell::new)
    }

    fn shape<R: Rule<Order: Send>>() -> Shape {
        Shape::Exact
    }
}

/// [`IdSpace`], which threads may share.
pub(super) struct Shared;

impl Kind for Shared {
    fn make<R: Rule<Order: Send>>(
        range: IdRange,
        rule: R,
    ) -> Result<impl Allocate<Id = u64>, IdError> {
        IdSpace::new(range, rule)
    }

    fn shape<R: Rule<Order: Send>>() -> Shape {
        R::SHAPE
    }
}

/// The distances of a space by the rule of the cell.
///
/// # Errors
/// A rule that is none of these, and those of [`run_ruled`].
pub(super) fn ruled<K: Kind>(params: &Params) -> anyhow::Result<Measures> {
    match params.text("rule")? {
        LOWEST => by_allocations::<K, _>(params, rule::Lowest),
        CYCLIC => by_allocations::<K, _>(params, rule::Cyclic),
        FIRST_FREED => by_allocations::<K, _>(params, rule::Fifo),
        LAST_FREED => by_allocations::<K, _>(params, rule::Lifo),
        EPOCHS => by_allocations::<K, _>(params, rule::Epochs::<2>),
        "random" => by_allocations::<K, _>(params, rule::Random::new([7; 32])),
        "any" => by_allocations::<K, _>(params, rule::Any),
        RESTED => {
            let rule = Rested::allocations(rule::Lowest, REST, NearFull::Fail);
            by_allocations::<K, _>(params, rule)
        }
        CALLS => {
            let clock = Calls::default();
            let rule = Rested::by_clock(rule::Lowest, REST_CALLS, NearFull::Fail, clock.clone());
            let ids = K::make(range(params)?, rule)?;
            run_ruled(params, &ids, |_, _| REST_CALLS, |made| clock.now(made))
        }
        TIMED => {
            let rule = Rested::time(rule::Lowest, REST_TIME, NearFull::Fail);
            let (ids, start) = (K::make(range(params)?, rule)?, Instant::now());
            let nanos = |_| start.elapsed().as_nanos() as u64;
            run_ruled(params, &ids, |_, _| REST_TIME.as_nanos() as u64, nanos)
        }
        other => Err(no_rule(other)),
    }
}

pub(super) fn no_rule(rule: &str) -> anyhow::Error {
    anyhow!("rule '{rule}' is not one of this contestant's")
}

fn range(params: &Params) -> anyhow::Result<IdRange> {
    let last = (params.count("count")? as u64).saturating_sub(1);
    Ok(IdRange::new(0, last)?)
}

fn by_allocations<K: Kind, R: Rule<Order: Send>>(
    params: &Params,
    rule: R,
) -> anyhow::Result<Measures> {
    let (name, batch) = (params.text("rule")?, params.int("batch")?);
    let alone = |free| stated(name, free, batch);
    let least = |free, cpus| of_shape(K::shape::<R>(), alone, free, cpus);
    run_ruled(params, &K::make(range(params)?, rule)?, least, |made| made)
}

/// A clock that goes on by a tick whenever it is read: a rest by it is the same on every machine.
#[derive(Debug, Clone, Default)]
struct Calls(Arc<AtomicU64>);

impl Clock for Calls {
    fn now(&self, _: u64) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// The distances of a space by a rule, of one owner or shared, with what the rule states beside. `tick` is what the rule
/// counts: it is given the number of allocations.
///
/// A shared space is used by one thread that goes on to the next CPU after every 97 allocations and keeps to no order of
/// frees and CPUs, so that identifiers come to lie ready everywhere: what is counted is the same in every run but for the
/// moments at which the kernel moves the thread.
///
/// # Errors
/// As [`run`], and what the space cannot hold.
fn run_ruled<A: Allocate<Id = u64>>(
    params: &Params,
    ids: &A,
    least: impl Fn(u64, u64) -> u64,
    tick: impl Fn(u64) -> u64,
) -> anyhow::Result<Measures> {
    let (start, rng) = begin(params)?;
    for id in start.taken_ids() {
        ids.alloc_at(u64::from(id))?;
    }
    let shadow = Live::new::<Stack>(&start);
    let shared = ids.is_shared();
    let cpus = if shared { allowed_cpus() } else { Vec::new() };
    // The kernel may not tell.
    let least = least(start.count() - start.taken(), cpus.len().max(1) as u64);
    let mut n = 0;
    let alloc = || {
        n += 1;
        // What lies ready is made for all CPUs, so the thread stays where it is until then.
        if n > 2 * STAY && n % STAY == 0 && cpus.len() > 1 {
            stay_on(cpus[n / STAY % cpus.len()]);
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
    let free = |id| ids.free(id).is_ok();
    let measures = observe(params, (&start, rng), shadow, free, alloc, tick)?;
    Ok(measures.with("distance_stated", least as f64))
}

/// The identifiers that are taken when a cell begins, and the sequence that goes on from there.
fn begin(params: &Params) -> anyhow::Result<(Start, Rng)> {
    let (count, live) = (params.count("count")? as u64, params.count("live")? as u64);
    let mut rng = Rng::new(count ^ live);
    Ok((Start::random(count, live, &mut rng)?, rng))
}

/// Frees `batch` random identifiers and allocates as many, again and again, and notes how long each had rested.
///
/// Identifiers that are freed before as many allocations as there were free ones at the start are not looked at: the
/// start is a burst of frees, or of allocations, and what is promised for their alternation begins behind it.
fn observe(
    params: &Params,
    (start, mut rng): (&Start, Rng),
    mut shadow: Live,
    mut free: impl FnMut(u64) -> bool,
    mut alloc: impl FnMut() -> Option<u64>,
    tick: impl Fn(u64) -> u64,
) -> anyhow::Result<Measures> {
    let (batch, allocs) = (params.count("batch")?, params.count("allocs")? as u64);
    ensure!(
        batch > 0 && allocs > 0,
        "batches of {batch} and {allocs} allocations were asked for; both must be at least 1"
    );
    // When the identifier was freed; those that were free at the start count for nothing.
    let mut freed_at: Vec<Option<u64>> = vec![None; usize::try_from(start.count())?];
    let mut seen = Vec::new();
    let mut ids = vec![0; batch];
    let mut made = 0;
    let warm = (start.count() - start.taken()).min(allocs / 2);
    while made < allocs {
        shadow.draw(&mut rng, &mut ids)?;
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
    use crate::contestants::ids::{OrderedSet, Ring};

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

    fn of_rule(run: fn(&Params) -> anyhow::Result<Measures>, rule: &str, live: i64) -> (f64, f64) {
        let params = Params::new()
            .with_text("rule", rule)
            .with("count", 4096)
            .with("live", live)
            .with("batch", 1)
            .with("allocs", 16_384);
        let measures = run(&params).expect("runs");
        let of = |name| measures.get(name).expect("measured");
        (of("distance_min"), of("distance_stated"))
    }

    #[test]
    fn every_rule_keeps_what_it_states() {
        for rule in [FIRST_FREED, RESTED, CALLS, TIMED, LOWEST, CYCLIC] {
            for live in [1000, 3500] {
                let (least, promised) = of_rule(ruled::<Shared>, rule, live);
                assert!(least >= promised, "{rule}, {live}: {least} of {promised}");
            }
        }
        for rule in [RESTED, CALLS, TIMED] {
            let (least, promised) = of_rule(ruled::<Owned>, rule, 3500);
            assert!(least >= promised && promised > 0.0, "{rule}: {least}");
        }
        assert!(of_rule(ruled::<Shared>, FIRST_FREED, 1000).1 > 1000.0);
    }

    #[test]
    fn what_lies_ready_is_taken_off() {
        let fifo = |free| stated(FIRST_FREED, free, 1);
        assert_eq!(of_shape(Shape::Exact, fifo, 700, 2), 700);
        assert_eq!(of_shape(Shape::Near, fifo, 700, 2), 0);
        assert_eq!(
            of_shape(Shape::InOrder, fifo, 10_000, 2),
            10_000 - 256 - 128
        );
        assert_eq!(of_shape(Shape::InOrder, fifo, 7, 2), 7);
        assert_eq!(of_shape(Shape::InOrder, fifo, 8, 2), 0);
        assert_eq!(stated(EPOCHS, 701, 1), 349);
        assert_eq!(stated(EPOCHS, 701, 256), 0);
    }

    #[test]
    fn an_unknown_rule_is_an_error() {
        let params = Params::new().with("count", 64).with_text("rule", "oldest");
        assert!(ruled::<Owned>(&params).is_err() && ruled::<Shared>(&params).is_err());
    }
}
