//! jemalloc as a supplier of pages.

use std::ffi::c_int;
use std::ptr::NonNull;

use tikv_jemalloc_sys::{MALLOCX_ALIGN, MALLOCX_ZERO, mallocx, sdallocx};

use super::{Supplier, Supply, page_size};

/// `mallocx` of one aligned page and `sdallocx`: jemalloc's own interface, which is told the size on both ways and so
/// does the least work.
#[derive(Debug, Clone, Copy)]
pub struct Jemalloc {
    page: usize,
    flags: c_int,
}

impl Jemalloc {
    /// With jemalloc's defaults.
    #[must_use]
    pub fn new() -> Self {
        let page = page_size();
        Self {
            page,
            flags: MALLOCX_ALIGN(page),
        }
    }
}

impl Default for Jemalloc {
    fn default() -> Self {
        Self::new()
    }
}

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

impl Supply for Jemalloc {
    type Local<'a> = Self;

    fn local(&self) -> anyhow::Result<Self> {
        Ok(*self)
    }
}
