//! Finding out the mode asks nothing of the allocator in another thread: where the allocator is what finds out, that thread
//! would wait for the one that waits for it. A program of its own, since the mode is found out once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

thread_local! {
    static ASKS: Cell<bool> = const { Cell::new(false) };
}
static ASKED: AtomicBool = AtomicBool::new(false);
static HERE: AtomicUsize = AtomicUsize::new(0);
static ELSEWHERE: AtomicUsize = AtomicUsize::new(0);

/// Counts who allocates while one thread asks for the mode.
struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ASKED.load(Ordering::Relaxed) {
            let count = if ASKS.get() { &HERE } else { &ELSEWHERE };
            count.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nobody_else_allocates_while_the_mode_is_found_out() {
    ASKS.set(true);
    ASKED.store(true, Ordering::Relaxed);
    drop(std::hint::black_box(Box::new(1)));
    let mode = larder::os::rseq::mode();
    ASKED.store(false, Ordering::Relaxed);
    assert!(HERE.load(Ordering::Relaxed) > 0, "nothing was counted");
    assert_eq!(ELSEWHERE.load(Ordering::Relaxed), 0, "{mode}");
}
