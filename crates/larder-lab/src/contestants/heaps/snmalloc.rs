//! snmalloc.

use std::ptr::NonNull;

use super::{ALIGN, Heap};

/// `sn_rust_alloc` and `sn_rust_dealloc`, which receive size and alignment as Rust's allocators do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Snmalloc;

impl Heap for Snmalloc {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the alignment is a power of two.
        NonNull::new(unsafe { snmalloc_sys::sn_rust_alloc(ALIGN, bytes) }.cast())
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: allocated with the same alignment and size, and given up by the caller.
        unsafe { snmalloc_sys::sn_rust_dealloc(block.as_ptr().cast(), ALIGN, bytes) };
    }
}
