use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use larder::ids::{Allocate, Guard, IdError};

use super::support::{owned, shared};

#[test]
fn an_identifier_goes_back_when_its_guard_is_dropped() {
    let ids = owned(5, 6);
    let (a, b) = (Guard::new(&ids).unwrap(), Guard::new(&ids).unwrap());
    assert_eq!((a.id(), b.id(), ids.allocated()), (5, 6, 2));
    assert_eq!(
        Guard::new(&ids).unwrap_err(),
        IdError::Full { allocated: 2 }
    );
    drop(a);
    assert_eq!((ids.allocated(), ids.is_allocated(5)), (1, false));
    assert_eq!(Guard::at(&ids, 6).unwrap_err(), IdError::Taken { id: 6 });
    assert_eq!(Guard::at(&ids, 5).unwrap().id(), 5);
    drop(b);
    assert_eq!(ids.allocated(), 0);
}

#[test]
fn a_raw_identifier_stays_and_can_come_back() {
    let ids = Rc::new(owned(0, 9));
    let raw = Guard::new(Rc::clone(&ids)).unwrap().into_raw();
    assert!(ids.is_allocated(raw));
    let leaked = Guard::new(Rc::clone(&ids)).unwrap().into_raw();
    drop(Guard::from_raw(Rc::clone(&ids), raw).unwrap());
    assert!(!ids.is_allocated(raw) && ids.is_allocated(leaked));
    let again = Guard::from_raw(Rc::clone(&ids), raw).unwrap_err();
    assert_eq!(again, IdError::NotAllocated { id: raw });
    let outside = Guard::from_raw(Rc::clone(&ids), 10).unwrap_err();
    assert_eq!(
        outside,
        IdError::OutOfRange {
            id: 10,
            first: 0,
            last: 9
        }
    );
    assert_eq!(Rc::strong_count(&ids), 1, "raw numbers hold no reference");
}

/// What the documentation warns of.
#[test]
fn a_guard_that_is_dropped_while_the_cell_is_borrowed_leaves_its_identifier() {
    let ids = owned(0, 9);
    let (dropped, freed) = (Guard::new(&ids).unwrap(), Guard::new(&ids).unwrap());
    let borrow = ids.borrow_mut();
    assert_eq!(freed.free(), Err(IdError::Borrowed));
    drop(dropped);
    drop(borrow);
    assert_eq!(ids.allocated(), 2);
}

#[test]
fn freeing_a_guard_says_what_dropping_cannot() {
    let ids = owned(0, 9);
    let guard = Guard::new(&ids).unwrap();
    ids.free(0).unwrap();
    assert_eq!(guard.free(), Err(IdError::NotAllocated { id: 0 }));
    assert_eq!(Guard::new(&ids).unwrap().free(), Ok(()));
    assert_eq!(ids.allocated(), 0);
}

#[test]
fn a_guard_may_be_dropped_by_another_thread() {
    let ids = Arc::new(shared(0, 99));
    let guards: Vec<_> = (0..10)
        .map(|_| Guard::new(Arc::clone(&ids)).unwrap())
        .collect();
    thread::scope(|scope| {
        for guard in guards {
            scope.spawn(move || drop(guard));
        }
    });
    assert_eq!(ids.allocated(), 0);
}

#[test]
fn a_borrowed_owner_is_an_error() {
    let ids = owned(0, 9);
    let elsewhere = ids.borrow_mut();
    assert_eq!(Allocate::alloc(&ids), Err(IdError::Borrowed));
    assert_eq!(Allocate::free(&ids, 1), Err(IdError::Borrowed));
    drop(elsewhere);
    assert_eq!(Allocate::alloc(&ids), Ok(0));
}

#[test]
fn the_next_free_identifier_is_found() {
    let ids = owned(u64::MAX - 3, u64::MAX);
    ids.alloc_at(u64::MAX - 3).unwrap();
    ids.alloc_at(u64::MAX).unwrap();
    assert_eq!(ids.next_free(0), Some(u64::MAX - 2));
    assert_eq!(ids.next_free(u64::MAX - 1), Some(u64::MAX - 1));
    assert_eq!(ids.next_free(u64::MAX), None);
    assert_eq!(ids.next_allocated(u64::MAX - 2), Some(u64::MAX));
}
