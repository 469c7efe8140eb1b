//! The allocator of this program. It counts what each thread allocates, and refuses the allocation that a thread names.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use larder::Larder;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// How often this thread has allocated.
pub(crate) fn allocations() -> usize {
    ALLOCATIONS.get()
}

/// Runs `call`, in which this thread's allocations succeed but for the one after the first `left`.
pub(crate) fn refusing<T>(left: u32, call: impl FnOnce() -> T) -> T {
    LEFT.set(Some(left));
    let done = call();
    LEFT.set(None);
    done
}

#[derive(Debug)]
pub(crate) struct Watched;

impl Watched {
    /// Counts an allocation. Says whether it is the one that fails.
    fn refuses() -> bool {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        let left = LEFT.get();
        LEFT.set(left.and_then(|n| n.checked_sub(1)));
        left == Some(0)
    }
}

// SAFETY: either nothing is handed out, or what larder hands out.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::refuses() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the same.
        unsafe { Larder.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Self::refuses() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the same.
        unsafe { Larder.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe { Larder.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::refuses() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the same.
        unsafe { Larder.realloc(ptr, layout, size) }
    }
}
