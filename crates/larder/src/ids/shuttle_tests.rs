//! The layers under shuttle's scheduler, over a space that it schedules, too:
//! `RUSTFLAGS="--cfg shuttle" cargo test -p larder --lib ids::shuttle_tests`.

use std::collections::BTreeSet;
use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::thread;

use super::rule::{Any, Cyclic, Lowest};
use super::space::explore;
use super::{Allocate, Guard, IdError, IdSpace, Namespace, Published, SharedRule, Tenant, Tenants};

fn space<R: SharedRule>(len: u64, rule: R) -> IdSpace<R> {
    IdSpace::new(0..len, rule).unwrap()
}

/// Whatever the layers did, all are free in the end, and there are as many as there were.
fn assert_all_free(ids: &impl Allocate, len: u64) {
    assert_eq!(ids.allocated(), 0);
    for _ in 0..len {
        ids.alloc().unwrap();
    }
    assert!(matches!(ids.alloc(), Err(IdError::Full { .. })));
}

/// Two free the same committed identifier, and a repair pass finds it on no list: one of the three frees it.
#[test]
fn shuttle_a_committed_one_is_freed_once() {
    explore(|| {
        let ids = Arc::new(Published::new(space(8, Cyclic)));
        let id = ids.reserve().unwrap().commit();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let ids = ids.clone();
                thread::spawn(move || u64::from(ids.free(id).is_ok()))
            })
            .collect();
        let repaired = ids.begin_repair().unwrap().finish([]).unwrap();
        assert_eq!(repaired.taken, 0);
        let freed: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert_eq!(freed + repaired.freed, 1);
        assert_all_free(ids.ids(), 8);
    });
}

/// What is written to the store before it is committed outlives every pass, and what is pending is not seen.
#[test]
fn shuttle_a_repair_pass_leaves_the_young_alone() {
    explore(|| {
        let ids = Arc::new(Published::new(space(8, Any)));
        let store = Arc::new(Mutex::new(BTreeSet::new()));
        let leaked = ids.reserve().unwrap().commit();
        let builders: Vec<_> = (0..2)
            .map(|i| {
                let (ids, store) = (ids.clone(), store.clone());
                thread::spawn(move || {
                    for turn in 0..2 {
                        let pending = ids.reserve().unwrap();
                        let id = pending.id();
                        assert!(!ids.is_allocated(id), "half built, and seen");
                        if i == turn {
                            pending.abort().unwrap();
                            continue;
                        }
                        store.lock().unwrap().insert(id);
                        assert_eq!(pending.commit(), id);
                        assert!(ids.is_allocated(id), "repaired away");
                    }
                })
            })
            .collect();
        let pass = ids.begin_repair().unwrap();
        let list: Vec<u64> = store.lock().unwrap().iter().copied().collect();
        // One that is on the list and not yet committed is pending, and is left to its builder.
        let repaired = pass.finish(list).unwrap();
        assert_eq!((repaired.freed, repaired.taken), (1, 0));
        for builder in builders {
            builder.join().unwrap();
        }
        assert!(!ids.is_allocated(leaked) || store.lock().unwrap().contains(&leaked));
        let seen: BTreeSet<u64> = ids.iter().collect();
        assert_eq!(seen, *store.lock().unwrap());
        for id in seen {
            ids.free(id).unwrap();
        }
        assert_all_free(ids.ids(), 8);
    });
}

/// Of the threads that withdraw one identifier, one gets it, and it has no other owner until it is dropped.
#[test]
fn shuttle_a_withdrawn_one_has_one_owner() {
    explore(|| {
        let ids = Arc::new(Published::new(space(4, Lowest)));
        let id = ids.reserve().unwrap().commit();
        let threads: Vec<_> = (0..3)
            .map(|i| {
                let ids = ids.clone();
                thread::spawn(move || match ids.withdraw(id) {
                    Ok(pending) => {
                        assert!(ids.reserve_at(id).is_err());
                        // Back into sight, or gone.
                        if i == 0 {
                            pending.commit();
                        }
                        1
                    }
                    Err(error) => {
                        assert_eq!(error, IdError::NotAllocated { id });
                        0
                    }
                })
            })
            .collect();
        let got: u32 = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert!((1..=2).contains(&got), "{got}");
        let _ = ids.free(id);
        assert_all_free(ids.ids(), 4);
    });
}

/// A tenant never has more than its limit, and what others take is not counted as its own.
#[test]
fn shuttle_tenants_keep_their_limits() {
    explore(|| {
        let ids = Arc::new(Tenants::new(space(8, Cyclic)));
        let ann = Arc::new(Tenant::new("ann", 3).unwrap());
        let bob = Arc::new(Tenant::new("bob", 9).unwrap());
        let held = Arc::new(Mutex::new(0));
        let threads: Vec<_> = (0..3)
            .map(|i| {
                let (ids, held) = (ids.clone(), held.clone());
                let me = if i == 2 { bob.clone() } else { ann.clone() };
                let other = if i == 2 { ann.clone() } else { bob.clone() };
                thread::spawn(move || {
                    let mut mine = Vec::new();
                    for _ in 0..3 {
                        match ids.alloc(&me) {
                            Ok(id) => {
                                let mut held = held.lock().unwrap();
                                *held += u32::from(me.name() == "ann");
                                assert!(*held <= 3, "above the limit");
                                mine.push(id);
                            }
                            Err(error) => assert!(
                                matches!(error, IdError::TenantLimit { .. }) && me.name() == "ann",
                                "{error}"
                            ),
                        }
                    }
                    for id in mine {
                        assert!(matches!(ids.free(&other, id), Err(IdError::Foreign { .. })));
                        let mut held = held.lock().unwrap();
                        *held -= u32::from(me.name() == "ann");
                        drop(held);
                        ids.free(&me, id).unwrap();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((ann.used(), bob.used()), (0, 0));
        assert_all_free(ids.ids(), 8);
    });
}

/// A tenant dies while its threads still free: each identifier is freed once, and the count is right.
#[test]
fn shuttle_a_tenant_that_dies_frees_each_once() {
    explore(|| {
        let ids = Arc::new(Tenants::new(space(8, Any)));
        let ann = Arc::new(Tenant::new("ann", 8).unwrap());
        let held: Vec<u64> = (0..4).map(|_| ids.alloc(&ann).unwrap()).collect();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (ids, ann, held) = (ids.clone(), ann.clone(), held.clone());
                thread::spawn(move || {
                    held.iter()
                        .filter(|&&id| ids.free(&ann, id).is_ok())
                        .count() as u64
                })
            })
            .collect();
        let mut freed = ids.free_all(&ann).unwrap();
        freed += threads.into_iter().map(|t| t.join().unwrap()).sum::<u64>();
        assert_eq!((freed, ann.used()), (4, 0));
        assert_all_free(ids.ids(), 8);
    });
}

/// An identifier at every level or at none, whichever level is full.
#[test]
fn shuttle_nested_spaces_take_all_or_none() {
    for (host_len, inner_len) in [(3, 8), (8, 3)] {
        explore(move || {
            let host = Namespace::outermost(space(host_len, Cyclic));
            let inner = host.inner(space(inner_len, Cyclic)).unwrap();
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let inner = inner.clone();
                    thread::spawn(move || {
                        let mut mine = Vec::new();
                        for _ in 0..2 {
                            match inner.alloc() {
                                Ok(nested) => mine.push(nested),
                                Err(IdError::Level { .. }) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                        mine.pop()
                    })
                })
                .collect();
            let held: Vec<_> = threads
                .into_iter()
                .filter_map(|t| t.join().unwrap())
                .collect();
            let outside: BTreeSet<_> = held.iter().map(|n| n.id_at(0)).collect();
            let inside: BTreeSet<_> = held.iter().map(|n| n.id()).collect();
            assert_eq!((outside.len(), inside.len()), (held.len(), held.len()));
            assert_eq!(host.ids().allocated(), held.len() as u64);
            assert_eq!(inner.ids().allocated(), held.len() as u64);
            drop(held);
            assert_all_free(host.ids(), host_len);
            assert_all_free(inner.ids(), inner_len);
        });
    }
}

/// Guards that are dropped by several threads give back each its own.
#[test]
fn shuttle_guards_free_their_own() {
    explore(|| {
        let ids = Arc::new(space(6, Any));
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
        assert_all_free(&*ids, 6);
    });
}
