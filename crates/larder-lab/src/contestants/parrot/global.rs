//! `MyGlobalAlloc`: one magazine for all threads, behind one mutex.

use std::cell::UnsafeCell;
use std::ptr::NonNull;

use super::{MOST_THREADS, PthreadMutex, Slab, Spacing};
use crate::contestants::heaps::{Heap, Heaps};

/// Rounds of the shared magazine: one for each thread. The mail's has room for two and a half and writes on.
const ROUNDS: usize = MOST_THREADS;

#[repr(C, align(64))]
#[derive(Debug)]
struct Shared {
    lock: PthreadMutex,
    magazine: UnsafeCell<Magazine>,
}

#[derive(Debug)]
struct Magazine {
    top: usize,
    rounds: [*mut u8; ROUNDS],
}

/// The shared magazine and the slab behind it.
#[derive(Debug)]
pub struct GlobalLocked {
    shared: Box<Shared>,
    slab: Slab,
}

// SAFETY: the magazine is touched under the lock only, and the blocks in it are free.
unsafe impl Sync for GlobalLocked {}

impl GlobalLocked {
    /// An empty magazine.
    #[must_use]
    pub fn new(spacing: Spacing) -> Self {
        Self {
            shared: Box::new(Shared {
                lock: PthreadMutex::new(),
                magazine: UnsafeCell::new(Magazine {
                    top: 0,
                    rounds: [std::ptr::null_mut(); ROUNDS],
                }),
            }),
            slab: Slab::new(spacing),
        }
    }
}

/// A thread's way to it.
#[derive(Debug)]
pub struct GlobalRef<'a>(&'a GlobalLocked);

impl Heap for GlobalRef<'_> {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let shared = &*self.0.shared;
        shared.lock.lock();
        // SAFETY: this thread has the lock.
        let magazine = unsafe { &mut *shared.magazine.get() };
        let block = if magazine.top > 0 {
            magazine.top -= 1;
            NonNull::new(magazine.rounds[magazine.top])
        } else {
            self.0.slab.take(bytes)
        };
        // SAFETY: locked above.
        unsafe { shared.lock.unlock() };
        block
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        let shared = &*self.0.shared;
        shared.lock.lock();
        // SAFETY: this thread has the lock.
        let magazine = unsafe { &mut *shared.magazine.get() };
        if let Some(round) = magazine.rounds.get_mut(magazine.top) {
            *round = block.as_ptr();
            magazine.top += 1;
        }
        // SAFETY: locked above.
        unsafe { shared.lock.unlock() };
    }
}

impl Heaps for GlobalLocked {
    type Local<'a> = GlobalRef<'a>;

    fn local(&self) -> anyhow::Result<GlobalRef<'_>> {
        Ok(GlobalRef(self))
    }
}
