//! A stock of objects of one's own.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::cache::CacheRef;
use super::error::{CreateError, GetError};
use super::raw::{RawCache, object, unfold};
use super::supply::Failure;
use crate::magazine::{Handle, Stock};

/// Two magazines of objects behind `&mut`: no lock, no atomic, no thread-local, and it can move between threads.
/// Objects may be put through the cache or another handle instead, and the other way round. It keeps its cache alive.
///
/// ```
/// use std::alloc::Layout;
/// use larder::objects::{Family, RawCache};
/// let family = Family::new()?;
/// let cache = RawCache::new(&family, Layout::new::<u64>())?;
/// let mut handle = cache.handle()?;
/// let object = handle.get()?;
/// // SAFETY: taken above, put once.
/// unsafe { handle.put(object) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RawHandle {
    /// Dropped by hand, before its cache may go. The lifetime stands for that of `cache`.
    handle: ManuallyDrop<Handle<'static>>,
    /// An owner of the same cache.
    cache: RawCache,
}

impl RawHandle {
    pub(super) fn new(cache: &RawCache) -> Result<Self, CreateError> {
        let shared: CacheRef = cache.cache;
        let stock: *const Stock = &raw const shared.stock;
        // SAFETY: the stock stays where it is as long as the cache has an owner, which this handle becomes below.
        let handle = Handle::new(unsafe { &*stock })?;
        Ok(Self {
            handle: ManuallyDrop::new(handle),
            cache: RawCache {
                cache: shared.own(),
                construct: cache.construct,
            },
        })
    }

    /// An object: see [`RawCache::get`].
    ///
    /// # Errors
    /// See [`GetError`].
    #[inline]
    pub fn get(&mut self) -> Result<NonNull<u8>, GetError> {
        match self.handle.try_get() {
            Some(round) => Ok(object(round)),
            None => self.get_slow(),
        }
    }

    /// An object from the loaded magazine, and nothing more.
    #[inline]
    pub fn try_get(&mut self) -> Option<NonNull<u8>> {
        self.handle.try_get().map(object)
    }

    /// Puts an object back. Debug builds check the pointer.
    ///
    /// # Safety
    /// See [`RawCache::put`].
    #[inline]
    pub unsafe fn put(&mut self, object: NonNull<u8>) {
        if cfg!(debug_assertions) && self.cache.refuses(object) {
            return;
        }
        let cache = &self.cache;
        self.handle.put(object.as_ptr() as usize, &cache.supply());
    }

    /// The cache.
    #[must_use]
    pub fn cache(&self) -> &RawCache {
        &self.cache
    }

    /// Objects in this handle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.handle.len()
    }

    /// True when this handle has no object in stock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handle.is_empty()
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&mut self) -> Result<NonNull<u8>, GetError> {
        let (handle, cache) = (&mut self.handle, &self.cache);
        cache
            .cache
            .patiently(|| handle.get(&cache.supply()), Failure::is_short)
            .map(object)
            .map_err(unfold)
    }
}

impl Drop for RawHandle {
    fn drop(&mut self) {
        // SAFETY: dropped once, here; the cache is alive and goes only afterwards, with its field.
        unsafe { ManuallyDrop::drop(&mut self.handle) };
    }
}
