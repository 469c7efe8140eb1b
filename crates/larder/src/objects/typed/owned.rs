//! A value in use that keeps its cache alive.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

use super::super::cache::CacheRef;
use super::guard::Object;

/// A value that may outlive the [`ObjectCache`](super::ObjectCache) that it came from: the cache's memory goes when its
/// last value goes.
///
/// ```
/// use larder::objects::{Family, ObjectCache};
/// let family = Family::new()?;
/// let cache = ObjectCache::new(&family, || vec![1, 2, 3])?;
/// let object = cache.get_owned()?;
/// drop(cache);
/// drop(family);
/// assert_eq!(*object, [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OwnedObject<T> {
    /// The lifetime stands for that of `cache`. Dropped by hand, before the cache may go.
    object: ManuallyDrop<Object<'static, T>>,
    cache: CacheRef,
}

impl<T> OwnedObject<T> {
    pub(super) fn new(object: Object<'_, T>) -> Self {
        let cache = object.cache();
        // Counted, so that the pointer stays good.
        cache.own();
        let at = object.into_raw();
        Self {
            // SAFETY: the value was the guard's; the cache outlives this value, which is one of its owners.
            object: ManuallyDrop::new(unsafe { Object::new(at, cache) }),
            cache,
        }
    }
}

impl<T> Drop for OwnedObject<T> {
    fn drop(&mut self) {
        // SAFETY: dropped once, here, while the cache still has this owner.
        unsafe { ManuallyDrop::drop(&mut self.object) };
        self.cache.disown();
    }
}

impl<T> Deref for OwnedObject<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T> DerefMut for OwnedObject<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.object
    }
}

impl<T: fmt::Debug> fmt::Debug for OwnedObject<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
