//! Shared spaces under every rule: one thread that goes from CPU to CPU, so that identifiers come to lie ready where they are
//! not asked for.

use larder::ids::rule::NearFull;
use larder::ids::{IdRange, IdSpace, Rule, rule};
use larder::os::rseq::Mode;
use proptest::prelude::*;

use super::{Model, Promise, REST, ops, promises, rested, rules};
use crate::common::modes;

fn ranges() -> Vec<IdRange> {
    let new = |first, last| IdRange::new(first, last).unwrap();
    vec![
        new(1, 1),
        new(0, 2),
        new(60, 127),
        new(0, 255),
        new(300, 9000),
        new(7, (1 << 20) + 7),
        new(0, (1 << 24) + 70_000),
        new(1, u64::from(u32::MAX)),
        new(u64::MAX - 200, u64::MAX),
        IdRange::ALL,
    ]
}

fn ids<R: Rule<Order: Send>>(range: IdRange, rule: R, mode: Mode) -> IdSpace<R> {
    IdSpace::builder(range, rule).mode(mode).build().unwrap()
}

/// So many calls in a row that magazines are emptied and filled.
const BURST: usize = 19;
const MANY: usize = 240;

fn rests<P: Promise>(promise: P, relax: bool) -> promises::Rested<P> {
    promises::Rested::new(promise, REST, relax)
}

rules! {
    150 times 80 calls:
    lowest: rule::Lowest, promises::Lowest;
    cyclic: rule::Cyclic, promises::Any;
    first_freed: rule::Fifo, promises::Any;
    last_freed: rule::Lifo, promises::Any;
    epochs: rule::Epochs::<2>, promises::Any;
    whichever_is_at_hand: rule::Any, promises::Any;
    random: rule::Random::new([1; 32]), promises::Any;
    lowest_that_has_rested: rested(rule::Lowest, NearFull::Fail), rests(promises::Lowest, false);
    lowest_that_has_rested_if_any_has: rested(rule::Lowest, NearFull::Relax), rests(promises::Lowest, true);
    cyclic_after_a_rest: rested(rule::Cyclic, NearFull::Fail), rests(promises::Any, false);
    cyclic_after_a_rest_if_any_had_one: rested(rule::Cyclic, NearFull::Relax), rests(promises::Any, true);
}
