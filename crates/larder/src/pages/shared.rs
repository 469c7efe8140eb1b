//! Pages that another process reads in place.

use std::os::fd::{AsFd, BorrowedFd};

use super::error::PoolError;
use super::pool::PagePool;
use crate::os::{Linux, Span, System, map_sealed};

impl PagePool {
    /// The descriptor of the memfd that the pages are in, for another process to map: `None` unless the pool was built
    /// [`shared`](super::PagePoolBuilder::shared). It goes over a Unix socket (`SCM_RIGHTS`) or to a child that inherits it.
    ///
    /// ```
    /// use larder::pages::PagePool;
    /// assert!(PagePool::new()?.descriptor().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// Where in the memfd a page of this pool lies, in bytes: what the other process needs to find it. `None` for an address outside
    /// of the pool's reservation.
    ///
    /// ```
    /// use larder::pages::PagePool;
    /// let pool = PagePool::builder().shared().limit_bytes(1 << 20).build()?;
    /// let page = pool.get()?;
    /// assert!(pool.offset(&page).is_some_and(|offset| offset % pool.page_size() == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn offset(&self, page: &[u8]) -> Option<usize> {
        let (span, _) = self.ground();
        let offset = (page.as_ptr() as usize).checked_sub(span.addr())?;
        (offset < span.len).then_some(offset)
    }
}

/// The pages of another process's pool, mapped to be read.
///
/// The pool's process fills a page, and sends its [`offset`](PagePool::offset); this one reads the page where it is, and answers when it
/// has done so. Until then the other keeps the page. If this process ends without an answer, the other sees its socket close, and drops
/// the pages that it kept. If the other process ends first, the mapping stays: the memfd lives as long as it is mapped, and its size
/// is sealed, so no read faults.
///
/// ```
/// use larder::pages::{PagePool, SharedPages};
/// let pool = PagePool::builder().shared().limit_bytes(1 << 20).build()?;
/// let mut page = pool.get()?;
/// page[..5].copy_from_slice(b"hello");
/// // In the other process, which got the descriptor and the number:
/// let (descriptor, offset) = (pool.descriptor().ok_or("not shared")?, pool.offset(&page).ok_or("not of this pool")?);
/// let pages = SharedPages::map(descriptor)?;
/// // SAFETY: the page is kept and not written until this process answers.
/// let read = unsafe { pages.page(offset) }.ok_or("no such page")?;
/// assert_eq!(&read[..5], b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedPages {
    span: Span,
}

impl SharedPages {
    /// Maps a pool's memfd, to read it.
    ///
    /// # Errors
    /// [`PoolError::System`]: `EPERM` for a memfd whose size is not sealed, since a shorter file would end the reader; `EINVAL` for one
    /// that is not whole pages, and for a descriptor of anything else; or there are no addresses.
    pub fn map(descriptor: impl AsFd) -> Result<Self, PoolError> {
        Ok(Self {
            span: map_sealed(descriptor)?,
        })
    }

    /// The page at an offset; `None` where no page begins. It reads as zero if the pool has given it back.
    ///
    /// # Safety
    /// No process writes the page while the slice lives. The pool's process promises that by keeping the page until it has an answer.
    #[must_use]
    pub unsafe fn page(&self, offset: usize) -> Option<&[u8]> {
        let page = crate::os::page_size();
        let fits = offset.is_multiple_of(page) && offset < self.span.len;
        fits.then(|| {
            let at = self.span.part(offset, page).at;
            // SAFETY: within the mapping, whose size is sealed and a multiple of the page size; the caller promises that it is not written.
            unsafe { core::slice::from_raw_parts(at.as_ptr(), page) }
        })
    }
}

impl Drop for SharedPages {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and the slices borrow this value. A refusal leaks addresses.
        let _ = unsafe { Linux.release(self.span) };
    }
}
