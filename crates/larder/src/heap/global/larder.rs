//! The allocator of a Rust program.

use core::alloc::{GlobalAlloc, Layout};

use super::front;

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
