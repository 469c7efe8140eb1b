//! The operations of a slot for its current owner, the thread that holds its lock. (The restartable sections, which need no
//! lock, do the same in assembly.)

use super::slot::{Beside, Body, Slot};
use super::sync::{AtomicU64, Ordering, fence};
use super::{FILL_MASK, WORD};

/// A slot that no other thread changes.
#[derive(Debug)]
pub(super) struct Owned<'a> {
    body: &'a Body,
    beside: &'a Beside,
}

/// Adds one. No other thread adds meanwhile.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

fn fill(top: usize) -> usize {
    top & FILL_MASK
}

impl<'a> Owned<'a> {
    /// # Safety
    /// The slot lives for `'a`, and until this value is gone no other thread changes it.
    pub(super) unsafe fn new(slot: *const Slot) -> Self {
        // SAFETY: the slot lives, and all of it is atomics, which may be shared.
        let Slot { body, beside, .. } = unsafe { &*slot };
        Self { body, beside }
    }

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
        // that ran ahead of its round would give it a stale round, which has another owner.
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
