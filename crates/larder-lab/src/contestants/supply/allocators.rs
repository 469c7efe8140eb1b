//! Today's allocators as suppliers of pages: a page is an aligned block.

#[cfg(feature = "peers")]
use std::ffi::c_int;
use std::ptr::{self, NonNull};

#[cfg(feature = "peers")]
use tikv_jemalloc_sys::{MALLOCX_ALIGN, MALLOCX_ZERO, mallocx, sdallocx};

use super::{Supplier, page_size};

/// `posix_memalign` of one page and `free`, of the C library that the process runs with.
///
/// It has no aligned `calloc`, so a page of zeros is a page and a `memset`.
#[derive(Debug, Clone, Copy)]
pub struct SystemMalloc {
    page: usize,
}

impl Default for SystemMalloc {
    fn default() -> Self {
        Self { page: page_size() }
    }
}

impl Supplier for SystemMalloc {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        let mut page = ptr::null_mut();
        // SAFETY: the alignment is a power of two and the result is stored in `page` on success only.
        let code = unsafe { libc::posix_memalign(&raw mut page, self.page, self.page) };
        if code == 0 {
            NonNull::new(page.cast())
        } else {
            None
        }
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        let page = self.get()?;
        // SAFETY: a fresh allocation of one page.
        unsafe { page.as_ptr().write_bytes(0, self.page) };
        Some(page)
    }

    #[inline]
    unsafe fn put(&mut self, page: NonNull<u8>) {
        // SAFETY: allocated by the same malloc and given up by the caller.
        unsafe { libc::free(page.as_ptr().cast()) };
    }
}

/// `mi_malloc_aligned` and `mi_free` of one page, with mimalloc's defaults.
#[cfg(feature = "peers")]
#[derive(Debug, Clone, Copy)]
pub struct Mimalloc {
    page: usize,
}

#[cfg(feature = "peers")]
impl Default for Mimalloc {
    fn default() -> Self {
        Self { page: page_size() }
    }
}

#[cfg(feature = "peers")]
impl Supplier for Mimalloc {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        // SAFETY: the alignment is a power of two.
        NonNull::new(unsafe { libmimalloc_sys::mi_malloc_aligned(self.page, self.page) }.cast())
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        // SAFETY: the alignment is a power of two.
        NonNull::new(unsafe { libmimalloc_sys::mi_zalloc_aligned(self.page, self.page) }.cast())
    }

    #[inline]
    unsafe fn put(&mut self, page: NonNull<u8>) {
        // SAFETY: allocated by mimalloc and given up by the caller.
        unsafe { libmimalloc_sys::mi_free(page.as_ptr().cast()) };
    }
}

/// `mallocx` of one aligned page and `sdallocx`: jemalloc's own interface, which receives the size in both calls and so
/// does the least work. With jemalloc's defaults.
#[cfg(feature = "peers")]
#[derive(Debug, Clone, Copy)]
pub struct Jemalloc {
    page: usize,
    flags: c_int,
}

#[cfg(feature = "peers")]
impl Default for Jemalloc {
    fn default() -> Self {
        let page = page_size();
        Self {
            page,
            flags: MALLOCX_ALIGN(page),
        }
    }
}

#[cfg(feature = "peers")]
impl Supplier for Jemalloc {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        // SAFETY: the size is not zero and the alignment is a power of two.
        NonNull::new(unsafe { mallocx(self.page, self.flags) }.cast())
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        // SAFETY: as above.
        NonNull::new(unsafe { mallocx(self.page, self.flags | MALLOCX_ZERO) }.cast())
    }

    #[inline]
    unsafe fn put(&mut self, page: NonNull<u8>) {
        // SAFETY: allocated with the same size and flags, and given up by the caller.
        unsafe { sdallocx(page.as_ptr().cast(), self.page, self.flags) };
    }
}
