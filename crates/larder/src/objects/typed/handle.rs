//! A stock of values of one's own.

use core::convert::Infallible;
use core::ptr::NonNull;

use super::super::raw::object;
use super::super::supply::Failure;
use super::cache::unfold;
use super::{Object, ObjectCache, ObjectError};
use crate::magazine::Pair;

/// Two magazines of values behind `&mut`: no lock, no atomic, no thread-local. Values may be put through the cache
/// or another handle instead, and the other way round.
///
/// ```
/// use larder::objects::{Family, ObjectCache};
/// let family = Family::new()?;
/// let cache = ObjectCache::new(&family, || [0_u8; 100])?;
/// let mut handle = cache.handle();
/// let value = handle.get()?;
/// handle.put(value);             // dropping the value would put it into the CPU's stock instead
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ObjectHandle<'c, T, E = Infallible> {
    pair: Pair,
    cache: &'c ObjectCache<T, E>,
}

impl<'c, T, E> ObjectHandle<'c, T, E> {
    pub(super) fn new(cache: &'c ObjectCache<T, E>) -> Self {
        Self {
            pair: Pair::none(),
            cache,
        }
    }

    /// A value.
    ///
    /// # Errors
    /// As for [`ObjectCache::get`].
    ///
    /// # Panics
    /// When the constructor does.
    #[inline]
    pub fn get(&mut self) -> Result<Object<'c, T>, ObjectError<E>> {
        let at = match self.pair.try_get() {
            Some(round) => object(round),
            None => self.get_slow()?,
        };
        // SAFETY: the object is this cache's, constructed, and in nobody else's hands.
        Ok(unsafe { Object::new(at.cast(), self.cache.cache) })
    }

    /// Puts a value into this handle; a value of another cache goes back to its own.
    #[inline]
    pub fn put(&mut self, value: Object<'_, T>) {
        if value.cache().is(self.cache.cache) {
            let at = value.into_raw();
            if !self.pair.try_put(at.as_ptr() as usize) {
                self.put_slow(at);
            }
        }
    }

    /// Values in this handle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pair.len()
    }

    /// True when this handle has no value in stock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&mut self) -> Result<NonNull<u8>, ObjectError<E>> {
        let (pair, shared) = (&mut self.pair, &self.cache.cache);
        let supply = self.cache.supply();
        shared
            .patiently(|| pair.get(&shared.stock, &supply), Failure::is_short)
            .map(object)
            .map_err(unfold)
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&mut self, at: NonNull<T>) {
        let shared = &self.cache.cache;
        shared.inner().upkeep_if_due();
        self.pair
            .put(at.as_ptr() as usize, &shared.stock, &shared.as_supply());
    }
}

impl<T, E> Drop for ObjectHandle<'_, T, E> {
    /// Gives both magazines to the depot: constant time.
    fn drop(&mut self) {
        self.pair.give_up(&self.cache.cache.stock);
    }
}
