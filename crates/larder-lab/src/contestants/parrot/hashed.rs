//! Arrays indexed by the thread's number times a multiplier: what the mail varies is how far the elements lie apart.
//!
//! The mail masks the thread's identifier, and several threads can fall on one element. Without a lock that loses blocks, so
//! here every thread has a number of its own, and what is left of its hash is the product.

use std::cell::{Cell, UnsafeCell};
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;

use super::{MOST_THREADS, PthreadMutex, Slab, Spacing, next_number};
use crate::contestants::heaps::{Heap, Heaps};

thread_local! {
    /// Stands for `pthread_self()` and its hash: it is read at every call, as the mail's was.
    static SLOT: Cell<usize> = const { Cell::new(0) };
}

/// "Separate arrays of integers": tops of four bytes and rounds of a pointer each, all with the same index.
#[derive(Debug)]
struct Arrays {
    tops: Box<[UnsafeCell<i32>]>,
    rounds: Box<[UnsafeCell<*mut u8>]>,
    multiplier: usize,
    slab: Slab,
    threads: AtomicUsize,
}

// SAFETY: the elements from a slot on, as many as the multiplier, belong to the one thread that got its number from
// `next_number`, or to the holder of the slot's mutex.
unsafe impl Sync for Arrays {}

impl Arrays {
    fn new(multiplier: usize, spacing: Spacing) -> Self {
        let multiplier = multiplier.clamp(1, 64);
        let elements = MOST_THREADS * multiplier;
        Self {
            tops: (0..elements).map(|_| UnsafeCell::new(0)).collect(),
            rounds: (0..elements)
                .map(|_| UnsafeCell::new(std::ptr::null_mut()))
                .collect(),
            multiplier,
            slab: Slab::new(spacing),
            threads: AtomicUsize::new(0),
        }
    }

    fn enter(&self) -> anyhow::Result<()> {
        SLOT.set(next_number(&self.threads)? * self.multiplier);
        Ok(())
    }

    /// # Safety
    /// The slot is the calling thread's alone now.
    #[inline(always)]
    unsafe fn pop(&self, slot: usize, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the slot is ours; tops are at most the multiplier.
        unsafe {
            let top = self.tops[slot].get();
            if *top > 0 {
                *top -= 1;
                NonNull::new(*self.rounds[slot + *top as usize].get())
            } else {
                self.slab.take(bytes)
            }
        }
    }

    /// # Safety
    /// As [`pop`](Self::pop).
    #[inline(always)]
    unsafe fn push(&self, slot: usize, block: NonNull<u8>) {
        // SAFETY: as above. The elements up to the next slot serve as the magazine's rounds.
        unsafe {
            let top = self.tops[slot].get();
            if (*top as usize) < self.multiplier {
                *self.rounds[slot + *top as usize].get() = block.as_ptr();
                *top += 1;
            }
        }
    }
}

/// No lock.
#[derive(Debug)]
pub struct Hashed(Arrays);

impl Hashed {
    /// With a multiplier (the mail has 2, 8 and 16).
    #[must_use]
    pub fn new(multiplier: usize, spacing: Spacing) -> Self {
        Self(Arrays::new(multiplier, spacing))
    }
}

/// A thread's way to its element.
#[derive(Debug)]
pub struct HashedLocal<'a>(&'a Arrays);

impl Heap for HashedLocal<'_> {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the slot is this thread's.
        unsafe { self.0.pop(SLOT.get(), bytes) }
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        // SAFETY: as above.
        unsafe { self.0.push(SLOT.get(), block) };
    }
}

impl Heaps for Hashed {
    type Local<'a> = HashedLocal<'a>;

    fn local(&self) -> anyhow::Result<HashedLocal<'_>> {
        self.0.enter()?;
        Ok(HashedLocal(&self.0))
    }
}

/// The same with a mutex in each element.
#[derive(Debug)]
pub struct HashedMutex {
    arrays: Arrays,
    locks: Box<[PthreadMutex]>,
}

impl HashedMutex {
    /// With a multiplier (the mail has 16).
    #[must_use]
    pub fn new(multiplier: usize, spacing: Spacing) -> Self {
        let arrays = Arrays::new(multiplier, spacing);
        let locks = (0..arrays.tops.len())
            .map(|_| PthreadMutex::new())
            .collect();
        Self { arrays, locks }
    }
}

/// A thread's way to its element and lock.
#[derive(Debug)]
pub struct HashedMutexLocal<'a>(&'a HashedMutex);

impl Heap for HashedMutexLocal<'_> {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let slot = SLOT.get();
        let lock = &self.0.locks[slot];
        lock.lock();
        // SAFETY: this thread has the slot's lock.
        let block = unsafe { self.0.arrays.pop(slot, bytes) };
        // SAFETY: locked above.
        unsafe { lock.unlock() };
        block
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        let slot = SLOT.get();
        let lock = &self.0.locks[slot];
        lock.lock();
        // SAFETY: this thread has the slot's lock.
        unsafe { self.0.arrays.push(slot, block) };
        // SAFETY: locked above.
        unsafe { lock.unlock() };
    }
}

impl Heaps for HashedMutex {
    type Local<'a> = HashedMutexLocal<'a>;

    fn local(&self) -> anyhow::Result<HashedMutexLocal<'_>> {
        self.arrays.enter()?;
        Ok(HashedMutexLocal(self))
    }
}
