//! The pool of pages as its users see it.

use core::ptr::NonNull;
use std::sync::Arc;

use super::cluster_size::ClusterSize;
use super::error::PoolError;
use super::handle::PageHandle;
use super::helper::{self, HelperConfig};
use super::inner::{PoolRef, UPKEEP_PAGES};
use super::round;
use super::stats::PoolStats;
use super::{PageBuf, PageRun};
use crate::os::{OsError, Span, System};

/// A pool of pages. Shared between threads by reference or by [`Clone`], which is a second owner of the same pool.
///
/// See the [module](super) for how it works and which `get` to call.
///
/// ```
/// use larder::pages::PagePool;
/// let pool = PagePool::new()?;
/// let second = pool.clone();
/// std::thread::spawn(move || second.get().map(drop)).join().unwrap()?;
/// assert_eq!(pool.get()?.len(), pool.page_size());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PagePool {
    pub(super) inner: PoolRef,
}

impl PagePool {
    pub(super) fn from_inner(inner: PoolRef) -> Self {
        Self { inner }
    }

    /// A page with a former owner's contents. The cheapest get, for a consumer that overwrites the page.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let mut page = pool.get()?;
    /// page[..5].copy_from_slice(b"hello");        // the rest is whatever it was
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PoolError`]: the limit, the reservation, or the kernel.
    #[inline]
    pub fn get(&self) -> Result<PageBuf, PoolError> {
        // SAFETY: the page is this pool's and in no other hands.
        self.get_raw()
            .map(|page| unsafe { PageBuf::new(page, self.inner) })
    }

    /// A page of zeroes, zeroed now if it is not known to be zero: warm for a consumer that writes it.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// pool.get()?.fill(7);
    /// assert!(pool.get_zeroed()?.iter().all(|&byte| byte == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`get`](Self::get).
    #[inline]
    pub fn get_zeroed(&self) -> Result<PageBuf, PoolError> {
        // SAFETY: as in `get`.
        self.get_zeroed_raw()
            .map(|page| unsafe { PageBuf::new(page, self.inner) })
    }

    /// A page of zeroes, from the pre-zeroed stock if it has one (see [`start_helper`](Self::start_helper)): for a
    /// consumer that writes little of it or only reads.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// pool.get()?.fill(7);
    /// assert!(pool.get_zeroed_sparse()?.iter().all(|&byte| byte == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`get`](Self::get).
    #[inline]
    pub fn get_zeroed_sparse(&self) -> Result<PageBuf, PoolError> {
        let page = match self.inner.get_prezeroed() {
            Some(round) => self.inner.zero(round),
            None => self.get_zeroed_raw()?,
        };
        // SAFETY: as in `get`.
        Ok(unsafe { PageBuf::new(page, self.inner) })
    }

    /// `n` contiguous pages with a former owner's contents. Runs come straight from the clusters, under a lock: for
    /// buffers that live long, not for a fast path.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let run = pool.get_run(5)?;
    /// assert_eq!(run.len(), 5 * larder::os::page_size());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`get`](Self::get).
    pub fn get_run(&self, n: usize) -> Result<PageRun, PoolError> {
        self.take_run(n).map(|(run, _)| run)
    }

    /// `n` contiguous pages of zeroes.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// pool.get_run(3)?.fill(7);
    /// assert!(pool.get_run_zeroed(3)?.iter().all(|&byte| byte == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`get`](Self::get).
    pub fn get_run_zeroed(&self, n: usize) -> Result<PageRun, PoolError> {
        let (mut run, zero) = self.take_run(n)?;
        if !zero {
            self.inner.routine().zero_slice(&mut run);
        }
        Ok(run)
    }

    fn take_run(&self, n: usize) -> Result<(PageRun, bool), PoolError> {
        if n == 0 {
            return Err(PoolError::EmptyRun);
        }
        let taken = self.inner.clusters.take_run(n).or_else(|_| {
            // A page in stock may be the one missing between two free neighbours, or the one over the limit.
            self.inner.trim();
            self.inner.clusters.take_run(n)
        })?;
        let at = round::page(round::pack(
            self.inner.clusters.addr(taken.pages.start),
            false,
        ));
        // SAFETY: the pages were just taken out and are in no other hands.
        Ok((unsafe { PageRun::new(at, n, self.inner) }, taken.zero))
    }

    /// The reservation and the system under it, for callers that keep their own account of the pool's pages.
    pub(crate) fn ground(&self) -> (Span, Arc<dyn System>) {
        self.inner.clusters.ground()
    }

    /// Where the bytes [beside](PagePoolBuilder::beside) the pages are, if there are any.
    pub(crate) fn beside(&self) -> Option<Span> {
        self.inner.clusters.beside()
    }

    /// Address of the first of `n` neighbouring pages of which the caller keeps account, and whether all of them are known to
    /// be zero. They come back by [`put_spans`](Self::put_spans). Nothing is trimmed for it: the caller has more to give up
    /// than this pool knows.
    pub(crate) fn take_span(&self, n: usize) -> Result<(usize, bool), PoolError> {
        self.inner.clusters.take_span(n)
    }

    /// As [`take_span`](Self::take_span), of pages that are backed already; `None` when memory would have to grow for it.
    pub(crate) fn take_ready_span(&self, n: usize) -> Option<usize> {
        self.inner.clusters.take_ready_span(n)
    }

    /// Whether there are `n` neighbouring pages that are backed already; of more than a block's some may not be.
    pub(crate) fn has_span(&self, n: usize) -> bool {
        self.inner.clusters.has_span(n)
    }

    /// An error where the pool could not hold `n` neighbouring pages even if it had no other.
    pub(crate) fn could_hold(&self, n: usize) -> Result<(), PoolError> {
        self.inner.clusters.could_hold(n)
    }

    /// As [`take_span`](Self::take_span), at a multiple of `align` bytes, a power of two, and whether all of it is zero. It is not
    /// populated.
    pub(crate) fn take_large(&self, n: usize, align: usize) -> Result<(usize, bool), PoolError> {
        self.inner.clusters.take_large(n, align)
    }

    /// Makes a long run of pages zero by giving its memory back, where few of its pages have any; false where nothing was done.
    ///
    /// # Safety
    /// The `n` pages from `at` on are the caller's, and what they hold is not needed.
    pub(crate) unsafe fn renew(&self, at: NonNull<u8>, n: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.inner.clusters.renew(at.as_ptr() as usize, n) }
    }

    /// Takes the `n` pages from an address on, so that a run that ends there grows; false where one of them is in use, or the
    /// limit or the system refuses.
    pub(crate) fn take_span_at(&self, addr: usize, n: usize) -> bool {
        self.inner.clusters.take_span_at(addr, n)
    }

    /// Brings back what [`take_span`](Self::take_span) gave: first pages' addresses, and how many pages, unused since `since`.
    pub(crate) fn put_spans(&self, spans: impl Iterator<Item = (usize, usize)>, since: u64) {
        self.inner.clusters.put_spans(spans, since);
    }

    /// Records, until the value is dropped, that this thread will bring pages back: a caller that finds no page waits a
    /// while for them.
    pub(crate) fn moving(&self) -> impl Sized + '_ {
        self.inner.clusters.moving()
    }

    /// For a caller that is about to have `n` neighbouring pages backed: gives about `n` other pages back to the system, if
    /// many backed pages are free but no `n` of them are neighbours.
    pub(crate) fn make_room(&self, n: usize) {
        self.inner.clusters.make_room(n);
    }

    /// Bytes backed by memory, and bytes that are out, as [`stats`](Self::stats) has them.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let (backed, out) = self.inner.clusters.pages();
        (backed * self.page_size(), out * self.page_size())
    }

    /// Bytes backed by memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes().0
    }

    /// Bytes that may be backed.
    pub(crate) fn limit_bytes(&self) -> usize {
        let clusters = &self.inner.clusters;
        clusters.limit_pages().saturating_mul(clusters.page_size())
    }

    /// Does the upkeep if it is due, as a get that finds its magazines empty does.
    pub(crate) fn upkeep_if_due(&self, now: u64) {
        self.inner.upkeep_if_due(now);
    }

    /// The upkeep of an interval that ends now: within a call that has other work, or of `all` that is unused.
    pub(crate) fn upkeep(&self, now: u64, all: bool) {
        let most = if all { usize::MAX } else { UPKEEP_PAGES };
        self.inner.upkeep(now, most);
    }

    /// Gives about so many bytes of free pages back, however young they are. Returns how many went.
    pub(crate) fn release_free(&self, bytes: usize) -> usize {
        let pages = bytes.div_ceil(self.page_size());
        self.inner.clusters.release_free(pages) * self.page_size()
    }

    /// A page as a pointer, for callers that keep their own account (C, intrusive structures).
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let page = pool.get_raw()?;
    /// // SAFETY: the page is ours, once; afterwards nothing uses it.
    /// unsafe {
    ///     page.write_bytes(7, pool.page_size());
    ///     pool.put_raw(page);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`get`](Self::get).
    #[inline]
    pub fn get_raw(&self) -> Result<NonNull<u8>, PoolError> {
        self.inner.get_round().map(round::page)
    }

    /// A page of zeroes as a pointer.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let page = pool.get_zeroed_raw()?;
    /// // SAFETY: the page is ours, once; afterwards nothing uses it.
    /// unsafe {
    ///     assert_eq!(page.read(), 0);
    ///     pool.put_raw(page);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`get`](Self::get).
    #[inline]
    pub fn get_zeroed_raw(&self) -> Result<NonNull<u8>, PoolError> {
        self.inner.get_round().map(|round| self.inner.zero(round))
    }

    /// Puts a page back that a raw get returned, or [`PageBuf::into_raw`].
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let page = pool.get_raw()?;
    /// // SAFETY: the page is ours, once; afterwards nothing uses it.
    /// unsafe { pool.put_raw(page) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// The page came from this pool, is in no other hands, and is not used afterwards.
    #[inline]
    pub unsafe fn put_raw(&self, page: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { self.inner.put(page) };
    }

    /// Whether an address is the beginning of a page of this pool's reservation, in use or not. Two comparisons and a
    /// mask: for callers that take pointers from elsewhere (C).
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let page = pool.get_raw()?;
    /// assert!(pool.owns(page));
    /// assert!(!pool.owns((&mut 0_u8).into()));
    /// # // SAFETY: the page is ours, once.
    /// # unsafe { pool.put_raw(page) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn owns(&self, page: NonNull<u8>) -> bool {
        let addr = page.as_ptr() as usize;
        addr & (self.page_size() - 1) == 0 && self.inner.clusters.contains(addr)
    }

    /// A handle: a magazine of a single owner over this pool.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let mut handle = pool.handle()?;
    /// std::thread::spawn(move || handle.get().map(drop)).join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the system has no memory for magazines.
    pub fn handle(&self) -> Result<PageHandle, OsError> {
        PageHandle::new(self.inner)
    }

    /// Pages of a cluster from now on.
    ///
    /// ```
    /// # use larder::pages::{ClusterSize, PagePool};
    /// let pool = PagePool::builder().cluster(ClusterSize::pages(48)?).build()?;
    /// assert_eq!(pool.cluster_pages(), 48);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cluster_pages(&self) -> usize {
        self.inner.clusters.cluster_pages()
    }

    /// Changes the size of future clusters. From any thread, at any time.
    ///
    /// ```
    /// use larder::pages::{ClusterSize, PagePool};
    /// let pool = PagePool::new()?;
    /// pool.set_cluster(ClusterSize::pages(24)?);
    /// assert_eq!(pool.cluster_pages(), 24);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_cluster(&self, size: ClusterSize) {
        let pages = size.or(self.inner.measured).resolve();
        self.inner.clusters.set_cluster_pages(pages);
    }

    /// Changes the limit on held bytes. A pool that holds more takes nothing new, and keeps the excess until it goes back by
    /// upkeep or by [`trim`](Self::trim).
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// pool.set_limit_bytes(2 * pool.page_size());
    /// assert!(pool.get_run(3).is_err());
    /// assert!(pool.get_run(2).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_limit_bytes(&self, bytes: usize) {
        self.inner
            .clusters
            .set_limit_pages(bytes / self.page_size());
    }

    /// Bytes of a page.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// assert_eq!(pool.page_size(), larder::os::page_size());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.inner.clusters.page_size()
    }

    /// Gives back what an interval did not need: call it now and then where no helper runs and gets are rare. Returns
    /// bytes given back. Free pages beside pages in use go in runs of at least four, after two calls a decay time apart.
    ///
    /// ```
    /// use std::time::Duration;
    /// let pool = larder::pages::PagePool::builder().decay(Duration::ZERO).build()?;
    /// drop(pool.get_run(64)?);
    /// let held = pool.stats().held_bytes;
    /// let back = pool.maintain() + pool.maintain();
    /// assert!(back > 0 && pool.stats().held_bytes == held - back);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn maintain(&self) -> usize {
        self.inner.maintain()
    }

    /// Gives back everything that is not in use, now. Returns bytes given back. Every free page goes, however few lie
    /// together; of a pool of huge pages, only blocks of 64 pages that are free as a whole.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// drop(pool.get()?);
    /// pool.trim();
    /// assert_eq!(pool.stats().out_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) -> usize {
        self.inner.trim()
    }

    /// Starts the helper thread, or replaces it: maintenance without a caller, a pre-zeroed stock, pages populated ahead of
    /// need. It runs at the lowest priority within a CPU budget, and what it costs is in the stats.
    ///
    /// ```
    /// use larder::pages::{HelperConfig, PagePool};
    /// let pool = PagePool::new()?;
    /// pool.start_helper(HelperConfig { prezero_pages: 64, ..HelperConfig::default() })?;
    /// assert!(pool.start_helper(HelperConfig { cpu_budget: 2.0, ..HelperConfig::default() }).is_err());
    /// pool.stop_helper();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start_helper(&self, config: HelperConfig) -> std::io::Result<()> {
        helper::start(self.inner, config)
    }

    /// Stops the helper thread if there is one, and waits for it.
    ///
    /// ```
    /// # use larder::pages::{HelperConfig, PagePool};
    /// # let pool = PagePool::new()?;
    /// pool.start_helper(HelperConfig::default())?;
    /// pool.stop_helper();
    /// pool.stop_helper();                         // there is none any more
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_helper(&self) {
        self.inner.stop_helper();
    }

    /// What the pool has done and holds.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let run = pool.get_run(5)?;
    /// assert_eq!(pool.stats().out_bytes, run.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.inner.stats()
    }
}

impl Clone for PagePool {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.own(),
        }
    }
}

impl Drop for PagePool {
    fn drop(&mut self) {
        self.inner.disown();
    }
}
