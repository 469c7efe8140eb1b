//! mimalloc's heaps of their own, which are destroyed whole.

use std::marker::PhantomData;
use std::ptr::NonNull;

use anyhow::Context;

use super::{Heap, Heaps};

/// `mi_heap_new`, `mi_heap_malloc` and `mi_heap_destroy`.
#[derive(Debug, Clone, Copy, Default)]
pub struct MimallocHeaps;

/// One such heap. Its blocks die with it.
#[derive(Debug)]
pub struct MimallocHeap<'a> {
    heap: NonNull<libmimalloc_sys::mi_heap_t>,
    // A heap serves the thread that made it.
    owner: PhantomData<(&'a MimallocHeaps, *mut ())>,
}

impl Heap for MimallocHeap<'_> {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the heap lives until this value is dropped and is used by this thread alone.
        NonNull::new(unsafe { libmimalloc_sys::mi_heap_malloc(self.heap.as_ptr(), bytes) }.cast())
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        // SAFETY: allocated by mimalloc and given up by the caller.
        unsafe { libmimalloc_sys::mi_free(block.as_ptr().cast()) };
    }
}

impl Drop for MimallocHeap<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `local`, dropped once; its blocks die with it, as `DIES_WHOLE` says.
        unsafe { libmimalloc_sys::mi_heap_destroy(self.heap.as_ptr()) };
    }
}

impl Heaps for MimallocHeaps {
    type Local<'a> = MimallocHeap<'a>;

    const DIES_WHOLE: bool = true;

    fn local(&self) -> anyhow::Result<MimallocHeap<'_>> {
        // SAFETY: no condition.
        let heap = NonNull::new(unsafe { libmimalloc_sys::mi_heap_new() })
            .context("mimalloc has no memory for another heap")?;
        Ok(MimallocHeap {
            heap,
            owner: PhantomData,
        })
    }
}
