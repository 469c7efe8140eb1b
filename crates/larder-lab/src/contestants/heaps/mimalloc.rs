//! mimalloc.

use std::ptr::NonNull;

use super::Heap;

/// `mi_malloc` and `mi_free`. Its sized free is the same free, so the size is not passed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mimalloc;

impl Heap for Mimalloc {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: any size may be asked for.
        NonNull::new(unsafe { libmimalloc_sys::mi_malloc(bytes) }.cast())
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        // SAFETY: allocated by mimalloc and given up by the caller.
        unsafe { libmimalloc_sys::mi_free(block.as_ptr().cast()) };
    }
}
