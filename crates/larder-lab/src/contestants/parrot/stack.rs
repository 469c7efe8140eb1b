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

impl Memory {
    fn new() -> Box<Self> {
        Box::new(Self {
            bytes: UnsafeCell::new([0; BYTES]),
            top: UnsafeCell::new(0),
            lock: PthreadMutex::new(),
            taken: AtomicBool::new(false),
        })
    }
}

/// "An unlocked pair which simply used a stack for allocation." For one thread.
#[derive(Debug)]
pub struct UnlockedStack(Box<Memory>);

/// "Next I added mutex's": the same with a lock around every call.
#[derive(Debug)]
pub struct LockedStack(Box<Memory>);

// SAFETY: the stack is given to one thread only, see `claim`.
unsafe impl Sync for UnlockedStack {}
// SAFETY: as above.
unsafe impl Sync for LockedStack {}

/// The one thread's way to a stack; `LOCKED` takes the mutex around every call.
#[derive(Debug)]
pub struct StackRef<'a, const LOCKED: bool>(&'a Memory);

impl Default for UnlockedStack {
    fn default() -> Self {
        Self(Memory::new())
    }
}

impl Default for LockedStack {
    fn default() -> Self {
        Self(Memory::new())
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

fn claim<const LOCKED: bool>(memory: &Memory) -> anyhow::Result<StackRef<'_, LOCKED>> {
    ensure!(
        !memory.taken.swap(true, Ordering::Acquire),
        "a stack needs its blocks back in reverse order, so it serves one thread; ask for 1 thread"
    );
    Ok(StackRef(memory))
}

impl Heaps for UnlockedStack {
    type Local<'a> = StackRef<'a, false>;

    fn local(&self) -> anyhow::Result<StackRef<'_, false>> {
        claim(&self.0)
    }
}

impl Heaps for LockedStack {
    type Local<'a> = StackRef<'a, true>;

    fn local(&self) -> anyhow::Result<StackRef<'_, true>> {
        claim(&self.0)
    }
}
