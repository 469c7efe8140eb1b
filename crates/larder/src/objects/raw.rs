//! A cache of objects as bytes: for C, for heaps, for whoever constructs objects himself.

use core::alloc::Layout;
use core::num::NonZeroU16;
use core::ptr::NonNull;

use super::cache::{CacheRef, Config};
use super::error::{CreateError, GetError, Misuse};
use super::family::Family;
use super::handle::RawHandle;
use super::stats::{CacheStats, Name};
use super::supply::{Construct, Failure, Objects};

/// What a cache calls for its objects. All functions get `data` besides.
///
/// They are called without any lock, and may use other caches.
#[derive(Debug, Clone, Copy)]
pub struct Callbacks {
    /// Passed to each function.
    pub data: *mut (),
    /// Constructs an object in place; false when it cannot, and then the object is not constructed.
    pub construct: Option<unsafe fn(NonNull<u8>, *mut ()) -> bool>,
    /// Ends an object, before its slab goes back.
    pub destroy: Option<unsafe fn(NonNull<u8>, *mut ())>,
    /// Memory is short: puts objects back that the user can do without. It must not drop the cache.
    pub reclaim: Option<unsafe fn(*mut ())>,
    /// Ends `data` itself: called once, after the last call of the others has returned. That may be later than the drop of
    /// the cache and its handles, and by another thread: when they go while somebody asks all caches for memory. It is not
    /// called for a cache that could not be made.
    pub end: Option<unsafe fn(*mut ())>,
}

impl Default for Callbacks {
    fn default() -> Self {
        Self {
            data: core::ptr::null_mut(),
            construct: None,
            destroy: None,
            reclaim: None,
            end: None,
        }
    }
}

/// Settings of a cache that is to be.
///
/// ```
/// use std::alloc::Layout;
/// use larder::objects::{Family, RawCache};
/// let family = Family::new()?;
/// let cache = RawCache::options(Layout::new::<[u8; 100]>())
///     .name("packet")
///     .limit_bytes(1 << 20)
///     .create(&family)?;
/// assert_eq!(cache.stats().name.as_str(), "packet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CacheOptions {
    config: Config,
    construct: Option<unsafe fn(NonNull<u8>, *mut ()) -> bool>,
}

impl CacheOptions {
    /// A name for statistics, up to 31 bytes.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.config.name = Name::new(name);
        self
    }

    /// Most bytes of slabs; past it a get is an error.
    #[must_use]
    pub fn limit_bytes(mut self, bytes: usize) -> Self {
        self.config.limit_bytes = bytes;
        self
    }

    /// Slabs stay with this cache until it is dropped: memory of an object may be read after its put, and is then an
    /// object of the same kind, free or used again.
    #[must_use]
    pub fn type_stable(mut self, yes: bool) -> Self {
        self.config.type_stable = yes;
        self
    }

    /// Fewest pages of a slab, up to 64. Large slabs make a cache that is dropped with many objects go faster.
    #[must_use]
    pub fn slab_pages(mut self, pages: usize) -> Self {
        self.config.slab_pages = pages;
        self
    }

    /// Whether what is left over in a slab goes before its first object in turn, so that objects of different slabs do not
    /// meet in the same sets of the CPU's caches. On by default; without it the first object begins at a page.
    #[must_use]
    pub fn colour(mut self, yes: bool) -> Self {
        self.config.colour = yes;
        self
    }

    /// Rounds of a magazine at first and at most (up to 255). By default 32 KiB of objects, 8 at least and 255 at most, of objects up to 32 KiB.
    #[must_use]
    pub fn magazine(mut self, rounds: usize, most: usize) -> Self {
        self.config.rounds = Some((rounds, most));
        self
    }

    /// What is called for the objects.
    ///
    /// # Safety
    /// The functions may be called with this `data` from any thread, several at once, until `end` is: without it nobody
    /// knows when the last call returns, and `data` must live as long as the family. They do with an object only what fits its layout, and the destructor accepts any object that the
    /// constructor made, whatever its users did with it.
    #[must_use]
    pub unsafe fn callbacks(mut self, callbacks: Callbacks) -> Self {
        let Callbacks {
            data,
            construct,
            destroy,
            reclaim,
            end,
        } = callbacks;
        let hooks = &mut self.config.hooks;
        hooks.data = data;
        hooks.constructs = construct.is_some() || destroy.is_some();
        hooks.destroy = destroy;
        hooks.reclaim = reclaim;
        hooks.end = end;
        self.construct = construct;
        self
    }

    /// Makes the cache. It takes metadata and addresses; memory for objects and magazines comes with the first get.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create(self, family: &Family) -> Result<RawCache, CreateError> {
        Ok(RawCache {
            cache: CacheRef::new(family, self.config)?,
            construct: self.construct,
        })
    }
}

/// A cache of objects of one layout, shared between threads by reference.
///
/// A get takes from this CPU's magazines, as a put gives to them; see the [module](super) for what lies behind. When the
/// cache and its handles are dropped, all its objects are gone, also those in use.
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
            // SAFETY: the caller's promise, and the promise of whoever gave the function.
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

/// The error, or the constructor's panic.
pub(super) fn unfold(failure: Failure<()>) -> GetError {
    match failure {
        Failure::Get(error) => error,
        Failure::Constructor(()) => GetError::Constructor,
        Failure::Panic(payload) => std::panic::resume_unwind(payload),
    }
}

impl RawCache {
    /// A cache with default settings.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(family: &Family, layout: Layout) -> Result<Self, CreateError> {
        Self::options(layout).create(family)
    }

    /// Settings first.
    #[must_use]
    pub fn options(layout: Layout) -> CacheOptions {
        CacheOptions {
            config: Config::new(layout),
            construct: None,
        }
    }

    /// An object: constructed if the cache has a constructor, else with whatever a former user left. It is valid until
    /// it is put or the cache and all its handles are dropped.
    ///
    /// # Errors
    /// See [`GetError`].
    #[inline]
    pub fn get(&self) -> Result<NonNull<u8>, GetError> {
        match self.cache.stock.quick_get() {
            Some(round) => Ok(object(round)),
            None => self.get_slow(),
        }
    }

    /// An object, or null where [`get`](Self::get) has an error: for callers who do not look at it.
    #[inline]
    pub fn get_or_null(&self) -> *mut u8 {
        match self.cache.stock.quick_get() {
            Some(round) => round as *mut u8,
            None => self.get_slow_or_null(),
        }
    }

    /// An object from this CPU's magazines, and nothing more.
    #[inline]
    pub fn try_get(&self) -> Option<NonNull<u8>> {
        self.cache.stock.try_get().map(object)
    }

    /// Puts an object back. Debug builds check every pointer, others those that meet full magazines.
    ///
    /// # Safety
    /// The object came from this cache, is in nobody else's hands, and is not used afterwards. With a destructor, it is
    /// in a state that this accepts.
    #[inline]
    pub unsafe fn put(&self, object: NonNull<u8>) {
        if cfg!(debug_assertions) && self.refuses(object) {
            return;
        }
        if !self.cache.stock.quick_put(object.as_ptr() as usize) {
            self.put_slow(object);
        }
    }

    /// As [`try_get`](Self::try_get), for callers who have a slow path: it finds nothing where there are no restartable
    /// sequences.
    #[inline(always)]
    pub(crate) fn quick_get(&self) -> Option<NonNull<u8>> {
        self.cache.stock.quick_get().map(object)
    }

    /// As [`try_put`](Self::try_put), for callers who go on to [`put`](Self::put): it has no room where there are no
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
    pub unsafe fn put_checked(&self, object: NonNull<u8>) -> Result<(), Misuse> {
        self.cache.check(object.as_ptr() as usize)?;
        // SAFETY: the caller's promise.
        unsafe { self.put(object) };
        Ok(())
    }

    /// Fills `out` with objects and says how many there are: all, unless memory ends.
    ///
    /// # Errors
    /// See [`GetError`]; only when there is not a single one.
    pub fn get_many(&self, out: &mut [NonNull<u8>]) -> Result<usize, GetError> {
        // SAFETY: an address and a pointer that is not null have the same size and alignment; what the stock writes is
        // addresses of objects, and it reads nothing.
        let rounds =
            unsafe { core::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<usize>(), out.len()) };
        if rounds.is_empty() {
            return Ok(0);
        }
        let got = self.cache.patiently(
            || self.cache.stock.get_many(rounds, &self.supply()),
            Failure::is_short,
        );
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
        // SAFETY: as in `get_many`; the stock only reads.
        let rounds =
            unsafe { core::slice::from_raw_parts(objects.as_ptr().cast::<usize>(), objects.len()) };
        self.cache.inner().upkeep_if_due();
        self.cache.stock.put_many(rounds, &self.supply());
        self.cache.shelved();
    }

    /// A stock of one's own over this cache. It costs nothing until it is used.
    #[must_use]
    pub fn handle(&self) -> RawHandle {
        RawHandle::new(self)
    }

    /// The number that [`Family::owner`] says of this cache's objects. Numbers are small and used again.
    #[must_use]
    pub fn number(&self) -> NonZeroU16 {
        self.cache.number
    }

    /// Bytes from one object to the next.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.cache.shape.stride
    }

    /// The family.
    #[must_use]
    pub fn family(&self) -> &Family {
        &self.cache.family
    }

    /// Ends a working-set interval: see [`Family::reap`]. Returns bytes of slabs that went back to the pool.
    pub fn reap(&self) -> usize {
        self.cache.reap()
    }

    /// Everything that is not in use and not in a handle goes to the pool, now. Returns bytes of slabs that went.
    pub fn drain(&self) -> usize {
        self.cache.drain()
    }

    /// What the cache has done and holds.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.cache.stats()
    }

    pub(super) fn supply(&self) -> Objects<'_, Given> {
        Objects {
            constructor: Given {
                construct: self.construct,
                data: self.cache.hooks.data,
            },
            cache: &self.cache,
        }
    }

    /// Tells of a pointer that is no object's; true when it is not taken.
    pub(super) fn refuses(&self, object: NonNull<u8>) -> bool {
        let checked = self.cache.check(object.as_ptr() as usize);
        checked
            .inspect_err(|misuse| self.cache.refuse(misuse))
            .is_err()
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&self) -> Result<NonNull<u8>, GetError> {
        if let Some(round) = self.cache.stock.locked_get() {
            return Ok(object(round));
        }
        let supply = self.supply();
        let got = self
            .cache
            .patiently(|| self.cache.stock.get(&supply), Failure::is_short);
        self.cache.shelved();
        got.map(object).map_err(unfold)
    }

    #[cold]
    #[inline(never)]
    fn get_slow_or_null(&self) -> *mut u8 {
        self.get_slow()
            .map_or(core::ptr::null_mut(), NonNull::as_ptr)
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
