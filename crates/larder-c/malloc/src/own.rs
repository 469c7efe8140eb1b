//! What the library allocates for itself comes from its own heap, by its own functions and not by the name `malloc`: a program that
//! has a malloc inside, as rustc has, is asked first where a name is looked up.

use core::alloc::{GlobalAlloc, Layout};

use larder::internal::heap::{alloc, free};

struct Own;

#[global_allocator]
static OWN: Own = Own;

// SAFETY: the functions are those of malloc, for a size and an alignment; a block is freed by its address.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        alloc(layout.size(), layout.align())
    }

    unsafe fn dealloc(&self, at: *mut u8, _: Layout) {
        // SAFETY: the caller's promise.
        unsafe { free(at) };
    }
}
