//! A cache of objects as bytes: for C, for heaps, and for callers that construct objects themselves.

use core::num::NonZeroU16;
use core::ptr::NonNull;

use super::cache::CacheRef;
use super::error::{Misuse, ObjectError};
use super::family::Family;
use super::stats::CacheStats;
use super::supply::{Construct, Failure, Objects};

/// A cache of objects of one layout, shared between threads by reference.
///
/// A get takes from this CPU's magazines, as a put gives to them; see the [module](super) for what lies behind. When the
/// cache and its handles are dropped, all its objects are gone, also those in use.
///
/// The [module](super) and [`get`](Self::get) show how it is used.
#[derive(Debug)]
pub struct RawCache {
    pub(super) cache: CacheRef,
    pub(super) construct: Option<unsafe fn(NonNull<u8>, *mut ()) -> bool>,
}

/// The constructor that a C program or the like gave.
pub(super) struct Given {
    construct: Option<unsafe fn(NonNull<u8>, *mut ()) -> bool>,
    data: *mut (),
}

impl Construct for Given {
    type Error = ();
    unsafe fn construct(&self, at: NonNull<u8>) -> Result<(), ()> {
        match self.construct {
            // SAFETY: the caller's promise, and the promise of the code that gave the function.
            Some(f) if !unsafe { f(at, self.data) } => Err(()),
            _ => Ok(()),
        }
    }
}

/// A round is the address of an object.
#[inline]
pub(super) fn object(round: usize) -> NonNull<u8> {
    // SAFETY: rounds are addresses inside the pool's reservation, which are not null.
    unsafe { NonNull::new_unchecked(round as *mut u8) }
}

/// Objects as the rounds that they are.
pub(super) fn rounds_of(objects: &[NonNull<u8>]) -> &[usize] {
    // SAFETY: a pointer that is not null has the size and alignment of an address, and is only read as one.
    unsafe { core::slice::from_raw_parts(objects.as_ptr().cast(), objects.len()) }
}

/// Lets a function write rounds into room for objects, in front, and say how many; makes objects of them, which costs nothing.
pub(super) fn fill_objects<E>(
    out: &mut [NonNull<u8>],
    fill: impl FnOnce(&mut [usize]) -> Result<usize, E>,
) -> Result<usize, E> {
    // SAFETY: as in `rounds_of`; rounds are addresses of objects, which are not null.
    let room = unsafe { core::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), out.len()) };
    let n = fill(room)?;
    // An address that was written as a number leads to no memory until it is made a pointer again.
    for slot in &mut out[..n] {
        *slot = object(slot.addr().get());
    }
    Ok(n)
}

/// The error, or the constructor's panic.
pub(super) fn unfold(failure: Failure<()>) -> ObjectError {
    match failure {
        Failure::Get(error) => error,
        Failure::Constructor(()) => ObjectError::Refused,
        Failure::Panic(payload) => std::panic::resume_unwind(payload),
    }
}

impl RawCache {
    /// An object: constructed if the cache has a constructor, else with whatever a former user left. It is valid until
    /// it is put or the cache and all its handles are dropped.
    ///
    /// # Errors
    /// See [`ObjectError`].
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let object = cache.get()?.cast::<u64>();
    /// // SAFETY: 32 bytes that no other code uses, put once.
    /// unsafe {
    ///     object.write(7);
    ///     cache.put(object.cast());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get(&self) -> Result<NonNull<u8>, ObjectError> {
        match self.cache.stock.quick_get() {
            Some(round) => Ok(object(round)),
            None => self.get_slow(),
        }
    }

    /// Puts an object back. Debug builds check every pointer, others those that meet full magazines.
    ///
    /// # Safety
    /// The object came from this cache, no other caller uses it, and it is not used afterwards. With a destructor, it
    /// is in a state that this accepts.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let object = cache.get()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put(object) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub unsafe fn put(&self, object: NonNull<u8>) {
        if cfg!(debug_assertions) && self.refuses(object) {
            return;
        }
        if !self.cache.stock.quick_put(object.as_ptr() as usize) {
            self.put_slow(object);
        }
    }

    /// An object of this CPU's magazines, for callers that have a slow path: it finds nothing where there are no
    /// restartable sequences.
    #[inline(always)]
    pub(crate) fn quick_get(&self) -> Option<NonNull<u8>> {
        self.cache.stock.quick_get().map(object)
    }

    /// As [`try_put`](Self::try_put), for callers that go on to [`put`](Self::put): it has no room where there are no
    /// restartable sequences, nor in debug builds, where `put` looks at each object.
    ///
    /// # Safety
    /// As for `put`.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn quick_put(&self, object: NonNull<u8>) -> bool {
        !cfg!(debug_assertions) && self.cache.stock.quick_put(object.as_ptr() as usize)
    }

    /// Puts an object into this CPU's magazines, and nothing more: false when they have no room.
    ///
    /// ```
    /// # let family = larder::objects::Family::new()?;
    /// # let cache = larder::objects::RawCache::new(&family, std::alloc::Layout::new::<u64>())?;
    /// let object = cache.get()?;
    /// // SAFETY: taken above; it is put again only if it was not taken.
    /// if !unsafe { cache.try_put(object) } {
    ///     unsafe { cache.put(object) };
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// As for [`put`](Self::put).
    #[inline]
    #[must_use]
    pub unsafe fn try_put(&self, object: NonNull<u8>) -> bool {
        self.cache.stock.try_put(object.as_ptr() as usize)
    }

    /// Puts an object back after looking whether one of this cache begins there. Whether it is in use is not seen.
    ///
    /// # Errors
    /// Says what is wrong; then nothing was put.
    ///
    /// # Safety
    /// As for [`put`](Self::put), if it is an object of this cache.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let object = cache.get()?;
    /// // SAFETY: no object begins there, and then nothing is put.
    /// let inside = unsafe { cache.put_checked(object.add(8)) };
    /// assert!(inside.is_err());
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put_checked(object)? };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn put_checked(&self, object: NonNull<u8>) -> Result<(), Misuse> {
        self.cache.check(object.as_ptr() as usize)?;
        // SAFETY: the caller's promise.
        unsafe { self.put(object) };
        Ok(())
    }

    /// Fills `out` with objects and says how many there are: all, unless memory ends.
    ///
    /// # Errors
    /// See [`ObjectError`]; only when there is not a single one.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let mut objects = [std::ptr::NonNull::dangling(); 100];
    /// let got = cache.get_many(&mut objects)?;
    /// // SAFETY: taken above, each put once.
    /// unsafe { cache.put_many(&objects[..got]) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_many(&self, out: &mut [NonNull<u8>]) -> Result<usize, ObjectError> {
        if out.is_empty() {
            return Ok(0);
        }
        let got = fill_objects(out, |rounds| {
            self.cache.inner().patiently(
                || self.cache.stock.get_many(rounds, &self.supply()),
                Failure::is_short,
            )
        });
        self.cache.shelved();
        got.map_err(unfold)
    }

    /// Puts many objects back with few operations.
    ///
    /// # Safety
    /// As for [`put`](Self::put), for each.
    pub unsafe fn put_many(&self, objects: &[NonNull<u8>]) {
        if cfg!(debug_assertions) {
            for &object in objects {
                // SAFETY: the caller's promise.
                unsafe { self.put(object) };
            }
            return;
        }
        let bytes = objects.len() * self.cache.shape.stride;
        self.cache.inner().upkeep_of_put(bytes);
        self.cache
            .stock
            .put_many(rounds_of(objects), &self.supply());
        self.cache.shelved();
    }

    /// The number that [`Family::owner`] says of this cache's objects. Numbers are small and used again.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// use larder::objects::Owner;
    /// let object = cache.get()?;
    /// assert_eq!(family.owner(object.as_ptr()), Some(Owner::Cache(cache.number())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn number(&self) -> NonZeroU16 {
        self.cache.number
    }

    /// Bytes from one object to the next.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// assert_eq!(cache.stride(), 32);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stride(&self) -> usize {
        self.cache.shape.stride
    }

    /// The family.
    ///
    /// ```
    /// # let family = larder::objects::Family::new()?;
    /// # let cache = larder::objects::RawCache::new(&family, std::alloc::Layout::new::<u64>())?;
    /// assert_eq!(cache.family().mode(), family.mode());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn family(&self) -> &Family {
        &self.cache.family
    }

    /// Ends a working-set interval: see [`Family::maintain`]. Returns bytes of slabs that went back to the pool.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let object = cache.get()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put(object) };
    /// let bytes: usize = (0..4).map(|_| cache.maintain()).sum();
    /// assert!(bytes > 0, "unused for four intervals");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn maintain(&self) -> usize {
        self.cache.maintain(crate::os::coarse_now())
    }

    /// Everything that is not in use and not in a handle goes to the pool, now. Returns bytes of slabs that went.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let object = cache.get()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put(object) };
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
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let object = cache.get()?;
    /// assert_eq!(cache.stats().slabs, 1);
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put(object) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// Gets that a CPU's magazines served, and those that found them empty.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        let stock = self.cache.stock.stats();
        (stock.pops, stock.misses)
    }

    pub(super) fn supply(&self) -> Objects<'_, Given> {
        Objects {
            constructor: Given {
                construct: self.construct,
                data: self.cache.hooks.data,
            },
            cache: &self.cache,
            spare: None,
            untouched: None,
        }
    }

    /// Reports a pointer that is no object's; true when it is not taken.
    pub(crate) fn refuses(&self, object: NonNull<u8>) -> bool {
        let checked = self.cache.check(object.as_ptr() as usize);
        checked
            .inspect_err(|misuse| self.cache.refuse(misuse))
            .is_err()
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&self) -> Result<NonNull<u8>, ObjectError> {
        if let Some(round) = self.cache.stock.locked_get() {
            return Ok(object(round));
        }
        let supply = self.supply();
        let got = self
            .cache
            .inner()
            .patiently(|| self.cache.stock.get(&supply), Failure::is_short);
        self.cache.shelved();
        got.map(object).map_err(unfold)
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&self, object: NonNull<u8>) {
        let round = object.as_ptr() as usize;
        if self.cache.stock.locked_put(round) {
            return;
        }
        if cfg!(debug_assertions) || !self.refuses(object) {
            self.cache.put_slow(round);
        }
    }
}

impl Drop for RawCache {
    fn drop(&mut self) {
        self.cache.disown();
    }
}
