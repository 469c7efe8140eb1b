//! Allocators that are one for the whole process, by their two functions.

use std::ptr::NonNull;

use super::Heap;

/// Declares one: a name, and its calls in the order of [`Heap`].
macro_rules! allocator {
    (
        $(#[$about:meta])* $name:ident,
        alloc: |$a:ident| $alloc:expr,
        free: |$f:ident, $f_bytes:ident| $free:expr,
        zeroed: |$z:ident| $zeroed:expr,
        aligned: |$l:ident, $l_align:ident| $aligned:expr,
        free_aligned: |$g:ident, $g_bytes:ident, $g_align:ident| $free_aligned:expr,
        realloc: |$r:ident, $r_bytes:ident, $r_to:ident| $realloc:expr $(,)?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $name;

        impl Heap for $name {
            #[inline(always)]
            fn alloc(&mut self, $a: usize) -> Option<NonNull<u8>> {
                NonNull::new($alloc.cast())
            }

            #[inline(always)]
            unsafe fn free(&mut self, block: NonNull<u8>, $f_bytes: usize) {
                let $f = block.as_ptr().cast();
                $free;
            }

            #[inline(always)]
            fn alloc_zeroed(&mut self, $z: usize) -> Option<NonNull<u8>> {
                NonNull::new($zeroed.cast())
            }

            #[inline(always)]
            fn alloc_aligned(&mut self, $l: usize, $l_align: usize) -> Option<NonNull<u8>> {
                NonNull::new($aligned.cast())
            }

            #[inline(always)]
            unsafe fn free_aligned(&mut self, block: NonNull<u8>, $g_bytes: usize, $g_align: usize) {
                let $g = block.as_ptr().cast();
                $free_aligned;
            }

            #[inline(always)]
            unsafe fn realloc(
                &mut self,
                block: NonNull<u8>,
                $r_bytes: usize,
                $r_to: usize,
            ) -> Option<NonNull<u8>> {
                let $r = block.as_ptr().cast();
                NonNull::new($realloc.cast())
            }
        }
    };
}

allocator!(
    /// `malloc` and `free` of the C library that the process runs with, or of what was loaded before it.
    SystemMalloc,
    // SAFETY: any size may be asked for.
    alloc: |bytes| unsafe { libc::malloc(bytes) },
    // SAFETY: allocated by the same malloc and given up by the caller.
    free: |block, _bytes| unsafe { libc::free(block) },
    // SAFETY: any size may be asked for.
    zeroed: |bytes| unsafe { libc::calloc(1, bytes) },
    // SAFETY: the alignment is a power of two.
    aligned: |bytes, align| unsafe { libc::aligned_alloc(align, bytes) },
    // SAFETY: as `free`.
    free_aligned: |block, _bytes, _align| unsafe { libc::free(block) },
    // SAFETY: allocated by the same malloc and given up by the caller.
    realloc: |block, _bytes, to| unsafe { libc::realloc(block, to) },
);

#[cfg(feature = "peers")]
allocator!(
    /// `mi_malloc` and `mi_free`. Its sized free is the same free, so the size is not passed.
    Mimalloc,
    // SAFETY: any size may be asked for.
    alloc: |bytes| unsafe { libmimalloc_sys::mi_malloc(bytes) },
    // SAFETY: allocated by mimalloc and given up by the caller.
    free: |block, _bytes| unsafe { libmimalloc_sys::mi_free(block) },
    // SAFETY: any size may be asked for.
    zeroed: |bytes| unsafe { libmimalloc_sys::mi_zalloc(bytes) },
    // SAFETY: the alignment is a power of two.
    aligned: |bytes, align| unsafe { libmimalloc_sys::mi_malloc_aligned(bytes, align) },
    // SAFETY: as `free`.
    free_aligned: |block, _bytes, _align| unsafe { libmimalloc_sys::mi_free(block) },
    // SAFETY: allocated by mimalloc and given up by the caller.
    realloc: |block, _bytes, to| unsafe { libmimalloc_sys::mi_realloc(block, to) },
);

#[cfg(feature = "peers")]
allocator!(
    /// `malloc` and `sdallocx`: jemalloc's fast paths; `sdallocx` receives the size.
    Jemalloc,
    // SAFETY: any size may be asked for.
    alloc: |bytes| unsafe { tikv_jemalloc_sys::malloc(bytes) },
    // SAFETY: allocated with as many bytes and no flags, and given up by the caller.
    free: |block, bytes| unsafe { tikv_jemalloc_sys::sdallocx(block, bytes, 0) },
    // SAFETY: any size may be asked for.
    zeroed: |bytes| unsafe { tikv_jemalloc_sys::calloc(1, bytes) },
    // SAFETY: the alignment is a power of two, and no caller asks for 0 bytes.
    aligned: |bytes, align| unsafe {
        tikv_jemalloc_sys::mallocx(bytes, tikv_jemalloc_sys::MALLOCX_ALIGN(align))
    },
    // SAFETY: allocated with these bytes and this alignment, and given up by the caller.
    free_aligned: |block, bytes, align| unsafe {
        tikv_jemalloc_sys::sdallocx(block, bytes, tikv_jemalloc_sys::MALLOCX_ALIGN(align))
    },
    // SAFETY: allocated by jemalloc and given up by the caller.
    realloc: |block, _bytes, to| unsafe { tikv_jemalloc_sys::realloc(block, to) },
);

#[cfg(feature = "peers-cpp")]
allocator!(
    /// snmalloc's `sn_rust_alloc` and `sn_rust_dealloc`, which receive size and alignment as Rust's allocators do.
    Snmalloc,
    // SAFETY: the alignment is a power of two.
    alloc: |bytes| unsafe { snmalloc_sys::sn_rust_alloc(super::ALIGN, bytes) },
    // SAFETY: allocated with the same alignment and size, and given up by the caller.
    free: |block, bytes| unsafe { snmalloc_sys::sn_rust_dealloc(block, super::ALIGN, bytes) },
    // SAFETY: the alignment is a power of two.
    zeroed: |bytes| unsafe { snmalloc_sys::sn_rust_alloc_zeroed(super::ALIGN, bytes) },
    // SAFETY: the alignment is a power of two.
    aligned: |bytes, align| unsafe { snmalloc_sys::sn_rust_alloc(align, bytes) },
    // SAFETY: allocated with the same alignment and size, and given up by the caller.
    free_aligned: |block, bytes, align| unsafe {
        snmalloc_sys::sn_rust_dealloc(block, align, bytes)
    },
    // SAFETY: allocated with this alignment and size, and given up by the caller.
    realloc: |block, bytes, to| unsafe {
        snmalloc_sys::sn_rust_realloc(block, super::ALIGN, bytes, to)
    },
);
