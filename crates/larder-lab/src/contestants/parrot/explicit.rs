//! `interp_t`: the magazine belongs to the interpreter, which every call is given.
//!
//! The memory lies as in the attached program. `interp_t` is padded, but its magazine is a piece of the slab, ten bytes
//! long, and so is every block: what the padding keeps apart, the slab puts side by side again. With two threads both
//! magazines are always taken before the first thread runs, so they share a line; which pieces the third thread gets
//! depends on which thread comes first.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use anyhow::Context;

use super::{MOST_THREADS, PthreadMutex, Slab, Spacing, next_number};
use crate::contestants::heaps::{Heap, Heaps};

/// `slab_alloc(10)`. A pointer was four bytes then and is eight now, so that it holds one round and not two.
const MAGAZINE_BYTES: usize = 10;

/// Rounds that fit into it.
const ROUNDS: i32 = (MAGAZINE_BYTES / size_of::<*mut u8>()) as i32;

/// The mail's structure, with its padding.
#[repr(C)]
#[derive(Debug)]
struct InterpT {
    lock: PthreadMutex,
    magazine: AtomicPtr<u8>,
    top: UnsafeCell<i32>,
    id: i32,
    padding: [i32; 4],
}

#[repr(align(128))]
#[derive(Debug)]
struct Interps([InterpT; MOST_THREADS]);

/// All interpreters and the slab behind them.
#[derive(Debug)]
pub struct ExplicitHandles {
    interps: Box<Interps>,
    slab: Slab,
    made: Mutex<usize>,
    running: AtomicUsize,
}

// SAFETY: an interpreter's top and magazine belong to the one thread that got its number from `next_number`.
unsafe impl Sync for ExplicitHandles {}

impl ExplicitHandles {
    /// With one interpreter, as the mail's program makes before all threads.
    ///
    /// # Errors
    /// A slab without room.
    pub fn new(spacing: Spacing) -> anyhow::Result<Self> {
        let this = Self {
            interps: Box::new(Interps(std::array::from_fn(|id| InterpT {
                lock: PthreadMutex::new(),
                magazine: AtomicPtr::default(),
                top: UnsafeCell::new(0),
                id: id as i32,
                padding: [0; 4],
            }))),
            slab: Slab::new(spacing),
            made: Mutex::new(0),
            running: AtomicUsize::new(0),
        };
        this.make()?;
        Ok(this)
    }

    /// `init_interp` of the next one.
    fn make(&self) -> anyhow::Result<()> {
        let mut made = self
            .made
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // One more than there are threads is made; the last thread's successor may find no element.
        if let Some(interp) = self.interps.0.get(*made) {
            let piece = self
                .slab
                .take(MAGAZINE_BYTES)
                .context("the mail's slab has no room for another magazine")?;
            interp.magazine.store(piece.as_ptr(), Ordering::Release);
            *made += 1;
        }
        Ok(())
    }
}

/// A thread's interpreter.
#[derive(Debug)]
pub struct Interp<'a> {
    interp: &'a InterpT,
    slab: &'a Slab,
}

impl Interp<'_> {
    /// Where the magazine's rounds lie.
    #[inline(always)]
    fn rounds(&self) -> *mut *mut u8 {
        // The compiler loads it again at every call, as the mail's did from the structure.
        self.interp.magazine.load(Ordering::Relaxed).cast()
    }
}

impl Heap for Interp<'_> {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let top = self.interp.top.get();
        // SAFETY: the interpreter is this thread's; its magazine is a piece of the slab with room for `ROUNDS`
        // rounds, of any alignment.
        unsafe {
            if *top > 0 {
                *top -= 1;
                NonNull::new(self.rounds().add(*top as usize).read_unaligned())
            } else {
                self.slab.take(bytes)
            }
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        let top = self.interp.top.get();
        // SAFETY: as above, and there is room.
        unsafe {
            if *top < ROUNDS {
                self.rounds()
                    .add(*top as usize)
                    .write_unaligned(block.as_ptr());
                *top += 1;
            }
        }
    }
}

impl Heaps for ExplicitHandles {
    type Local<'a> = Interp<'a>;

    /// The mail's `main` makes interpreter i + 1 and then starts thread i.
    fn before_thread(&self) -> anyhow::Result<()> {
        self.make()
    }

    fn local(&self) -> anyhow::Result<Interp<'_>> {
        let interp = &self.interps.0[next_number(&self.running)?];
        if interp.magazine.load(Ordering::Acquire).is_null() {
            self.make()?;
        }
        Ok(Interp {
            interp,
            slab: &self.slab,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn magazine(handles: &ExplicitHandles, number: usize) -> usize {
        handles.interps.0[number]
            .magazine
            .load(Ordering::Relaxed)
            .addr()
    }

    #[test]
    fn the_first_two_magazines_share_a_line_unless_they_are_kept_apart() {
        let handles = ExplicitHandles::new(Spacing::Close).expect("room");
        handles.before_thread().expect("room");
        assert_eq!(magazine(&handles, 0) / 64, magazine(&handles, 1) / 64);
        let handles = ExplicitHandles::new(Spacing::Apart).expect("room");
        handles.before_thread().expect("room");
        assert_eq!(magazine(&handles, 1) - magazine(&handles, 0), 128);
    }

    #[test]
    fn the_structures_are_padded_beyond_a_line() {
        assert!(size_of::<InterpT>() >= 64, "{}", size_of::<InterpT>());
    }
}
