//! The operations of a slot under a lock, for machines without restartable sequences.
//!
//! The lock is tried and never waited for: who finds it taken tries one neighbour and then goes to the depot, so a
//! descheduled holder holds nobody up. It carries the fork generation of its holder, so that a child recognises one
//! whose holder does not exist there.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::slot::{Beside, Body, Slot};
use super::{FILL_MASK, WORD};
use crate::os::fork;

/// A slot that is held.
#[derive(Debug)]
pub(super) struct Held<'a> {
    body: &'a Body,
    beside: &'a Beside,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.beside.lock.store(0, Ordering::Release);
    }
}

/// Takes the slot at `slot` unless it is held.
///
/// # Safety
/// `slot` is a slot that lives for `'a`, and its body is only used through this function.
pub(super) unsafe fn try_hold<'a>(slot: *mut Slot) -> Option<Held<'a>> {
    // SAFETY: the slot lives, and all of it is atomics, which may be shared.
    let Slot { body, beside } = unsafe { &*slot };
    let lock = &beside.lock;
    let generation = fork::generation();
    let seen = lock.load(Ordering::Relaxed);
    if seen == generation {
        return None;
    }
    // Zero, or left behind by a thread that this child of a fork does not have.
    lock.compare_exchange(seen, generation, Ordering::Acquire, Ordering::Relaxed)
        .ok()?;
    Some(Held { body, beside })
}

/// A number that differs between threads and costs no system call.
pub(crate) fn thread_number() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| (&raw const *here as usize).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32)
}

/// Adds one; the slot is held, so nobody else adds.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

fn fill(top: usize) -> usize {
    top & FILL_MASK
}

impl Held<'_> {
    /// The first place whose magazine is filled so.
    fn place(&self, filled: impl Fn(usize) -> bool) -> Option<usize> {
        self.body.tops().iter().position(|&top| filled(fill(top)))
    }

    /// Puts a magazine, or none, in a place; the old top.
    fn replace(&mut self, which: usize, new: usize) -> usize {
        let old = self.body.top(which);
        self.body.set_top(which, new);
        old
    }

    /// Takes a round.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let which = self.place(|fill| fill > 0)?;
        let top = self.body.top(which);
        // SAFETY: the magazine is the slot's and has a round at its top.
        let round = unsafe { *(top as *const usize) };
        self.body.set_top(which, top - WORD);
        Some(round)
    }

    /// Gives a round; false when both magazines are full.
    pub(super) fn push(&mut self, round: usize) -> bool {
        let capacity = self.body.capacity();
        let Some(which) = self.place(|fill| fill < capacity) else {
            return false;
        };
        count(&self.beside.pushes[which]);
        let new = self.body.top(which) + WORD;
        // SAFETY: the magazine is the slot's, and the slot above its old top is free.
        unsafe { *(new as *mut usize) = round };
        // The child of a fork may find the slot as it is between any two of these stores and takes it over: a top
        // that ran ahead of its round would give it a round that belongs to somebody.
        fence(Ordering::Release);
        self.body.set_top(which, new);
        true
    }

    /// Puts `new` in the place of an empty magazine or of none; the old top, or `None` when there is no such place.
    pub(super) fn replace_empty(&mut self, new: usize) -> Option<usize> {
        let which = self.place(|fill| fill == 0)?;
        Some(self.replace(which, new))
    }

    /// Puts `new` in the place of a full magazine or of none.
    pub(super) fn replace_full(&mut self, new: usize) -> Option<usize> {
        let capacity = self.body.capacity();
        let which = self.place(|fill| fill >= capacity)?;
        Some(self.replace(which, new))
    }

    /// Puts `new` in place `which` if there is no magazine.
    pub(super) fn set_if_none(&mut self, which: usize, new: usize) -> bool {
        let free = self.body.top(which) == 0;
        if free {
            self.body.set_top(which, new);
        }
        free
    }

    /// Sets the capacity in bytes if there are two magazines.
    pub(super) fn set_capacity(&mut self, bytes: usize) -> bool {
        let both = self.body.tops().iter().all(|&top| top != 0);
        if both {
            self.body.set_capacity(bytes);
        }
        both
    }

    /// Takes both magazines out.
    pub(super) fn clear(&mut self) -> [usize; 2] {
        self.body.clear()
    }
}
