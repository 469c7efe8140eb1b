//! Every rule against a set of taken identifiers and a simple model of the rule, over ranges of every kind.

use larder::ids::{IdError, IdRange, Ids, Rule, rule};
use larder::os::rseq::Mode;
use proptest::prelude::*;

use super::{Model, REST, ops, promises, rested, rules};
use crate::common::modes;

fn ranges() -> Vec<IdRange> {
    let new = |first, last| IdRange::new(first, last).unwrap();
    vec![
        new(1, 1),
        new(0, 2),
        new(1, 64),
        new(60, 127),
        new(0, 255),
        new(300, 32767),
        new(0, 65535),
        new(65530, 65530 + 65536 + 4097),
        new(7, (1 << 20) + 7),
        new(0, (1 << 24) + 70_000),
        new(1, u64::from(u32::MAX)),
        new(1 << 40, (1 << 48) + 99),
        new(u64::MAX - 100, u64::MAX),
        IdRange::ALL,
    ]
}

/// The same in every mode: one owner needs no magazines.
fn ids<R: Rule>(range: IdRange, rule: R, _: Mode) -> Ids<R> {
    Ids::new(range, rule).unwrap()
}

/// Each call once: nothing lies ready that a second one could meet.
const BURST: usize = 1;
const MANY: usize = 120;

rules! {
    300 times 150 calls:
    the_lowest_is_next: rule::Lowest, promises::Lowest;
    the_one_after_the_latest_is_next: rule::Cyclic, promises::Cyclic::default();
    the_first_freed_is_next: rule::Fifo, promises::Fifo::default();
    the_last_freed_is_next: rule::Lifo, promises::Lifo::default();
    those_of_an_earlier_epoch_are_next: rule::Epochs::<2>, promises::Epochs::new(2);
    those_of_an_earlier_one_of_four_epochs_are_next: rule::Epochs::<4>, promises::Epochs::new(4);
    whichever_is_at_hand_is_next: rule::Any, promises::Any;
    any_free_one_is_next: rule::Random::new([1; 32]), promises::Any;
    the_lowest_that_has_rested_is_next: rested(rule::Lowest, rule::NearFull::Fail),
        promises::Rested::new(promises::Lowest, REST, false);
    the_lowest_that_has_rested_is_next_if_any_has: rested(rule::Lowest, rule::NearFull::Relax),
        promises::Rested::new(promises::Lowest, REST, true);
    the_next_that_has_rested_is_next: rested(rule::Cyclic, rule::NearFull::Fail),
        promises::Rested::new(promises::Cyclic::default(), REST, false);
    the_next_that_has_rested_is_next_if_any_has: rested(rule::Cyclic, rule::NearFull::Relax),
        promises::Rested::new(promises::Cyclic::default(), REST, true);
}

/// Frees what does not belong, at the beginning, when some are taken, when all are, and when all are free again.
fn foreign<R: Rule>(rule: &R) {
    for range in ranges() {
        let mut ids = Ids::new(range, rule.clone()).unwrap();
        let mut taken = Vec::new();
        for wanted in [0, 1, 3, 70, 4100, 200_000, 0] {
            while taken.len() < wanted && ids.free_count() != 0 {
                taken.push(ids.alloc().unwrap());
            }
            while taken.len() > wanted {
                ids.free(taken.pop().unwrap()).unwrap();
            }
            for distance in (1..130).chain([4096, 1 << 20, 1 << 33]) {
                let below = range.first().checked_sub(distance);
                let beyond = range.last().checked_add(distance);
                for id in below.into_iter().chain(beyond) {
                    assert_eq!(
                        ids.free(id),
                        Err(IdError::OutOfRange {
                            id,
                            first: range.first(),
                            last: range.last()
                        })
                    );
                }
            }
            assert_eq!(ids.allocated(), taken.len() as u64);
        }
    }
}

#[test]
fn what_does_not_belong_is_refused_at_every_occupancy() {
    foreign(&rule::Lowest);
    foreign(&rule::Cyclic);
    foreign(&rule::Any);
    foreign(&rule::Fifo);
    foreign(&rule::Lifo);
    foreign(&rule::Epochs::<2>);
    foreign(&rule::Random::new([1; 32]));
    foreign(&rule::Rested::allocations(
        rule::Lowest,
        0,
        rule::NearFull::Fail,
    ));
}
