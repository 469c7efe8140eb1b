//! A magazine of pages for a single owner.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::PageBuf;
use super::error::PoolError;
use super::inner::PoolRef;
use super::round;
use crate::magazine::{Stock, StockHandle};
use crate::os::OsError;

/// A magazine of pages behind `&mut`: no lock, no atomic, no thread-local, and it can move between threads. Pages
/// may be put through the pool or another handle instead, and the other way round. It keeps its pool open.
///
/// ```
/// let pool = larder::pages::PagePool::new()?;
/// let mut handle = pool.handle()?;
/// let page = handle.get()?;
/// handle.put(page);           // dropping the page would put it into the CPU's stock instead
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PageHandle {
    /// Dropped by hand, before its pool may go. The lifetime stands for that of `pool`.
    handle: ManuallyDrop<StockHandle<'static>>,
    pool: PoolRef,
}

impl PageHandle {
    pub(super) fn new(pool: PoolRef) -> Result<Self, OsError> {
        let stock: *const Stock = &raw const pool.stock;
        // SAFETY: the stock stays where it is as long as the pool has an owner, which this handle becomes below.
        let handle = StockHandle::new(unsafe { &*stock })?;
        Ok(Self {
            handle: ManuallyDrop::new(handle),
            pool: pool.own(),
        })
    }

    /// A page with a former owner's contents.
    ///
    /// ```
    /// # let pool = larder::pages::PagePool::new()?;
    /// let mut handle = pool.handle()?;
    /// let mut page = handle.get()?;
    /// page.fill(7);
    /// handle.put(page);
    /// assert_eq!(handle.get()?[0], 7, "the page that was put last");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`PagePool::get`](super::PagePool::get).
    #[inline]
    pub fn get(&mut self) -> Result<PageBuf, PoolError> {
        // SAFETY: the page is this pool's and in no other hands.
        self.get_raw()
            .map(|page| unsafe { PageBuf::new(page, self.pool) })
    }

    /// A page of zeroes.
    ///
    /// ```
    /// # let pool = larder::pages::PagePool::new()?;
    /// # let mut handle = pool.handle()?;
    /// let mut page = handle.get()?;
    /// page.fill(7);
    /// handle.put(page);
    /// assert!(handle.get_zeroed()?.iter().all(|&byte| byte == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`PagePool::get`](super::PagePool::get).
    #[inline]
    pub fn get_zeroed(&mut self) -> Result<PageBuf, PoolError> {
        let round = self.get_round()?;
        // SAFETY: as in `get`.
        Ok(unsafe { PageBuf::new(self.pool.zero(round), self.pool) })
    }

    /// Puts a page into this handle; a page of another pool goes back to its own.
    ///
    /// ```
    /// # let pool = larder::pages::PagePool::new()?;
    /// let mut handle = pool.handle()?;
    /// let page = pool.get()?;
    /// handle.put(page);
    /// assert_eq!(handle.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn put(&mut self, page: PageBuf) {
        if page.pool() == self.pool {
            let page = page.into_raw();
            // SAFETY: the buffer owned the page and is gone.
            unsafe { self.put_raw(page) };
        }
    }

    /// A page as a pointer.
    ///
    /// ```
    /// # let pool = larder::pages::PagePool::new()?;
    /// let mut handle = pool.handle()?;
    /// let page = handle.get_raw()?;
    /// // SAFETY: the page is ours, once.
    /// unsafe {
    ///     page.write(7);
    ///     handle.put_raw(page);
    /// }
    /// assert_eq!(handle.get_raw()?, page, "the page that was put last");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`PagePool::get`](super::PagePool::get).
    #[inline]
    pub fn get_raw(&mut self) -> Result<NonNull<u8>, PoolError> {
        self.get_round().map(round::page)
    }

    #[inline]
    fn get_round(&mut self) -> Result<usize, PoolError> {
        match self.handle.try_get() {
            Some(round) => Ok(round),
            None => self.get_slow(),
        }
    }

    #[cold]
    fn get_slow(&mut self) -> Result<usize, PoolError> {
        let pool = self.pool;
        pool.upkeep_if_due(crate::os::coarse_now());
        pool.retry(|| self.handle.get(&pool.clusters))
    }

    /// Puts a page back that a raw get returned.
    ///
    /// [`get_raw`](Self::get_raw) shows it.
    ///
    /// # Safety
    /// The page came from this handle's pool, is in no other hands, and is not used afterwards.
    #[inline]
    pub unsafe fn put_raw(&mut self, page: NonNull<u8>) {
        self.handle.put(
            round::pack(page.as_ptr() as usize, false),
            &self.pool.clusters,
        );
    }

    /// Pages in this handle.
    ///
    /// ```
    /// # let pool = larder::pages::PagePool::new()?;
    /// let mut handle = pool.handle()?;
    /// handle.put(pool.get()?);
    /// handle.put(pool.get()?);
    /// assert_eq!(handle.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.handle.len()
    }

    /// True when this handle has no page in stock.
    ///
    /// ```
    /// # let pool = larder::pages::PagePool::new()?;
    /// let mut handle = pool.handle()?;
    /// assert!(handle.is_empty());
    /// handle.put(pool.get()?);
    /// assert!(!handle.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handle.is_empty()
    }
}

impl Drop for PageHandle {
    fn drop(&mut self) {
        // SAFETY: dropped once, here; the pool is still open and goes only afterwards.
        unsafe { ManuallyDrop::drop(&mut self.handle) };
        self.pool.disown();
    }
}
