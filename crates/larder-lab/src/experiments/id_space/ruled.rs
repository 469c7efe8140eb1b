//! The library's rules as a cell names them, of one owner or shared, and what each states of the rest of an identifier.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use larder::ids::rule::{self, Clock, NearFull, Rested};
use larder::ids::{Allocate, IdError, IdRange, IdSpace, Ids, Shape, SharedRule};

use crate::model::{Measures, Params};

use super::distance::run_ruled;
use super::plan::{CALLS, EPOCHS, FIRST_FREED, LAST_FREED, LOWEST, RESTED, TIMED};

/// Allocations that [`RESTED`] asks for.
pub(super) const REST: u64 = 48;
/// Calls, which are ticks of its clock, that [`CALLS`] asks for.
const REST_CALLS: u64 = 100;
/// What [`TIMED`] asks for.
const REST_TIME: Duration = Duration::from_micros(100);

/// A clock that goes on by a tick whenever it is read: a rest by it is the same on every machine.
#[derive(Debug, Clone, Default)]
struct Calls(Arc<AtomicU64>);

impl Clock for Calls {
    fn now(&self, _: u64) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// What the rule alone states while `free` are free before a batch, whatever was freed before: 0 is nothing.
fn alone(rule: &str, free: u64, batch: i64) -> u64 {
    match rule {
        FIRST_FREED => free,
        // Of frees and allocations that alternate. The rounding of the sets takes one.
        EPOCHS if batch == 1 => (free / 2).saturating_sub(1),
        RESTED => REST,
        _ => 0,
    }
}

/// What is stated of a shared space: the documentation of [`Shape`], as numbers.
fn shared(shape: Shape, alone: impl Fn(u64) -> u64, free: u64, cpus: u64) -> u64 {
    match shape {
        Shape::Exact => alone(free),
        Shape::Near => 0,
        Shape::InOrder if free < 4 * cpus => alone(free),
        Shape::InOrder => {
            let lots = (64 * cpus).min(free / 4);
            alone(free.saturating_sub(128 * cpus)).saturating_sub(lots)
        }
        Shape::InPlace => alone(free).saturating_sub((64 * cpus).min(free / 4)),
    }
}

/// The distances of [`Ids`] under a rule that rests.
///
/// # Errors
/// A rule that is none of these, and those of [`run_ruled`].
pub(super) fn owned(params: &Params) -> anyhow::Result<Measures> {
    match params.text("rule")? {
        RESTED => by_allocations(params, &cell(range(params)?, rested())?, Shape::Exact),
        CALLS => by_calls(params, cell),
        TIMED => timed(params, &cell(range(params)?, in_time())?),
        other => Err(super::contestants::no_rule(other)),
    }
}

/// The distances of [`IdSpace`] under any rule.
///
/// # Errors
/// A rule that is none of these, and those of [`run_ruled`].
pub(super) fn space(params: &Params) -> anyhow::Result<Measures> {
    match params.text("rule")? {
        LOWEST => of(params, rule::Lowest),
        super::plan::CYCLIC => of(params, rule::Cyclic),
        FIRST_FREED => of(params, rule::Fifo),
        LAST_FREED => of(params, rule::Lifo),
        EPOCHS => of(params, rule::Epochs::<2>),
        "random" => of(params, rule::Random::new([7; 32])),
        "any" => of(params, rule::Any),
        RESTED => of(params, rested()),
        CALLS => by_calls(params, IdSpace::new),
        TIMED => timed(params, &IdSpace::new(range(params)?, in_time())?),
        other => Err(super::contestants::no_rule(other)),
    }
}

fn rested() -> Rested<rule::Lowest> {
    Rested::allocations(rule::Lowest, REST, NearFull::Fail)
}

fn in_time() -> Rested<rule::Lowest, rule::Monotonic> {
    Rested::time(rule::Lowest, REST_TIME, NearFull::Fail)
}

fn cell<R: rule::Rule>(range: IdRange, rule: R) -> Result<RefCell<Ids<R>>, IdError> {
    Ids::new(range, rule).map(RefCell::new)
}

fn of<R: SharedRule>(params: &Params, rule: R) -> anyhow::Result<Measures> {
    by_allocations(params, &IdSpace::new(range(params)?, rule)?, R::SHAPE)
}

fn range(params: &Params) -> anyhow::Result<IdRange> {
    let last = (params.count("count")? as u64).saturating_sub(1);
    Ok(IdRange::new(0, last)?)
}

fn by_allocations<A: Allocate>(params: &Params, ids: &A, shape: Shape) -> anyhow::Result<Measures> {
    let (name, batch) = (params.text("rule")?, params.int("batch")?);
    let stated = |free, cpus| shared(shape, |free| alone(name, free, batch), free, cpus);
    run_ruled(params, ids, stated, |made| made)
}

fn by_calls<A: Allocate>(
    params: &Params,
    make: impl FnOnce(IdRange, Rested<rule::Lowest, Calls>) -> Result<A, IdError>,
) -> anyhow::Result<Measures> {
    let clock = Calls::default();
    let rule = Rested::by_clock(rule::Lowest, REST_CALLS, NearFull::Fail, clock.clone());
    run_ruled(
        params,
        &make(range(params)?, rule)?,
        |_, _| REST_CALLS,
        |made| clock.now(made),
    )
}

/// In nanoseconds.
fn timed<A: Allocate>(params: &Params, ids: &A) -> anyhow::Result<Measures> {
    let start = Instant::now();
    let stated = REST_TIME.as_nanos() as u64;
    run_ruled(
        params,
        ids,
        |_, _| stated,
        |_| start.elapsed().as_nanos() as u64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::id_space::plan::CYCLIC;

    fn run(run: fn(&Params) -> anyhow::Result<Measures>, rule: &str, live: i64) -> (f64, f64) {
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
                let (least, stated) = run(space, rule, live);
                assert!(least >= stated, "{rule}, {live}: {least} of {stated}");
            }
        }
        for rule in [RESTED, CALLS, TIMED] {
            let (least, stated) = run(owned, rule, 3500);
            assert!(least >= stated && stated > 0.0, "{rule}: {least}");
        }
        assert!(run(space, FIRST_FREED, 1000).1 > 1000.0);
    }

    #[test]
    fn what_lies_ready_is_taken_off() {
        let fifo = |free| alone(FIRST_FREED, free, 1);
        assert_eq!(shared(Shape::Exact, fifo, 700, 2), 700);
        assert_eq!(shared(Shape::Near, fifo, 700, 2), 0);
        assert_eq!(shared(Shape::InOrder, fifo, 10_000, 2), 10_000 - 256 - 128);
        assert_eq!(shared(Shape::InOrder, fifo, 7, 2), 7);
        assert_eq!(shared(Shape::InOrder, fifo, 8, 2), 0);
        assert_eq!(alone(EPOCHS, 701, 1), 349);
        assert_eq!(alone(EPOCHS, 701, 256), 0);
    }

    #[test]
    fn an_unknown_rule_is_an_error() {
        let params = Params::new().with("count", 64).with_text("rule", "oldest");
        assert!(owned(&params).is_err() && space(&params).is_err());
    }
}
