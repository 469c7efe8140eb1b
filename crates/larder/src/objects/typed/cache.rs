//! A cache of values of one type, constructed once and used many times.

use core::convert::Infallible;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::super::cache::{CacheRef, Config};
use super::super::error::ObjectError;
use super::super::family::Family;
use super::super::raw::object;
use super::super::stats::CacheStats;
use super::super::supply::{Construct, Failure, Objects};
use super::{Object, OwnedObject};

/// What a cache calls, in a box that lives as long as its objects.
pub(super) struct Calls<T, E> {
    pub(super) make: Box<dyn Fn() -> Result<T, E> + Send + Sync>,
    pub(super) reclaim: Option<Box<dyn Fn() + Send + Sync>>,
}

impl<T, E> Construct for &Calls<T, E> {
    type Error = E;
    unsafe fn construct(&self, at: NonNull<u8>) -> Result<(), E> {
        let value = (self.make)()?;
        // SAFETY: the memory has the layout of a `T` and belongs to this call (the caller's promise).
        unsafe { at.cast::<T>().write(value) };
        Ok(())
    }
}

/// A cache of values. A value is made by the constructor when it is first needed, and keeps its state from then on: a
/// guard that is dropped puts the value back without running its `Drop`, and the next get finds it as it was left. It is
/// dropped when its slab goes back to the pool, or with the cache.
///
/// Bonwick's reason for it ("The Slab Allocator", USENIX 1994) is that setting an object up often costs more than having
/// its memory.
///
/// ```
/// use larder::objects::{Family, ObjectCache};
/// let family = Family::new()?;
/// let buffers = ObjectCache::new(&family, || Vec::<u8>::with_capacity(4096))?;
/// let mut buffer = buffers.get()?;
/// buffer.extend_from_slice(b"hello");
/// buffer.clear();                             // the next user finds an empty vector with its capacity
/// drop(buffer);
/// assert!(buffers.get()?.capacity() >= 4096);
/// assert_eq!(buffers.stats().constructed, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A guard borrows its cache, so the cache cannot go before it:
///
/// ```compile_fail
/// # use larder::objects::{Family, ObjectCache};
/// # let family = Family::new().unwrap();
/// let cache = ObjectCache::new(&family, || 0_u64).unwrap();
/// let object = cache.get().unwrap();
/// drop(cache);
/// assert_eq!(*object, 0);
/// ```
///
/// Nor can a value be put back that lives shorter than the cache's type says:
///
/// ```compile_fail
/// # use larder::objects::{Family, Object, ObjectCache};
/// # let family = Family::new().unwrap();
/// let cache = ObjectCache::new(&family, || "for ever").unwrap();
/// let text = String::from("gone soon");
/// let mut object: Object<'_, &str> = cache.get().unwrap();
/// *object = &text;
/// ```
///
/// Values must be `Send`, since another thread may get them next, and hold no borrows, since a slab may be reaped at any
/// later time.
pub struct ObjectCache<T, E = Infallible> {
    pub(super) cache: CacheRef,
    /// Invariant: what is put back through one view of the cache is got through another.
    pub(super) of: Kept<T, E>,
}

/// Values that go in and come out, and a constructor's error.
pub(super) type Kept<T, E> = PhantomData<(*mut T, fn() -> E)>;

// SAFETY: the cache behind is shared between threads anyway, its closures are `Send` and `Sync`, and a value that is put
// by one thread and got by another moves between them, which `T: Send` allows. No `&T` is ever shared through the cache.
unsafe impl<T: Send, E> Send for ObjectCache<T, E> {}
// SAFETY: as above.
unsafe impl<T: Send, E> Sync for ObjectCache<T, E> {}

impl<T: Send + 'static, E: 'static> ObjectCache<T, E> {
    pub(super) fn with(
        family: &Family,
        mut config: Config,
        calls: Calls<T, E>,
    ) -> Result<Self, ObjectError> {
        let hooks = &mut config.hooks;
        hooks.constructs = true;
        hooks.destroy = core::mem::needs_drop::<T>().then_some(destroy::<T>);
        hooks.reclaim = calls.reclaim.is_some().then_some(reclaim::<T, E>);
        hooks.end = Some(end::<T, E>);
        hooks.data = Box::into_raw(Box::new(calls)).cast();
        let data = hooks.data;
        match CacheRef::of(family, config) {
            Ok(cache) => Ok(Self {
                cache,
                of: PhantomData,
            }),
            Err(error) => {
                // SAFETY: made above, and the cache that would have used it does not exist.
                unsafe { end::<T, E>(data) };
                Err(error)
            }
        }
    }
}

/// # Safety
/// There is a `T` at `at`, which is not used any more.
unsafe fn destroy<T>(at: NonNull<u8>, _: *mut ()) {
    // SAFETY: the caller's promise.
    unsafe { at.cast::<T>().drop_in_place() };
}

/// # Safety
/// `data` is the cache's `Calls`.
unsafe fn reclaim<T, E>(data: *mut ()) {
    // SAFETY: the caller's promise.
    if let Some(f) = unsafe { &(*data.cast::<Calls<T, E>>()).reclaim } {
        f();
    }
}

/// # Safety
/// `data` is the cache's `Calls`, boxed, and is not used any more.
unsafe fn end<T, E>(data: *mut ()) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(data.cast::<Calls<T, E>>()) });
}

impl<T, E> ObjectCache<T, E> {
    /// A value, put back when the guard is dropped.
    ///
    /// # Errors
    /// No memory, or the constructor's error.
    ///
    /// # Panics
    /// When the constructor does. The cache goes on as before.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || [0_u8; 100])?;
    /// let mut value = cache.get()?;
    /// value[7] = 1;
    /// drop(value);                   // back in this CPU's stock, and not constructed again
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get(&self) -> Result<Object<'_, T>, ObjectError<E>> {
        let at = match self.cache.stock.try_get() {
            Some(round) => object(round),
            None => self.get_slow()?,
        };
        // SAFETY: the object is this cache's, constructed, and no other caller uses it.
        Ok(unsafe { Object::new(at.cast(), self.cache) })
    }

    /// A value that keeps the cache alive by a count, instead of a borrow: two atomic additions dearer than
    /// [`get`](Self::get).
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || [0_u8; 100])?;
    /// let value = cache.get_owned()?;
    /// drop(cache);
    /// assert_eq!(value.len(), 100, "it keeps the cache alive");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_owned(&self) -> Result<OwnedObject<T>, ObjectError<E>> {
        self.get().map(OwnedObject::new)
    }

    /// A value as a pointer, for callers that keep their own account; it is valid until the cache is dropped.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || [0_u8; 100])?;
    /// let value = cache.get_raw()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put_raw(value) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get_raw(&self) -> Result<NonNull<T>, ObjectError<E>> {
        self.get().map(Object::into_raw)
    }

    /// Puts a value back that [`get_raw`](Self::get_raw) or [`Object::into_raw`] gave.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::new(&Family::new()?, || 0_u64)?;
    /// let value = cache.get()?.into_raw();
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put_raw(value) };
    /// assert_eq!(cache.stats().constructed as usize, cache.stats().out);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// The value is of this cache, no other caller uses it, and it is not used afterwards.
    #[inline]
    pub unsafe fn put_raw(&self, at: NonNull<T>) {
        // SAFETY: the caller's promise.
        drop(unsafe { Object::new(at, self.cache) });
    }

    /// The family.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// assert_eq!(ObjectCache::new(&family, || 0_u64)?.family().mode(), family.mode());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn family(&self) -> &Family {
        &self.cache.family
    }

    /// Ends a working-set interval: see [`Family::maintain`]. Returns bytes of slabs that went back to the pool.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::new(&Family::new()?, || 0_u64)?;
    /// drop(cache.get()?);
    /// let bytes: usize = (0..4).map(|_| cache.maintain()).sum();
    /// assert!(bytes > 0, "unused for four intervals");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// When a value's `Drop` does, after all that was to go went.
    pub fn maintain(&self) -> usize {
        self.cache.maintain(crate::os::coarse_now())
    }

    /// Everything that is not in use and not in a handle goes to the pool, now. Returns bytes of slabs that went.
    ///
    /// # Panics
    /// As [`maintain`](Self::maintain).
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || [0_u8; 100])?;
    /// drop(cache.get()?);
    /// assert!(cache.trim() > 0);
    /// assert_eq!(cache.stats().held_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) -> usize {
        self.cache.trim()
    }

    /// What the cache has done and holds.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || [0_u8; 100])?;
    /// let value = cache.get()?;
    /// assert!(cache.stats().out >= 1);
    /// # drop(value);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.cache.stats()
    }

    pub(super) fn supply(&self) -> Objects<'_, &Calls<T, E>> {
        Objects {
            // SAFETY: `with` stored it there, and it goes with the last owner of the cache, which this value is one of.
            constructor: unsafe { &*self.cache.hooks.data.cast_const().cast() },
            cache: &self.cache,
            spare: None,
            untouched: None,
        }
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&self) -> Result<NonNull<u8>, ObjectError<E>> {
        let supply = self.supply();
        let got = self
            .cache
            .inner()
            .patiently(|| self.cache.stock.get(&supply), Failure::is_short);
        self.cache.shelved();
        got.map(object).map_err(unfold)
    }
}

/// The error, or the constructor's panic.
pub(super) fn unfold<E>(failure: Failure<E>) -> ObjectError<E> {
    match failure {
        Failure::Get(error) => error.of(),
        Failure::Constructor(error) => ObjectError::Constructor(error),
        Failure::Panic(payload) => std::panic::resume_unwind(payload),
    }
}

impl<T, E> Drop for ObjectCache<T, E> {
    fn drop(&mut self) {
        self.cache.disown();
    }
}

impl<T, E> core::fmt::Debug for ObjectCache<T, E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ObjectCache")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
