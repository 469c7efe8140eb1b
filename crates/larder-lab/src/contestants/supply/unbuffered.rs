//! One mmap per page, one munmap per page.

use std::ptr::NonNull;

use super::{Mapper, Supplier, page_size};

/// Program 1 of Walfield 2001: every page is its own mapping, and nothing is held between pages.
#[derive(Debug)]
pub struct Unbuffered {
    page: usize,
    mapper: Mapper,
}

impl Default for Unbuffered {
    fn default() -> Self {
        Self {
            page: page_size(),
            mapper: Mapper::new(),
        }
    }
}

impl Supplier for Unbuffered {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        self.mapper.map(self.page, false)
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        self.get()
    }

    #[inline]
    unsafe fn put(&mut self, page: NonNull<u8>) {
        // SAFETY: the page was mapped by `get` and the caller gives it up.
        unsafe { self.mapper.unmap(page, self.page) };
    }

    fn system_calls(&self) -> Option<u64> {
        Some(self.mapper.calls())
    }
}
