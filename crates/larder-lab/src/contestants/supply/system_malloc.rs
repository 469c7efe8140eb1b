//! The C library's malloc.

use std::ptr::{self, NonNull};

use super::{Supplier, Supply, page_size};

/// `posix_memalign` of one page and `free`, of the C library that the process runs with.
///
/// It has no aligned `calloc`, so a page of zeros is a page and a `memset`.
#[derive(Debug, Clone, Copy)]
pub struct SystemMalloc {
    page: usize,
}

impl SystemMalloc {
    /// The process's own malloc.
    #[must_use]
    pub fn new() -> Self {
        Self { page: page_size() }
    }
}

impl Default for SystemMalloc {
    fn default() -> Self {
        Self::new()
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

impl Supply for SystemMalloc {
    type Local<'a> = Self;

    fn local(&self) -> anyhow::Result<Self> {
        Ok(*self)
    }
}
