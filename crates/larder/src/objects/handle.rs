//! A stock of objects of one's own.

use core::ptr::NonNull;

use super::error::GetError;
use super::raw::{RawCache, object, unfold};
use super::supply::Failure;
use crate::magazine::Pair;

/// Two magazines of objects behind `&mut`: no lock, no atomic, no thread-local, and it can move between threads.
/// Objects may be put through the cache or another handle instead, and the other way round. It keeps its cache alive.
///
/// A new handle has no magazines; it takes them when it first needs them. A get takes 6 instructions and a put 6, beside
/// the call (`docs/objects.md` says how that was counted).
///
/// ```
/// use std::alloc::Layout;
/// use larder::objects::{Family, RawCache};
/// let family = Family::new()?;
/// let cache = RawCache::new(&family, Layout::new::<u64>())?;
/// let mut handle = cache.handle();
/// let object = handle.get()?;
/// // SAFETY: taken above, put once.
/// unsafe { handle.put(object) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RawHandle {
    pair: Pair,
    /// An owner of the same cache.
    cache: RawCache,
}

impl RawHandle {
    pub(super) fn new(cache: &RawCache) -> Self {
        Self {
            pair: Pair::none(),
            cache: RawCache {
                cache: cache.cache.own(),
                construct: cache.construct,
            },
        }
    }

    /// An object: see [`RawCache::get`].
    ///
    /// # Errors
    /// See [`GetError`].
    #[inline]
    pub fn get(&mut self) -> Result<NonNull<u8>, GetError> {
        match self.pair.try_get() {
            Some(round) => Ok(object(round)),
            None => self.get_slow(),
        }
    }

    /// An object, or null where [`get`](Self::get) has an error: for callers who do not look at it.
    #[inline]
    pub fn get_or_null(&mut self) -> *mut u8 {
        match self.pair.try_get() {
            Some(round) => round as *mut u8,
            None => self.get_slow_or_null(),
        }
    }

    /// An object from the loaded magazine, and nothing more.
    #[inline]
    pub fn try_get(&mut self) -> Option<NonNull<u8>> {
        self.pair.try_get().map(object)
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
        if !self.pair.try_put(object.as_ptr() as usize) {
            self.put_slow(object);
        }
    }

    /// The cache.
    #[must_use]
    pub fn cache(&self) -> &RawCache {
        &self.cache
    }

    /// Objects in this handle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pair.len()
    }

    /// True when this handle has no object in stock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives both magazines to the depot: constant time, no object is looked at. The handle takes others when it needs
    /// them. For whoever rests for long, since nobody else can see what is in here.
    pub fn flush(&mut self) {
        self.pair.give_up(&self.cache.cache.stock);
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&mut self) -> Result<NonNull<u8>, GetError> {
        let (pair, cache) = (&mut self.pair, &self.cache);
        cache
            .cache
            .patiently(
                || pair.get(&cache.cache.stock, &cache.supply()),
                Failure::is_short,
            )
            .map(object)
            .map_err(unfold)
    }

    #[cold]
    #[inline(never)]
    fn get_slow_or_null(&mut self) -> *mut u8 {
        self.get_slow()
            .map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&mut self, object: NonNull<u8>) {
        let shared = &self.cache.cache;
        shared.inner().upkeep_if_due();
        if cfg!(debug_assertions) || !self.cache.refuses(object) {
            let round = object.as_ptr() as usize;
            self.pair.put(round, &shared.stock, &self.cache.supply());
        }
    }
}

impl Drop for RawHandle {
    /// Constant time; see [`flush`](Self::flush).
    fn drop(&mut self) {
        self.flush();
    }
}
