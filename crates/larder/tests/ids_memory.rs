//! Without memory every operation says so, and the space is what it was before.
#![allow(clippy::unwrap_used, missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeSet;

use larder::ids::rule::{Cyclic, Epochs, Fifo, Lifo, Lowest, NearFull, Random, Rested};
use larder::ids::{IdError, Ids, Rule};

thread_local! {
    /// Allocations of this thread that succeed before one fails; those after it succeed.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

struct Failing;

fn refused() -> bool {
    LEFT.with(|left| match left.get() {
        None => false,
        Some(0) => {
            left.set(None);
            true
        }
        Some(n) => {
            left.set(Some(n - 1));
            false
        }
    })
}

// SAFETY: either nothing is handed out, or what the system's allocator hands out.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refused() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refused() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the same.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Lets the first allocation fail, then the second, and so on until the call succeeds without it; before that it must
/// fail as it should and change nothing.
fn hungry<R: Rule, T>(
    ids: &mut Ids<R>,
    live: &BTreeSet<u64>,
    mut call: impl FnMut(&mut Ids<R>) -> Result<T, IdError>,
) -> T {
    for left in 0.. {
        LEFT.set(Some(left));
        let done = call(ids);
        LEFT.set(None);
        match done {
            Ok(done) => return done,
            Err(error) => {
                assert_eq!(error, IdError::OutOfMemory);
                assert!(ids.iter().eq(live.iter().copied()));
                assert_eq!(ids.allocated(), live.len() as u64);
            }
        }
    }
    unreachable!()
}

fn check<R: Rule>(rule: &R, last: u64) {
    let mut ids = Ids::new(0..=last, rule.clone()).unwrap();
    let mut live = BTreeSet::new();
    for n in 0..150u64 {
        let id = hungry(&mut ids, &live, Ids::alloc);
        assert!(live.insert(id));
        let id = n * (last / 400) + last / 2;
        if live.insert(id) {
            live.remove(&id);
            hungry(&mut ids, &live, |ids| ids.alloc_at(id));
            live.insert(id);
        }
        let first = hungry(&mut ids, &live, |ids| ids.alloc_range(700, 1));
        live.extend(first..first + 700);
        let (from, to) = (first + 100, first + 600);
        hungry(&mut ids, &live, |ids| ids.free_range(from..=to));
        live.retain(|id| !(from..=to).contains(id));
        if n % 3 == 0 {
            let id = *live.iter().nth(n as usize * 50).unwrap();
            hungry(&mut ids, &live, |ids| ids.free(id));
            live.remove(&id);
        }
    }
    let many: Vec<u64> = live.iter().copied().collect();
    hungry(&mut ids, &live, |ids| ids.free_many(&many));
    assert_eq!(ids.allocated(), 0);
}

/// Up to 2^32, where no ordered map of the standard library is needed.
fn check_all<R: Rule>(rule: R) {
    check(&rule, 200_000);
    check(&rule, u64::from(u32::MAX));
}

#[test]
fn the_lowest() {
    check_all(Lowest);
}

#[test]
fn the_next() {
    check_all(Cyclic);
}

#[test]
fn the_first_freed() {
    check_all(Fifo);
}

#[test]
fn the_last_freed() {
    check_all(Lifo);
}

#[test]
fn those_of_an_earlier_epoch() {
    check(&Epochs::<2>, 200_000);
}

#[test]
fn any() {
    check_all(Random::new([5; 32]));
}

#[test]
fn those_that_rested() {
    check_all(Rested::allocations(Fifo, 300, NearFull::Relax));
}

#[test]
fn nothing_is_allocated_at_first() {
    LEFT.set(Some(0));
    let ids = Ids::new(0u32..1_000_000, Cyclic);
    let wide = Ids::new(0u64..=u64::MAX, Fifo);
    LEFT.set(None);
    assert!(ids.unwrap().bytes() < 300 && wide.is_ok());
}
