//! One page, owned.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use super::inner::PoolRef;
use crate::os::page_size;

/// A page of a pool; dropping it puts it back. Two words, `Send`, aligned to the page size and so fit for `O_DIRECT`.
///
/// ```
/// let pool = larder::pages::PagePool::new()?;
/// let mut page = pool.get()?;
/// page.fill(7);
/// std::thread::spawn(move || assert_eq!(page[4095], 7)).join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PageBuf {
    at: NonNull<u8>,
    pool: PoolRef,
}

// SAFETY: a page is plain bytes in the hands of one owner, as a boxed slice is.
unsafe impl Send for PageBuf {}
// SAFETY: as above.
unsafe impl Sync for PageBuf {}

impl PageBuf {
    /// # Safety
    /// The page is of this pool and in the hands of the caller, which gives it up to the buffer.
    #[inline]
    pub(super) unsafe fn new(at: NonNull<u8>, pool: PoolRef) -> Self {
        Self { at, pool }
    }

    pub(super) fn pool(&self) -> PoolRef {
        self.pool
    }

    /// The page as a pointer, which the caller puts back by [`PagePool::put_raw`](super::PagePool::put_raw) or leaks.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let page = pool.get()?.into_raw();
    /// assert!(pool.owns(page));
    /// // SAFETY: the page is ours, once.
    /// unsafe { pool.put_raw(page) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn into_raw(self) -> NonNull<u8> {
        ManuallyDrop::new(self).at
    }
}

impl Drop for PageBuf {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the page is the buffer's, and the buffer is no more.
        unsafe { self.pool.put(self.at) };
    }
}

impl Deref for PageBuf {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the page has this many bytes, all initialised by the kernel or a former owner, and is ours.
        unsafe { core::slice::from_raw_parts(self.at.as_ptr(), page_size()) }
    }
}

impl DerefMut for PageBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.at.as_ptr(), page_size()) }
    }
}

impl AsRef<[u8]> for PageBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for PageBuf {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl fmt::Debug for PageBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageBuf")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
