//! The library's object caches: objects of one size, per CPU and per handle.

use std::alloc::Layout;
use std::ptr::NonNull;

use anyhow::ensure;
use larder::objects::{Family, RawCache, RawHandle};
use larder::os::rseq::{Mode, mode};

use super::path::by_rseq;
use super::{ALIGN, Heap, Heaps};

/// A cache for blocks of one size, which threads reach through handles of their own, or without.
#[derive(Debug)]
pub struct Objects<const BY_HANDLE: bool> {
    cache: RawCache,
    bytes: usize,
}

/// `RawCache::get` and `put`: this CPU's magazines.
pub type ObjectCache = Objects<false>;

/// `RawHandle::get` and `put`: a magazine of the thread's own.
pub type ObjectHandles = Objects<true>;

/// Whether the per-CPU path is there.
///
/// # Errors
/// Why it is not.
pub fn per_cpu() -> Result<(), String> {
    match mode() {
        Mode::PerCpu(_) => Ok(()),
        Mode::Locked(why) => Err(format!(
            "restartable sequences are not there ({why}), so that what would be measured is the locked fallback"
        )),
    }
}

/// The share of a cache's gets that took the per-CPU path.
///
/// # Errors
/// The path was not taken.
pub fn per_cpu_share(cache: &RawCache) -> anyhow::Result<Option<f64>> {
    let stats = cache.stats();
    by_rseq(cache.family().mode(), stats.hits, stats.misses)
}

impl<const BY_HANDLE: bool> Objects<BY_HANDLE> {
    /// Over a cache that was made otherwise, for instance with a constructor.
    #[must_use]
    pub fn over(cache: RawCache, bytes: usize) -> Self {
        Self { cache, bytes }
    }

    /// A cache for blocks of this size, in a family of its own with default settings.
    ///
    /// # Errors
    /// A size that a cache cannot have, and what it needs and does not get.
    pub fn new(bytes: usize) -> anyhow::Result<Self> {
        let layout = Layout::from_size_align(bytes, ALIGN.min(bytes.next_power_of_two()))?;
        Ok(Self::over(RawCache::new(&Family::new()?, layout)?, bytes))
    }
}

/// A thread's way into a cache.
#[derive(Debug, Clone, Copy)]
pub struct CacheRef<'a>(&'a ObjectCache);

impl Heap for CacheRef<'_> {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        debug_assert!(bytes <= self.0.bytes);
        self.0.cache.get().ok()
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        // SAFETY: from this cache, given up by the caller.
        unsafe { self.0.cache.put(block) };
    }
}

impl Heaps for ObjectCache {
    type Local<'a> = CacheRef<'a>;

    fn local(&self) -> anyhow::Result<CacheRef<'_>> {
        Ok(CacheRef(self))
    }

    fn path_taken(&self) -> anyhow::Result<Option<f64>> {
        per_cpu_share(&self.cache)
    }
}

/// A thread's handle.
#[derive(Debug)]
pub struct HandleLocal {
    handle: RawHandle,
    bytes: usize,
}

impl Heap for HandleLocal {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        debug_assert!(bytes <= self.bytes);
        self.handle.get().ok()
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        // SAFETY: from this handle's cache, given up by the caller.
        unsafe { self.handle.put(block) };
    }
}

impl Heaps for ObjectHandles {
    type Local<'a> = HandleLocal;

    fn local(&self) -> anyhow::Result<HandleLocal> {
        Ok(HandleLocal {
            handle: self.cache.handle(),
            bytes: self.bytes,
        })
    }

    fn path_taken(&self) -> anyhow::Result<Option<f64>> {
        // A get that reached the CPU's magazines would be counted there.
        let hits = self.cache.stats().hits;
        ensure!(
            hits == 0,
            "{hits} objects came from a CPU's magazines and not from the handle"
        );
        Ok(None)
    }
}
