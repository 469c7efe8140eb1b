//! Anonymous mappings through libc directly, with a count of the calls.

use std::cell::Cell;
use std::ptr::{self, NonNull};

/// Makes and removes anonymous mappings, and counts the system calls that this took.
///
/// It goes through `libc` and not through a wrapper, because the call itself is what is measured.
#[derive(Debug, Default)]
pub struct Mapper {
    calls: Cell<u64>,
}

impl Mapper {
    /// Nothing mapped yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// System calls made so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }

    fn count(&self) {
        self.calls.set(self.calls.get() + 1);
    }

    /// A private anonymous mapping of `bytes`; `None` when the kernel refuses. With `populate` its pages are
    /// present on return.
    #[inline]
    pub fn map(&self, bytes: usize, populate: bool) -> Option<NonNull<u8>> {
        self.count();
        let mut flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        if populate {
            flags |= libc::MAP_POPULATE;
        }
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            None
        } else {
            NonNull::new(address.cast())
        }
    }

    /// Removes `bytes` of mapping from `address` on; false when the kernel refuses (too many mappings after a split).
    ///
    /// # Safety
    /// The range was mapped by [`Mapper::map`] and is not used any more.
    #[inline]
    pub unsafe fn unmap(&self, address: NonNull<u8>, bytes: usize) -> bool {
        self.count();
        // SAFETY: the caller owns the range and gives it up.
        unsafe { libc::munmap(address.as_ptr().cast(), bytes) == 0 }
    }

    /// Gives the pages of a range back to the kernel and keeps the range (`MADV_DONTNEED`).
    ///
    /// # Safety
    /// The range was mapped by [`Mapper::map`]; its contents become zero.
    #[inline]
    pub unsafe fn forget(&self, address: NonNull<u8>, bytes: usize) -> bool {
        self.count();
        // SAFETY: the caller owns the range and gives its contents up.
        unsafe { libc::madvise(address.as_ptr().cast(), bytes, libc::MADV_DONTNEED) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::supply::page_size;

    #[test]
    fn counts_every_call_and_hands_out_zeros_again_after_forget() {
        let mapper = Mapper::new();
        let page = mapper.map(page_size(), false).expect("a page");
        // SAFETY: one mapped page of ours.
        unsafe {
            page.as_ptr().write_bytes(7, page_size());
            assert!(mapper.forget(page, page_size()));
            assert_eq!(page.as_ptr().read(), 0);
            assert!(mapper.unmap(page, page_size()));
        }
        assert_eq!(mapper.calls(), 3);
    }

    #[test]
    fn a_mapping_that_cannot_be_is_none() {
        assert_eq!(Mapper::new().map(usize::MAX / 2, false), None);
    }
}
