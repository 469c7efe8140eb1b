//! Allocators that are one for the whole process, by their two functions.

use std::ptr::NonNull;

use super::Heap;

/// Declares one: a name, the call that allocates, and the call that frees.
macro_rules! allocator {
    ($(#[$about:meta])* $name:ident, |$asked:ident| $alloc:expr, |$block:ident, $bytes:ident| $free:expr) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $name;

        impl Heap for $name {
            #[inline(always)]
            fn alloc(&mut self, $asked: usize) -> Option<NonNull<u8>> {
                NonNull::new($alloc.cast())
            }

            #[inline(always)]
            unsafe fn free(&mut self, block: NonNull<u8>, $bytes: usize) {
                let $block = block.as_ptr().cast();
                $free;
            }
        }
    };
}

allocator!(
    /// `malloc` and `free` of the C library that the process runs with, or of what was loaded before it.
    SystemMalloc,
    // SAFETY: any size may be asked for.
    |bytes| unsafe { libc::malloc(bytes) },
    // SAFETY: allocated by the same malloc and given up by the caller.
    |block, _bytes| unsafe { libc::free(block) }
);

#[cfg(feature = "peers")]
allocator!(
    /// `mi_malloc` and `mi_free`. Its sized free is the same free, so the size is not passed.
    Mimalloc,
    // SAFETY: any size may be asked for.
    |bytes| unsafe { libmimalloc_sys::mi_malloc(bytes) },
    // SAFETY: allocated by mimalloc and given up by the caller.
    |block, _bytes| unsafe { libmimalloc_sys::mi_free(block) }
);

#[cfg(feature = "peers")]
allocator!(
    /// `malloc` and `sdallocx`: jemalloc's fast paths; `sdallocx` receives the size.
    Jemalloc,
    // SAFETY: any size may be asked for.
    |bytes| unsafe { tikv_jemalloc_sys::malloc(bytes) },
    // SAFETY: allocated with as many bytes and no flags, and given up by the caller.
    |block, bytes| unsafe { tikv_jemalloc_sys::sdallocx(block, bytes, 0) }
);

#[cfg(feature = "peers-cpp")]
allocator!(
    /// snmalloc's `sn_rust_alloc` and `sn_rust_dealloc`, which receive size and alignment as Rust's allocators do.
    Snmalloc,
    // SAFETY: the alignment is a power of two.
    |bytes| unsafe { snmalloc_sys::sn_rust_alloc(super::ALIGN, bytes) },
    // SAFETY: allocated with the same alignment and size, and given up by the caller.
    |block, bytes| unsafe { snmalloc_sys::sn_rust_dealloc(block, super::ALIGN, bytes) }
);
