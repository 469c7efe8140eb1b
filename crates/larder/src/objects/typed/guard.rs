//! A value in use.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use super::super::cache::CacheRef;

/// A value of an [`ObjectCache`](super::ObjectCache). Dropping it puts the value back as it is; its `Drop` does not run.
///
/// ```
/// use larder::objects::{Family, ObjectCache};
/// let cache = ObjectCache::new(&Family::new()?, Vec::new)?;
/// let mut handle = cache.handle();
/// let mut value = handle.get()?;
/// value.push(7);
/// handle.put(value);
/// assert_eq!(*handle.get()?, [7], "it is as it was left");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Object<'c, T> {
    at: NonNull<T>,
    cache: CacheRef,
    /// Invariant: the value goes back to a cache of exactly this `T`, whatever the guard was taken for in between.
    of: PhantomData<(&'c (), *mut T)>,
}

// SAFETY: the guard owns the value as a box would; the cache behind may be used from any thread.
unsafe impl<T: Send> Send for Object<'_, T> {}
// SAFETY: a shared guard gives out `&T` and nothing more.
unsafe impl<T: Sync> Sync for Object<'_, T> {}

impl<T> Object<'_, T> {
    /// # Safety
    /// The value is constructed, of that cache, and given up to the guard; the cache has an owner as long as the guard lives.
    #[inline]
    pub(super) unsafe fn new(at: NonNull<T>, cache: CacheRef) -> Self {
        Self {
            at,
            cache,
            of: PhantomData,
        }
    }

    pub(super) fn cache(&self) -> CacheRef {
        self.cache
    }

    /// Gives the value up as a pointer. Unless the caller puts it back by [`put_raw`](super::ObjectCache::put_raw), it
    /// stays in use until the cache is dropped, and is dropped with it.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::new(&Family::new()?, || 7_u64)?;
    /// let value = cache.get()?.into_raw();
    /// // SAFETY: constructed, and no other code uses it; put once.
    /// unsafe {
    ///     assert_eq!(value.read(), 7);
    ///     cache.put_raw(value);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn into_raw(self) -> NonNull<T> {
        ManuallyDrop::new(self).at
    }

    /// Moves the value out. The cache constructs another one when it needs it.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || String::from("made"))?;
    /// let text: String = cache.get()?.take();
    /// drop(cache);
    /// assert_eq!(text, "made");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn take(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: the guard owned the value, and its memory goes back to the slab as not constructed.
        let value = unsafe { this.at.read() };
        this.cache.put_unmade(this.at.as_ptr() as usize);
        value
    }
}

impl<T> Drop for Object<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let round = self.at.as_ptr() as usize;
        if cfg!(debug_assertions)
            && let Err(misuse) = self.cache.check(round)
        {
            return self.cache.refuse(&misuse);
        }
        if !self.cache.stock.try_put(round) {
            self.cache.put_slow(round);
        }
    }
}

impl<T> Deref for Object<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: constructed, and this guard's alone.
        unsafe { self.at.as_ref() }
    }
}

impl<T> DerefMut for Object<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and borrowed mutably.
        unsafe { self.at.as_mut() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Object<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Object<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
