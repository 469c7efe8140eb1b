//! Every source against a model: no duplicate, no false 'full', and each its rule.

use larder::ids::{Ids, rule};

use super::*;

/// Which free identifier must come next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Lowest,
    /// The next free one after the last.
    Cyclic,
    FirstFreed,
    LastFreed,
    /// Any, as far as this model knows.
    Any,
}

/// Frees and takes at random with a list of what is free beside, down to the last identifier and on from there.
fn agrees<S: IdSource>(count: u64, taken: u64, order: Order) {
    let mut rng = Rng::new(count + taken);
    let start = Start::random(count, taken, &mut rng).expect("sensible");
    let mut source = S::start(&start).expect("starts");
    let mut free: Vec<u64> = start.free_ids().map(u64::from).collect();
    let mut used: Vec<u64> = start.taken_ids().map(S::first).collect();
    // The order of what was free at the start is the source's own business.
    let mut freed_since = std::collections::VecDeque::new();
    let mut last = None;
    for turn in 0..4 * count {
        // Phases in which it fills up to the brim and phases in which it drains.
        let drain = rng.below(100)
            < if (turn / count).is_multiple_of(2) {
                30
            } else {
                70
            };
        if drain && !used.is_empty() {
            let id = used.swap_remove(rng.below(used.len() as u64) as usize);
            assert!(source.free(id), "{id} was taken");
            if S::CHECKS {
                assert!(!source.free(id), "{id} was freed twice");
            }
            let place = id & u64::from(u32::MAX);
            free.insert(free.partition_point(|f| *f < place), place);
            freed_since.push_back(place);
            continue;
        }
        let Some(id) = source.alloc() else {
            assert!(free.is_empty(), "full with {} free", free.len());
            continue;
        };
        let place = id & u64::from(u32::MAX);
        let at = free.binary_search(&place).expect("it was free");
        match order {
            Order::Lowest => assert_eq!(at, 0),
            Order::Cyclic => {
                let next = last.map_or(0, |last: u64| free.partition_point(|f| *f <= last));
                if last.is_some() {
                    assert_eq!(at, next % free.len());
                }
            }
            Order::FirstFreed => {
                if freed_since.front() == Some(&place) {
                    freed_since.pop_front();
                } else {
                    assert!(!freed_since.contains(&place), "{place} came too early");
                }
            }
            Order::LastFreed => {
                if freed_since.back() == Some(&place) {
                    freed_since.pop_back();
                } else {
                    assert!(freed_since.is_empty(), "{place} came too early");
                }
            }
            Order::Any => {}
        }
        free.remove(at);
        used.push(id);
        last = Some(place);
    }
}

fn everywhere<S: IdSource>(order: Order) {
    for count in [1, 2, 63, 64, 65, 1000, 4096, 5000] {
        for taken in [0, count / 2, count] {
            agrees::<S>(count, taken, order);
        }
    }
}

#[test]
fn the_lowest_comes_first() {
    everywhere::<Ids<rule::Lowest>>(Order::Lowest);
    everywhere::<Tree<false>>(Order::Lowest);
    everywhere::<OrderedSet<false>>(Order::Lowest);
}

#[test]
fn the_next_comes_first() {
    everywhere::<Ids<rule::Cyclic>>(Order::Cyclic);
    everywhere::<Pidmap>(Order::Cyclic);
    everywhere::<Tree<true>>(Order::Cyclic);
    everywhere::<OrderedSet<true>>(Order::Cyclic);
    // More than one page.
    agrees::<Pidmap>(70_000, 69_900, Order::Cyclic);
}

#[test]
fn arrays_keep_their_order() {
    everywhere::<Ids<rule::Fifo>>(Order::FirstFreed);
    everywhere::<Ids<rule::Lifo>>(Order::LastFreed);
    everywhere::<Ring>(Order::FirstFreed);
    everywhere::<Stack>(Order::LastFreed);
}

#[test]
fn other_rules_hand_out_what_is_free() {
    everywhere::<Ids<rule::Epochs>>(Order::Any);
    everywhere::<Ids<rule::Random>>(Order::Any);
}

#[cfg(feature = "peers")]
#[test]
fn the_crates_keep_their_order() {
    everywhere::<Hibit>(Order::Lowest);
    everywhere::<HibitLevels<false>>(Order::Lowest);
    everywhere::<HibitLevels<true>>(Order::Cyclic);
    everywhere::<RoaringFree<false>>(Order::Lowest);
    everywhere::<RoaringFree<true>>(Order::Cyclic);
    everywhere::<RoaringTaken>(Order::Cyclic);
    everywhere::<Blaze<false>>(Order::Lowest);
    everywhere::<Blaze<true>>(Order::Cyclic);
    everywhere::<Pool>(Order::Lowest);
    everywhere::<SlabIds>(Order::LastFreed);
    everywhere::<SlotMapIds>(Order::LastFreed);
}

#[test]
fn a_foreign_identifier_is_no_reason_to_panic() {
    let start = Start::random(100, 50, &mut Rng::new(1)).expect("sensible");
    for id in [100, 128, 1 << 20, u64::from(u32::MAX)] {
        assert!(!Pidmap::start(&start).expect("starts").free(id));
    }
    assert!(!Tree::<true>::start(&start).expect("starts").free(1 << 20));
}

#[test]
fn bytes_are_told_as_they_are() {
    let start = Start::random(1 << 22, 1 << 21, &mut Rng::new(1)).expect("sensible");
    let bits = |bytes: Option<usize>| 8.0 * bytes.expect("it tells") as f64 / f64::from(1 << 22);
    let pidmap = bits(Pidmap::start(&start).expect("starts").bytes());
    assert!((1.0..1.01).contains(&pidmap), "{pidmap}");
    let tree = bits(Tree::<true>::start(&start).expect("starts").bytes());
    assert!((1.015..1.02).contains(&tree), "{tree}");
    let stack = bits(Stack::start(&start).expect("starts").bytes());
    assert_eq!(stack, 32.0);
}
