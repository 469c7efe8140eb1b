//! mimalloc as a supplier of pages.

use std::ptr::NonNull;

use super::{Supplier, Supply, page_size};

/// `mi_malloc_aligned` and `mi_free` of one page.
#[derive(Debug, Clone, Copy)]
pub struct Mimalloc {
    page: usize,
}

impl Mimalloc {
    /// With mimalloc's defaults.
    #[must_use]
    pub fn new() -> Self {
        Self { page: page_size() }
    }
}

impl Default for Mimalloc {
    fn default() -> Self {
        Self::new()
    }
}

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

impl Supply for Mimalloc {
    type Local<'a> = Self;

    fn local(&self) -> anyhow::Result<Self> {
        Ok(*self)
    }
}
