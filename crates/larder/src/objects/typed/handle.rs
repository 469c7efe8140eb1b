//! A stock of values of one's own.

use core::convert::Infallible;
use core::ptr::NonNull;

use super::super::error::ObjectError;
use super::super::raw::object;
use super::super::supply::Failure;
use super::cache::unfold;
use super::{Object, ObjectCache};
use crate::magazine::OwnMagazine;

/// A magazine of values behind `&mut`: no lock, no atomic, no thread-local. Values may be put through the cache
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
    magazine: OwnMagazine,
    cache: &'c ObjectCache<T, E>,
}

impl<T, E> ObjectCache<T, E> {
    /// A stock of one's own over this cache. It costs nothing until it is used.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::new(&Family::new()?, || 7_u64)?;
    /// let mut handle = cache.handle();
    /// assert_eq!(*handle.get()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn handle(&self) -> ObjectHandle<'_, T, E> {
        ObjectHandle::new(self)
    }
}

impl<'c, T, E> ObjectHandle<'c, T, E> {
    pub(super) fn new(cache: &'c ObjectCache<T, E>) -> Self {
        Self {
            magazine: OwnMagazine::none(),
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
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || [0_u8; 100])?;
    /// let mut handle = cache.handle();
    /// let mut value = handle.get()?;
    /// value[7] = 1;
    /// handle.put(value);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get(&mut self) -> Result<Object<'c, T>, ObjectError<E>> {
        let at = match self.magazine.try_get() {
            Some(round) => object(round),
            None => self.get_slow()?,
        };
        // SAFETY: the object is this cache's, constructed, and no other caller uses it.
        Ok(unsafe { Object::new(at.cast(), self.cache.cache) })
    }

    /// Puts a value into this handle; a value of another cache goes back to its own.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::new(&Family::new()?, || 7_u64)?;
    /// let mut handle = cache.handle();
    /// let mut value = cache.get()?;
    /// *value = 8;
    /// handle.put(value);
    /// assert_eq!(*handle.get()?, 8, "the last one put is the next one taken");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn put(&mut self, value: Object<'_, T>) {
        if value.cache().is(self.cache.cache) {
            let at = value.into_raw();
            if !self.magazine.try_put(at.as_ptr() as usize) {
                self.put_slow(at);
            }
        }
    }

    /// Fills the empty places of `out` with values and says how many it filled: all, unless memory ends or the constructor
    /// fails. No lock, and one exchange with the depot for a magazine's worth.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || [0_u8; 100])?;
    /// let mut handle = cache.handle();
    /// let mut values = [const { None }; 200];
    /// assert_eq!(handle.get_many(&mut values)?, 200);
    /// assert_eq!(handle.put_many(&mut values), 200);
    /// assert!(values.iter().all(Option::is_none));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`get`](Self::get); only when not a single place was filled.
    ///
    /// # Panics
    /// When the constructor does. What was filled before stays.
    pub fn get_many(&mut self, out: &mut [Option<Object<'c, T>>]) -> Result<usize, ObjectError<E>> {
        let mut filled = 0;
        for place in out.iter_mut().filter(|place| place.is_none()) {
            match self.get() {
                Ok(value) => *place = Some(value),
                Err(error) if filled == 0 => return Err(error),
                Err(_) => break,
            }
            filled += 1;
        }
        Ok(filled)
    }

    /// Puts the values of `values` into this handle, leaves every place empty, and says how many there were. A value of another
    /// cache goes back to its own.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let (one, other) = (ObjectCache::new(&family, || 1)?, ObjectCache::new(&family, || 2)?);
    /// let mut handle = one.handle();
    /// let mut values = [Some(handle.get()?), None, Some(other.get()?)];
    /// let before = handle.len();
    /// assert_eq!(handle.put_many(&mut values), 2);
    /// assert_eq!(handle.len(), before + 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put_many(&mut self, values: &mut [Option<Object<'_, T>>]) -> usize {
        let mut put = 0;
        for value in values.iter_mut().filter_map(Option::take) {
            self.put(value);
            put += 1;
        }
        put
    }

    /// Values in this handle.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::new(&Family::new()?, || 7_u64)?;
    /// let mut handle = cache.handle();
    /// handle.put(cache.get()?);
    /// handle.put(cache.get()?);
    /// assert_eq!(handle.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.magazine.len()
    }

    /// True when this handle has no value in stock.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::new(&Family::new()?, || 7_u64)?;
    /// let mut handle = cache.handle();
    /// assert!(handle.is_empty());
    /// handle.put(cache.get()?);
    /// assert!(!handle.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&mut self) -> Result<NonNull<u8>, ObjectError<E>> {
        let (magazine, shared) = (&mut self.magazine, &self.cache.cache);
        let supply = self.cache.supply();
        shared
            .inner()
            .patiently(
                || magazine.get(&shared.stock, &supply, shared.stock.owner_rounds()),
                Failure::is_short,
            )
            .map(object)
            .map_err(unfold)
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&mut self, at: NonNull<T>) {
        let shared = &self.cache.cache;
        shared.inner().upkeep_of_put(shared.magazine_bytes());
        self.magazine.put(
            at.as_ptr() as usize,
            &shared.stock,
            &shared.as_supply(),
            shared.stock.owner_rounds(),
        );
    }
}

impl<T, E> Drop for ObjectHandle<'_, T, E> {
    /// Gives the magazine to the depot: constant time.
    fn drop(&mut self) {
        self.magazine.give_up(&self.cache.cache.stock);
    }
}
