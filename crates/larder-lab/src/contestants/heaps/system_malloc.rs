//! The C library's malloc.

use std::ptr::NonNull;

use super::Heap;

/// `malloc` and `free` of the C library that the process runs with, or of what was loaded before it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemMalloc;

impl Heap for SystemMalloc {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: any size may be asked for.
        NonNull::new(unsafe { libc::malloc(bytes) }.cast())
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        // SAFETY: allocated by the same malloc and given up by the caller.
        unsafe { libc::free(block.as_ptr().cast()) };
    }
}
