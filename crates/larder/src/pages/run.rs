//! Contiguous pages, owned.

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use super::inner::PoolRef;

/// Neighbouring pages of a pool; dropping it puts them back.
///
/// ```
/// let pool = larder::pages::PagePool::new()?;
/// let mut run = pool.get_run_zeroed(3)?;
/// run[5000] = 1;
/// assert_eq!(run.pages(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PageRun {
    at: NonNull<u8>,
    pages: usize,
    pool: PoolRef,
}

// SAFETY: pages are plain bytes in the hands of one owner, as a boxed slice is.
unsafe impl Send for PageRun {}
// SAFETY: as above.
unsafe impl Sync for PageRun {}

impl PageRun {
    /// # Safety
    /// The pages are of this pool and in the hands of the caller, which gives them up to the run.
    pub(super) unsafe fn new(at: NonNull<u8>, pages: usize, pool: PoolRef) -> Self {
        Self { at, pages, pool }
    }

    /// The first byte, for callers that order reads and writes themselves (C). It stays valid until the run is dropped.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let run = pool.get_run_zeroed(2)?;
    /// // SAFETY: the run has two pages, and no other code writes.
    /// assert_eq!(unsafe { run.as_non_null().read() }, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn as_non_null(&self) -> NonNull<u8> {
        self.at
    }

    /// Number of pages.
    ///
    /// ```
    /// let run = larder::pages::PagePool::new()?.get_run(3)?;
    /// assert_eq!((run.pages(), run.len()), (3, 3 * larder::os::page_size()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages
    }
}

impl Drop for PageRun {
    fn drop(&mut self) {
        let (addr, pages) = (self.at.as_ptr() as usize, self.pages);
        self.pool
            .put_slow(|inner| inner.clusters.put_run(addr, pages));
    }
}

impl Deref for PageRun {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the run has this many bytes, all initialised by the kernel or a former owner, and is ours.
        unsafe {
            core::slice::from_raw_parts(
                self.at.as_ptr(),
                self.pages * self.pool.clusters.page_size(),
            )
        }
    }
}

impl DerefMut for PageRun {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
        unsafe {
            core::slice::from_raw_parts_mut(
                self.at.as_ptr(),
                self.pages * self.pool.clusters.page_size(),
            )
        }
    }
}

impl AsRef<[u8]> for PageRun {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for PageRun {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl fmt::Debug for PageRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageRun")
            .field("at", &self.at)
            .field("pages", &self.pages)
            .finish_non_exhaustive()
    }
}
