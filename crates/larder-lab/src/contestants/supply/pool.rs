//! The library's page pool: per CPU and per handle.

use std::ptr::NonNull;

use larder::pages::{ClusterSize, PageHandle, PagePool};

use super::{Supplier, Supply};

/// A page pool with default settings, except for the cluster size where one is given. The environment is not looked
/// at: a setting of the user's must not change what is compared.
///
/// # Errors
/// A cluster size out of range, and what the pool needs and does not get.
fn build(cluster_pages: Option<usize>) -> anyhow::Result<PagePool> {
    let builder = PagePool::builder().ignore_environment();
    let builder = match cluster_pages {
        Some(pages) => builder.cluster(ClusterSize::pages(pages)?),
        None => builder,
    };
    Ok(builder.build()?)
}

/// `PagePool::get_raw` and `put_raw`: this CPU's magazines.
#[derive(Debug)]
pub struct PoolPerCpu(PagePool);

impl PoolPerCpu {
    /// A new pool; `None` leaves the cluster size to the library.
    ///
    /// # Errors
    /// A cluster size out of range, and what the pool needs and does not get.
    pub fn new(cluster_pages: Option<usize>) -> anyhow::Result<Self> {
        build(cluster_pages).map(Self)
    }
}

/// One thread's way into a shared pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolRef<'a>(&'a PagePool);

impl Supplier for PoolRef<'_> {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        self.0.get_raw().ok()
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        self.0.get_zeroed_raw().ok()
    }

    #[inline]
    unsafe fn put(&mut self, page: NonNull<u8>) {
        // SAFETY: the caller gives up a page of this pool.
        unsafe { self.0.put_raw(page) };
    }

    fn system_calls(&self) -> Option<u64> {
        Some(self.0.stats().system_calls())
    }
}

impl Supply for PoolPerCpu {
    type Local<'a> = PoolRef<'a>;

    fn local(&self) -> anyhow::Result<PoolRef<'_>> {
        Ok(PoolRef(&self.0))
    }
}

/// `PageHandle::get_raw` and `put_raw`: a magazine of the thread's own.
#[derive(Debug)]
pub struct PoolHandles(PagePool);

impl PoolHandles {
    /// A new pool; `None` leaves the cluster size to the library.
    ///
    /// # Errors
    /// A cluster size out of range, and what the pool needs and does not get.
    pub fn new(cluster_pages: Option<usize>) -> anyhow::Result<Self> {
        build(cluster_pages).map(Self)
    }
}

/// A handle and the pool that it belongs to.
#[derive(Debug)]
pub struct PoolHandle<'a> {
    handle: PageHandle,
    pool: &'a PagePool,
}

impl Supplier for PoolHandle<'_> {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        self.handle.get_raw().ok()
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        self.handle.get_zeroed().ok().map(|page| page.into_raw())
    }

    #[inline]
    unsafe fn put(&mut self, page: NonNull<u8>) {
        // SAFETY: the caller gives up a page of this pool.
        unsafe { self.handle.put_raw(page) };
    }

    fn system_calls(&self) -> Option<u64> {
        Some(self.pool.stats().system_calls())
    }
}

impl Supply for PoolHandles {
    type Local<'a> = PoolHandle<'a>;

    fn local(&self) -> anyhow::Result<PoolHandle<'_>> {
        Ok(PoolHandle {
            handle: self.0.handle()?,
            pool: &self.0,
        })
    }
}
