//! The whole space under shuttle's scheduler, over the stock of `model`:
//! `RUSTFLAGS="--cfg shuttle" cargo test -p larder --lib --release ids::`.

use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::thread;

use super::IdSpace;
use crate::ids::rule::{Any, Cyclic, Fifo, Lifo, Lowest, Rule};
use crate::ids::{Guard, IdError};

const LEN: u64 = 12;
/// Schedules for each test and rule; `LARDER_SCHEDULES` says otherwise.
const SCHEDULES: usize = 1000;

/// Runs a test under random schedules, and under such that find bugs of few preemptions.
fn explore(test: impl Fn() + Send + Sync + 'static) {
    let schedules = std::env::var("LARDER_SCHEDULES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(SCHEDULES);
    let test = Arc::new(test);
    let again = test.clone();
    shuttle::check_random(move || test(), schedules);
    shuttle::check_pct(move || again(), schedules, 3);
}

fn for_all(test: fn(Box<dyn Fn() -> Arc<dyn Ids>>)) {
    fn space<R: Rule<Order: Send> + Send + Sync + 'static>(rule: R) -> Arc<dyn Ids> {
        Arc::new(IdSpace::new(0..LEN, rule).unwrap())
    }
    explore(move || test(Box::new(|| space(Lowest))));
    explore(move || test(Box::new(|| space(Cyclic))));
    explore(move || test(Box::new(|| space(Fifo))));
    explore(move || test(Box::new(|| space(Lifo))));
    explore(move || test(Box::new(|| space(Any))));
}

/// What the tests use of a space, whatever its rule.
trait Ids: Send + Sync {
    fn alloc(&self) -> Result<u64, IdError>;
    fn alloc_wait(&self) -> Result<u64, IdError>;
    fn alloc_at(&self, id: u64) -> Result<(), IdError>;
    fn alloc_range(&self, count: u64) -> Result<u64, IdError>;
    fn free(&self, id: u64) -> Result<(), IdError>;
    fn free_many(&self, ids: &[u64]) -> Result<(), IdError>;
    fn allocated(&self) -> u64;
    fn waiting(&self) -> u64;
}

impl<R: Rule<Order: Send> + Send + Sync> Ids for IdSpace<R> {
    fn alloc(&self) -> Result<u64, IdError> {
        self.alloc()
    }
    fn alloc_wait(&self) -> Result<u64, IdError> {
        self.alloc_wait()
    }
    fn alloc_at(&self, id: u64) -> Result<(), IdError> {
        self.alloc_at(id)
    }
    fn alloc_range(&self, count: u64) -> Result<u64, IdError> {
        self.alloc_range(count, 1)
    }
    fn free(&self, id: u64) -> Result<(), IdError> {
        self.free(id)
    }
    fn free_many(&self, ids: &[u64]) -> Result<(), IdError> {
        self.free_many(ids)
    }
    fn allocated(&self) -> u64 {
        self.allocated()
    }
    fn waiting(&self) -> u64 {
        self.stats().waiting
    }
}

/// Takes what is left, which is exactly `left`.
fn assert_left(ids: &dyn Ids, left: u64) {
    for i in 0..left {
        ids.alloc()
            .unwrap_or_else(|error| panic!("{i} of {left}: {error}"));
    }
    assert_eq!(ids.alloc(), Err(IdError::Full { allocated: LEN }));
    assert_eq!(ids.allocated(), LEN);
}

#[test]
fn shuttle_no_identifier_has_two_owners_and_none_is_lost() {
    for_all(|space| {
        let ids = space();
        let owned = Arc::new(Mutex::new([0; LEN as usize]));
        let threads: Vec<_> = (1..=3)
            .map(|me| {
                let (ids, owned) = (ids.clone(), owned.clone());
                thread::spawn(move || {
                    let mut held = Vec::new();
                    for _ in 0..5 {
                        let Ok(id) = ids.alloc() else { continue };
                        let mut owned = owned.lock().unwrap();
                        assert_eq!(core::mem::replace(&mut owned[id as usize], me), 0);
                        held.push(id);
                    }
                    let last = held.pop();
                    for &id in &held {
                        owned.lock().unwrap()[id as usize] = 0;
                    }
                    ids.free_many(&held).unwrap();
                    u64::from(last.is_some())
                })
            })
            .collect();
        let held: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert_left(&*ids, LEN - held);
    });
}

#[test]
fn shuttle_full_is_true() {
    for_all(|space| {
        let ids = space();
        for _ in 0..LEN {
            ids.alloc().unwrap();
        }
        // Each frees before it takes, so at every moment there is one for it.
        let threads: Vec<_> = (0..3)
            .map(|me| {
                let ids = ids.clone();
                thread::spawn(move || {
                    let mut mine = [me * 2, me * 2 + 1];
                    for turn in 0..2 {
                        for id in mine {
                            ids.free(id).unwrap();
                        }
                        if turn == 0 {
                            for id in &mut mine {
                                *id = ids.alloc().expect("as many are free as are asked for");
                            }
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_left(&*ids, 6);
    });
}

#[test]
fn shuttle_each_is_freed_once() {
    for_all(|space| {
        let ids = space();
        let held: Vec<_> = (0..LEN - 2).map(|_| ids.alloc().unwrap()).collect();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (ids, held) = (ids.clone(), held.clone());
                thread::spawn(move || held.iter().filter(|&&id| ids.free(id).is_ok()).count())
            })
            .collect();
        let freed: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert_eq!(freed as u64, LEN - 2);
        assert_left(&*ids, LEN);
    });
}

#[test]
fn shuttle_places_are_found() {
    for_all(|space| {
        let ids = space();
        let held: Vec<_> = (0..LEN).map(|_| ids.alloc().unwrap()).collect();
        ids.free_many(&held[4..]).unwrap();
        let other = {
            let ids = ids.clone();
            thread::spawn(move || {
                let one = ids.alloc().expect("there are eight");
                ids.free(one).unwrap();
            })
        };
        // One at most is in the other's hands.
        let got = [5, 9]
            .iter()
            .filter(|&&id| ids.alloc_at(id).is_ok())
            .count();
        assert!(got >= 1);
        other.join().unwrap();
        if got == 2 {
            assert_eq!(ids.alloc_range(3), Ok(6));
            assert_left(&*ids, 3);
        }
    });
}

#[test]
fn shuttle_whoever_waits_is_served() {
    for_all(|space| {
        let ids = space();
        for _ in 0..LEN {
            ids.alloc().unwrap();
        }
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let ids = ids.clone();
                thread::spawn(move || {
                    let id = ids.alloc_wait().unwrap();
                    ids.free(id).unwrap();
                })
            })
            .collect();
        ids.free(3).unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_left(&*ids, 1);
    });
}

#[test]
fn shuttle_nobody_comes_before_who_waits() {
    for_all(|space| {
        let ids = space();
        for _ in 0..LEN {
            ids.alloc().unwrap();
        }
        let waiter = {
            let ids = ids.clone();
            thread::spawn(move || ids.alloc_wait())
        };
        while ids.waiting() == 0 {
            thread::yield_now();
        }
        let freer = {
            let ids = ids.clone();
            thread::spawn(move || ids.free(3).unwrap())
        };
        // Also while it is on the way to the map.
        assert_eq!(ids.alloc_at(3), Err(IdError::Taken { id: 3 }));
        assert!(ids.alloc().is_err());
        assert!(ids.alloc_range(1).is_err());
        assert_eq!(waiter.join().unwrap(), Ok(3));
        freer.join().unwrap();
        assert_left(&*ids, 0);
    });
}

/// Guards that are dropped by several threads give back each its own.
#[test]
fn shuttle_guards_free_their_own() {
    explore(|| {
        let ids = Arc::new(IdSpace::new(0..LEN, Any).unwrap());
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let ids = ids.clone();
                thread::spawn(move || {
                    let one = Guard::new(ids.clone()).unwrap();
                    let other = Guard::new(ids.clone()).unwrap();
                    assert_ne!(one.id(), other.id());
                    drop(one);
                    let raw = other.into_raw();
                    assert!(ids.is_allocated(raw));
                    drop(Guard::from_raw(ids, raw).unwrap());
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_left(&*ids, LEN);
    });
}
