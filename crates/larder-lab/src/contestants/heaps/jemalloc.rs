//! jemalloc.

use std::ptr::NonNull;

use super::Heap;

/// `malloc` and `sdallocx`: jemalloc's fast paths; `sdallocx` receives the size.
#[derive(Debug, Clone, Copy, Default)]
pub struct Jemalloc;

impl Heap for Jemalloc {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: any size may be asked for.
        NonNull::new(unsafe { tikv_jemalloc_sys::malloc(bytes) }.cast())
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: allocated with as many bytes and no flags, and given up by the caller.
        unsafe { tikv_jemalloc_sys::sdallocx(block.as_ptr().cast(), bytes, 0) };
    }
}
