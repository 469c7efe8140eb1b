use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use larder::ids::{Allocate, IdError, Published, Repaired};

use super::support::{Failing, owned, shared};

#[test]
fn what_is_half_built_is_not_visible_and_not_given_away() {
    let ids = Published::new(owned(1, 3));
    let a = ids.reserve().unwrap();
    let b = ids.reserve_at(3).unwrap();
    assert_eq!((a.id(), b.id()), (1, 3));
    assert_eq!(
        (
            ids.is_allocated(1),
            ids.next_allocated(0),
            ids.iter().count()
        ),
        (false, None, 0)
    );
    assert_eq!(
        ids.free(1),
        Err(IdError::NotAllocated { id: 1 }),
        "not his who only knows the number"
    );
    assert_eq!(ids.reserve_at(1).unwrap_err(), IdError::Taken { id: 1 });
    assert_eq!(b.commit(), 3);
    assert_eq!(ids.iter().collect::<Vec<_>>(), [3]);
    a.abort().unwrap();
    assert_eq!(ids.reserve().unwrap().commit(), 1);
    assert_eq!(ids.iter().collect::<Vec<_>>(), [1, 3]);
    assert_eq!(ids.free(3), Ok(()));
    assert_eq!(ids.free(3), Err(IdError::NotAllocated { id: 3 }));
    assert!(matches!(ids.free(4), Err(IdError::OutOfRange { .. })));
    assert!(!ids.is_allocated(4));
    assert_eq!(ids.ids().allocated(), 1);
}

#[test]
fn dropping_a_pending_identifier_aborts() {
    let ids = Published::new(owned(0, 0));
    for _ in 0..3 {
        let pending = ids.reserve().unwrap();
        assert_eq!(ids.reserve().unwrap_err(), IdError::Full { allocated: 1 });
        drop(pending);
    }
    assert_eq!(ids.ids().allocated(), 0);
}

/// Kubernetes 37488: the repair pass read the list, an address was allocated and not yet written there, the pass freed
/// it, and the next service got it too.
#[test]
fn a_repair_pass_leaves_alone_what_is_pending() {
    let ids = Published::new(owned(0, 9));
    let pending = ids.reserve().unwrap();
    let done = ids.begin_repair().unwrap().finish([]).unwrap();
    assert_eq!(done, Repaired::default());
    let other = ids.reserve().unwrap();
    assert_ne!(other.id(), pending.id());
    assert_eq!(pending.commit(), 0);
    assert!(ids.is_allocated(0));
}

#[test]
fn a_repair_pass_leaves_alone_what_was_committed_after_it_began() {
    let ids = Published::new(owned(0, 9));
    let early = ids.reserve().unwrap();
    let leaked = ids.reserve().unwrap().commit();
    let pass = ids.begin_repair().unwrap();
    // The list is read here, and is empty.
    let early = early.commit();
    let late = ids.reserve().unwrap().commit();
    // Freed and used again during the pass: the leak is gone, and the identifier has a new owner.
    ids.free(leaked).unwrap();
    let reused = ids.reserve_at(leaked).unwrap().commit();
    assert_eq!(pass.finish([]).unwrap(), Repaired::default());
    assert_eq!(ids.iter().collect::<Vec<_>>(), [early, reused, late]);
    // The next pass may judge them.
    let done = ids.begin_repair().unwrap().finish([late]).unwrap();
    assert_eq!(done, Repaired { freed: 2, taken: 0 });
    assert_eq!(ids.iter().collect::<Vec<_>>(), [late]);
}

/// A service that is torn down while a pass runs: without the withdrawal the pass frees the address, another service gets
/// it, and the first one frees it once more.
#[test]
fn a_repair_pass_leaves_alone_what_is_withdrawn() {
    let ids = Published::new(owned(0, 9));
    let id = ids.reserve().unwrap().commit();
    let pass = ids.begin_repair().unwrap();
    let withdrawn = ids.withdraw(id).unwrap();
    assert!(!ids.is_allocated(id));
    assert_eq!(ids.withdraw(id).unwrap_err(), IdError::NotAllocated { id });
    assert_eq!(pass.finish([]).unwrap(), Repaired::default());
    assert_ne!(ids.reserve().unwrap().id(), id);
    withdrawn.abort().unwrap();
    assert_eq!(ids.reserve().unwrap().id(), id);
}

#[test]
fn a_repair_pass_makes_the_map_agree_with_the_list() {
    let ids = Published::new(owned(u64::MAX - 99, u64::MAX));
    let id = |at: u64| u64::MAX - 99 + at;
    for at in [0, 1, 2, 50, 98, 99] {
        ids.reserve_at(id(at)).unwrap().commit();
    }
    let done = ids
        .begin_repair()
        .unwrap()
        .finish([0, 0, 3, 50, 97, 99, 99].map(id))
        .unwrap();
    assert_eq!(done, Repaired { freed: 3, taken: 2 });
    assert_eq!(ids.iter().collect::<Vec<_>>(), [0, 3, 50, 97, 99].map(id));
    assert_eq!(ids.ids().allocated(), 5);
}

#[test]
fn a_repair_pass_refuses_a_bad_list() {
    let ids = Published::new(owned(0, 9));
    let unsorted = ids.begin_repair().unwrap().finish([5, 3]);
    assert!(matches!(unsorted, Err(IdError::Invalid { .. })));
    let outside = ids.begin_repair().unwrap().finish([10]);
    assert!(matches!(outside, Err(IdError::OutOfRange { id: 10, .. })));
}

#[test]
fn there_is_one_repair_pass_at_a_time() {
    let ids = Published::new(owned(0, 9));
    let pass = ids.begin_repair().unwrap();
    assert!(matches!(ids.begin_repair(), Err(IdError::Busy { .. })));
    drop(pass);
    assert!(ids.begin_repair().is_ok());
}

#[test]
fn a_failure_below_changes_nothing() {
    let ids = Published::new(Failing::new(0, 9));
    let id = ids.reserve().unwrap().commit();
    ids.ids().calls_left.set(0);
    assert_eq!(ids.free(id), Err(IdError::OutOfMemory));
    assert!(ids.is_allocated(id));
    assert_eq!(
        ids.begin_repair().unwrap().finish([]),
        Err(IdError::OutOfMemory)
    );
    assert!(ids.is_allocated(id));
    ids.ids().calls_left.set(9);
    assert_eq!(ids.free(id), Ok(()));
}

/// Services come and go while a repair pass runs over and over; the store is the truth, as in Kubernetes.
#[test]
fn repair_passes_never_free_a_living_service() {
    let ids = Published::new(shared(0, 63));
    let store = Mutex::new(BTreeSet::new());
    let store = || -> MutexGuard<'_, BTreeSet<u64>> { store.lock().unwrap() };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let services: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let Ok(pending) = ids.reserve() else { continue };
                        let id = pending.id();
                        assert!(store().insert(id), "two services have {id}");
                        pending.commit();
                        thread::yield_now();
                        assert!(ids.is_allocated(id), "a living service lost {id}");
                        let pending = ids.withdraw(id).unwrap();
                        assert!(store().remove(&id));
                        drop(pending);
                    }
                })
            })
            .collect();
        let passes = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let pass = ids.begin_repair().unwrap();
                let list: Vec<_> = store().iter().copied().collect();
                pass.finish(list).unwrap();
            }
        });
        let ends: Vec<_> = services.into_iter().map(|service| service.join()).collect();
        stop.store(true, Ordering::Relaxed);
        passes.join().unwrap();
        assert!(ends.iter().all(Result::is_ok));
    });
    ids.begin_repair().unwrap().finish([]).unwrap();
    assert_eq!(ids.ids().allocated(), 0, "nothing leaked");
}
