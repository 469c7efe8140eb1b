//! The allocator of a Rust program.

use core::alloc::{GlobalAlloc, Layout};
use core::time::Duration;

use super::{GlobalStats, front, stats};
#[cfg(feature = "debug-heap")]
use super::{checked::inside, debugged};
#[cfg(feature = "debug-heap")]
use crate::heap::debug::{Here, LeakStats, LiveBlock, Options};

/// The allocator of a program: `#[global_allocator] static ALLOCATOR: larder::Larder = larder::Larder;`
///
/// A deallocation brings its layout, so nothing is looked up.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: larder::Larder = larder::Larder;
///
/// let numbers: Vec<u32> = (0..1000).collect();
/// assert_eq!(numbers.iter().sum::<u32>(), 499_500);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Larder;

// SAFETY: blocks are disjoint, as large and aligned as was asked for, and stay until they are given back; nothing unwinds.
unsafe impl GlobalAlloc for Larder {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        front::alloc(layout.size(), layout.align())
    }
    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { front::free_sized(at, layout.size(), layout.align()) }
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        front::alloc_zeroed(layout.size(), layout.align())
    }
    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { front::realloc_sized(at, layout.size(), size, layout.align()) }
    }
}

impl Larder {
    /// What the program's heap holds. Counts nothing before the first allocation.
    #[must_use]
    pub fn stats() -> GlobalStats {
        stats::stats()
    }

    /// Gives everything back to the system that is not in use, but for what other threads have in their magazines. Returns
    /// bytes of pages that went.
    pub fn trim() -> usize {
        front::trim()
    }

    /// Starts a thread that gives back, periodically, what was not used for an interval.
    ///
    /// # Errors
    /// When no thread can be started, or there is no heap.
    pub fn start_helper(interval: Duration) -> std::io::Result<()> {
        front::start_helper(interval)
    }
}

/// Where `LARDER_MALLOC_DEBUG` asks for checks; else these find nothing.
#[cfg(feature = "debug-heap")]
impl Larder {
    /// What is checked; `None` where nothing is.
    #[must_use]
    pub fn debug_options() -> Option<Options> {
        debugged::heap().map(|heap| *heap.options())
    }

    /// Shows every live block of the program. Each is shown once, and those that come and go meanwhile may be missed. What `f`
    /// allocates itself is not checked. Takes time in proportion to the blocks that there were at most.
    ///
    /// ```
    /// larder::Larder::for_each_live(|block| println!("{} bytes at {:#x}", block.size, block.address));
    /// ```
    pub fn for_each_live(mut f: impl FnMut(LiveBlock)) {
        if let Some(heap) = debugged::heap() {
            inside(|| heap.for_each_live(&mut f));
        }
    }

    /// Looks at the redzones of all blocks and at all freed blocks that are kept. Reports each damage, and ends the process
    /// unless the options say that it goes on. Returns how many there were.
    pub fn check() -> usize {
        debugged::heap().map_or(0, |heap| inside(|| heap.check()))
    }

    /// Searches for blocks that nothing of the program points to, and reports them on standard error by the place that
    /// allocated them. Threads are stopped for the time of it: some milliseconds and what it takes to read all memory that the
    /// program wrote. `None` without checks, or without memory for the search.
    pub fn leaks() -> Option<LeakStats> {
        let here = Here::new();
        debugged::heap().and_then(|heap| inside(|| heap.leaks(&here)))
    }
}
