//! Rest is a promise, counted in allocations or in ticks of a clock.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use larder::ids::rule::{Clock, Cyclic, Fifo, Lifo, Lowest, NearFull, Rested};
use larder::ids::{IdError, IdRange, Ids, Rule};
use proptest::prelude::*;

/// A clock that the test sets.
#[derive(Debug, Clone, Default)]
struct Hand(Rc<Cell<u64>>);

impl Clock for Hand {
    fn now(&self, _: u64) -> u64 {
        self.0.get()
    }
}

/// Frees and allocates at random; `None` is an allocation.
fn churn<R: Rule>(rule: R, rest: u64, relax: bool, range: IdRange, calls: &[Option<usize>]) {
    let near_full = if relax {
        NearFull::Relax
    } else {
        NearFull::Fail
    };
    let mut ids = Ids::new(range, Rested::allocations(rule, rest, near_full)).unwrap();
    let mut live = Vec::new();
    let mut freed = BTreeMap::new();
    let mut allocations = 0u64;
    let mut shortest = None;
    for call in calls {
        match call {
            None => {
                let resting = freed
                    .values()
                    .filter(|&&at| allocations - at < rest)
                    .count();
                match ids.alloc() {
                    Ok(id) => {
                        if let Some(at) = freed.remove(&id) {
                            let distance = allocations - at;
                            if distance < rest {
                                assert!(relax, "{id} rested {distance} of {rest}");
                                // The longest of those that rest, and nothing else was left.
                                assert!(freed.values().all(|&other| other >= at));
                                let all = live.len() + freed.len() + 1;
                                assert_eq!(all as u128, range.len());
                                let least: u64 = shortest.unwrap_or(distance);
                                shortest = Some(least.min(distance));
                            }
                        }
                        allocations += 1;
                        live.push(id);
                    }
                    Err(IdError::Resting { resting: said }) => {
                        assert!(!relax);
                        assert_eq!(said, resting as u64);
                        assert_eq!((live.len() + resting) as u128, range.len());
                    }
                    Err(error) => {
                        let allocated = live.len() as u64;
                        assert_eq!(error, IdError::Full { allocated });
                        assert_eq!(u128::from(allocated), range.len());
                    }
                }
            }
            Some(n) => {
                let Some(n) = n.checked_rem(live.len()) else {
                    continue;
                };
                let id = live.swap_remove(n);
                ids.free(id).unwrap();
                assert!(!ids.is_allocated(id));
                assert_eq!(ids.free(id), Err(IdError::NotAllocated { id }));
                freed.insert(id, allocations);
            }
        }
        assert_eq!(ids.allocated(), live.len() as u64);
        assert_eq!(ids.order().shortest(), shortest);
    }
    live.sort_unstable();
    assert!(ids.iter().eq(live));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_comes_back_before_it_has_rested(
        rest in 0u64..20,
        relax: bool,
        last in prop_oneof![0u64..30, Just(1 << 40)],
        calls in prop::collection::vec(prop::option::of(any::<usize>()), 0..300),
    ) {
        let range = IdRange::new(0, last).unwrap();
        churn(Lowest, rest, relax, range, &calls);
        churn(Cyclic, rest, relax, range, &calls);
        churn(Fifo, rest, relax, range, &calls);
        churn(Lifo, rest, relax, range, &calls);
    }
}

#[test]
fn a_clock_decides() {
    let hand = Hand::default();
    let rule = Rested::by_clock(Lowest, 10, NearFull::Fail, hand.clone());
    let mut ids = Ids::new(0u64..2, rule).unwrap();
    assert_eq!((ids.alloc(), ids.alloc()), (Ok(0), Ok(1)));
    ids.free(0).unwrap();
    hand.0.set(4);
    ids.free(1).unwrap();
    assert_eq!(ids.order().due(), Some(6));
    assert_eq!(ids.alloc(), Err(IdError::Resting { resting: 2 }));
    hand.0.set(10);
    assert_eq!(ids.order().due(), Some(0));
    assert_eq!(ids.alloc(), Ok(0));
    assert_eq!(ids.alloc(), Err(IdError::Resting { resting: 1 }));
    hand.0.set(14);
    assert_eq!(ids.alloc(), Ok(1));
    assert_eq!(ids.order().due(), None);
    assert_eq!(ids.alloc(), Err(IdError::Full { allocated: 2 }));
}

/// A rest that was ended by name leaves an entry in the queue, which must not stand for another identifier.
#[test]
fn due_is_the_first_that_still_rests() {
    let hand = Hand::default();
    let rule = Rested::by_clock(Lowest, 10, NearFull::Relax, hand.clone());
    let mut ids = Ids::new(0u64..4, rule).unwrap();
    ids.reserve(0u64..4).unwrap();
    for (at, id) in [(0, 0), (1, 1), (4, 2)] {
        hand.0.set(at);
        ids.free(id).unwrap();
    }
    assert_eq!(ids.order().due(), Some(6));
    ids.alloc_at(1).unwrap();
    assert_eq!(ids.order().due(), Some(6), "0 was freed first");
    ids.alloc_at(0).unwrap();
    assert_eq!(ids.order().due(), Some(10), "2 is the only one that rests");
    hand.0.set(5);
    ids.free(0).unwrap();
    assert_eq!(ids.order().due(), Some(9), "2, not 0 that begins anew");
    // Handed out before its time, as the only one of those that rest before 0.
    assert_eq!(ids.alloc(), Ok(2));
    assert_eq!(ids.order().due(), Some(10));
    ids.free(1).unwrap();
    hand.0.set(7);
    ids.free(2).unwrap();
    ids.alloc_at(1).unwrap();
    assert_eq!(ids.alloc(), Ok(0));
    assert_eq!(
        ids.order().due(),
        Some(10),
        "the entry of 1 went with that of 0"
    );
    ids.alloc_at(2).unwrap();
    assert_eq!((ids.order().due(), ids.order().resting()), (None, 0));
}

#[test]
fn an_hour_of_rest_is_long() {
    let rule = Rested::time(Cyclic, Duration::from_secs(3600), NearFull::Fail);
    let mut ids = Ids::new(0u64..1, rule).unwrap();
    ids.alloc().unwrap();
    ids.free(0).unwrap();
    assert_eq!(ids.alloc(), Err(IdError::Resting { resting: 1 }));
    let rule = Rested::time(Cyclic, Duration::ZERO, NearFull::Fail);
    let mut ids = Ids::new(0u64..1, rule).unwrap();
    ids.alloc().unwrap();
    ids.free(0).unwrap();
    assert_eq!(ids.alloc(), Ok(0));
}

#[test]
fn by_name_only_who_relaxes_ends_a_rest() {
    for near_full in [NearFull::Fail, NearFull::Relax] {
        let mut ids = Ids::new(0u64..10, Rested::allocations(Lowest, 100, near_full)).unwrap();
        ids.reserve(0u64..6).unwrap();
        ids.free_many(&[2, 3, 4]).unwrap();
        let resting = Err(IdError::Resting { resting: 3 });
        if near_full == NearFull::Fail {
            assert_eq!(ids.alloc_at(3), resting);
            assert_eq!(ids.reserve(4u64..9), Err(IdError::Taken { id: 5 }));
            assert_eq!(ids.reserve(2u64..5), resting);
            assert_eq!(ids.alloc_range(2, 2), Ok(6));
            continue;
        }
        ids.alloc_at(3).unwrap();
        assert_eq!(ids.order().resting(), 2);
        ids.free(3).unwrap();
        ids.reserve(2u64..5).unwrap();
        assert_eq!(ids.order().resting(), 0);
        ids.free(3).unwrap();
        for expect in [6, 7, 8, 9, 3] {
            assert_eq!(ids.alloc(), Ok(expect));
        }
        assert_eq!(ids.order().shortest(), Some(4));
        assert_eq!(ids.alloc(), Err(IdError::Full { allocated: 10 }));
    }
}

#[test]
fn stale_entries_are_swept() {
    let rule = Rested::allocations(Fifo, 1 << 40, NearFull::Relax);
    let mut ids = Ids::new(0u64..1000, rule).unwrap();
    ids.alloc_at(7).unwrap();
    for _ in 0..100_000 {
        ids.free(7).unwrap();
        ids.alloc_at(7).unwrap();
    }
    assert!(ids.bytes() < 20_000, "{}", ids.bytes());
    for id in 0..1000 {
        if id != 7 {
            assert_eq!(ids.alloc(), Ok(id));
        }
    }
    assert_eq!(ids.alloc(), Err(IdError::Full { allocated: 1000 }));
}
