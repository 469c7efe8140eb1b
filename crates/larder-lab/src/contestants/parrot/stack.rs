//! The mail's lower bound: memory as a stack, where the last block taken must be the first put back.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::ensure;

use super::PthreadMutex;
use crate::contestants::heaps::{Heap, Heaps};

/// Bytes of the stack.
const BYTES: usize = 1 << 16;

#[repr(align(128))]
#[derive(Debug)]
struct Memory {
    bytes: UnsafeCell<[u8; BYTES]>,
    top: UnsafeCell<usize>,
    lock: PthreadMutex,
    taken: AtomicBool,
}

/// The stack; `LOCKED` takes the mutex around every call. For one thread.
#[derive(Debug)]
pub struct Stack<const LOCKED: bool>(Box<Memory>);

/// "An unlocked pair which simply used a stack for allocation."
pub type UnlockedStack = Stack<false>;

/// "Next I added mutex's": the same with a lock around every call.
pub type LockedStack = Stack<true>;

// SAFETY: the stack is given to one thread only, see `local`.
unsafe impl<const LOCKED: bool> Sync for Stack<LOCKED> {}

/// The one thread's way to a stack.
#[derive(Debug)]
pub struct StackRef<'a, const LOCKED: bool>(&'a Memory);

impl<const LOCKED: bool> Default for Stack<LOCKED> {
    fn default() -> Self {
        Self(Box::new(Memory {
            bytes: UnsafeCell::new([0; BYTES]),
            top: UnsafeCell::new(0),
            lock: PthreadMutex::new(),
            taken: AtomicBool::new(false),
        }))
    }
}

impl<const LOCKED: bool> Heap for StackRef<'_, LOCKED> {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if LOCKED {
            self.0.lock.lock();
        }
        let top = self.0.top.get();
        // SAFETY: this is the only reference to the stack.
        let at = unsafe { *top };
        let block = (bytes <= BYTES - at).then(|| {
            // SAFETY: as above; the block ends within the array.
            unsafe {
                *top = at + bytes;
                NonNull::new_unchecked(self.0.bytes.get().cast::<u8>().add(at))
            }
        });
        if LOCKED {
            // SAFETY: locked above.
            unsafe { self.0.lock.unlock() };
        }
        block
    }

    #[inline(always)]
    unsafe fn free(&mut self, _block: NonNull<u8>, bytes: usize) {
        if LOCKED {
            self.0.lock.lock();
        }
        // SAFETY: this is the only reference to the stack, and as many bytes were taken from it.
        unsafe { *self.0.top.get() -= bytes };
        if LOCKED {
            // SAFETY: locked above.
            unsafe { self.0.lock.unlock() };
        }
    }
}

impl<const LOCKED: bool> Drop for StackRef<'_, LOCKED> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

impl<const LOCKED: bool> Heaps for Stack<LOCKED> {
    type Local<'a> = StackRef<'a, LOCKED>;

    fn local(&self) -> anyhow::Result<StackRef<'_, LOCKED>> {
        ensure!(
            !self.0.taken.swap(true, Ordering::Acquire),
            "a stack needs its blocks back in reverse order, so it serves one thread; ask for 1 thread"
        );
        Ok(StackRef(&self.0))
    }
}
