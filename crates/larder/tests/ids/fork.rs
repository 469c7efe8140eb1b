//! The child of a fork goes on with its copy of a space, whatever the parent's other threads were doing at that moment.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::fork::{Storm, fork};
use crate::common::{Rng, alone};
use crate::spaces::*;
use larder::ids::rule::{Cyclic, Epochs, Fifo, Lifo, Lowest, Random};
use larder::ids::{IdError, IdSpace, Rule};
use larder::os::rseq::Mode;

/// What the child does: takes all that is left, frees it, and has threads of its own.
fn use_space<R: Rule<Order: Send> + Sync>(ids: &IdSpace<R>, mine: &[u64], others: usize, len: u64) {
    let mut held: Vec<u64> = std::iter::from_fn(|| ids.alloc().ok()).collect();
    for &id in mine {
        assert!(ids.is_allocated(id));
        assert!(!held.contains(&id), "what is held was handed out again");
    }
    // What other threads hold, or held in the middle of an operation, stays allocated in the child.
    let least = len as usize - mine.len() - others;
    assert!(held.len() >= least, "{} of {least} at least", held.len());
    assert!(matches!(ids.alloc(), Err(IdError::Full { .. })));
    assert!(ids.alloc_timeout(Duration::from_millis(1)).is_err());
    std::thread::scope(|s| {
        let half = held.split_off(held.len() / 2);
        for list in [held, half] {
            s.spawn(move || {
                for &id in &list {
                    ids.free(id).unwrap();
                }
                let again: Vec<u64> = list.iter().map(|_| ids.alloc().unwrap()).collect();
                ids.free_many(&again).unwrap();
            });
        }
    });
    ids.free_many(mine).unwrap();
}

fn storm<R: Rule<Order: Send> + Sync>(rule: R, mode: Mode) {
    const LEN: u64 = 1000;
    const THREADS: u64 = 3;
    const HELD: usize = 100;
    let ids = space(rule, 0, LEN, mode);
    let mine: Vec<u64> = (0..20).map(|_| ids.alloc().unwrap()).collect();
    let storm = Storm {
        mode,
        threads: THREADS,
        least: 10,
        seconds: 0.4,
    };
    storm.rage(
        |me, stop| {
            let mut rng = Rng(me);
            let mut held = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                if held.len() < HELD && rng.below(2) == 0 {
                    held.push(ids.alloc().unwrap());
                } else if !held.is_empty() {
                    let id = held.swap_remove(rng.below(held.len()));
                    ids.free(id).unwrap();
                }
                if rng.below(1000) == 0 {
                    // Empties the magazines.
                    let id = rng.below(LEN as usize) as u64;
                    if ids.alloc_at(id).is_ok() {
                        ids.free(id).unwrap();
                    }
                }
            }
        },
        || (),
        |_, ()| use_space(&ids, &mine, THREADS as usize * (HELD + 192), LEN),
        drop,
    );
}

#[test]
fn children_use_their_space_while_the_parent_uses_its_own() {
    alone(
        "children_use_their_space_while_the_parent_uses_its_own",
        |mode| {
            storm(Lowest, mode);
            storm(Cyclic, mode);
            storm(Fifo, mode);
            storm(Lifo, mode);
            storm(Epochs::<2>, mode);
            storm(Random::new([7; 32]), mode);
        },
    );
}

/// What was granted to a thread that the child does not have is not lost there.
#[test]
fn those_who_waited_do_not_exist_in_the_child() {
    alone("those_who_waited_do_not_exist_in_the_child", |mode| {
        let ids = space(Lifo, 0, 100, mode);
        for _ in 0..100 {
            ids.alloc().unwrap();
        }
        std::thread::scope(|s| {
            s.spawn(|| ids.free(ids.alloc_wait().unwrap()).unwrap());
            while ids.stats().waiting == 0 {
                std::thread::yield_now();
            }
            let status = fork(|| {
                assert_eq!(ids.stats().waiting, 0);
                ids.free(7).unwrap();
                assert_eq!(ids.alloc(), Ok(7));
                assert_eq!(ids.alloc(), Err(IdError::Full { allocated: 100 }));
            });
            ids.free(8).unwrap();
            assert_eq!(status, 0);
        });
        assert_eq!(ids.allocated(), 99);
    });
}
