//! How a cache of objects as bytes is made.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::cache::{CacheRef, Config};
use super::error::ObjectError;
use super::family::Family;
use super::raw::RawCache;
use super::stats::Name;

/// What a cache calls for its objects. All functions get `data` besides.
///
/// They are called without any lock, and may use other caches.
///
/// ```
/// use std::{alloc::Layout, ptr::NonNull};
/// use larder::objects::{Callbacks, Family, RawCache};
/// /// # Safety
/// /// There are 8 bytes at `at`.
/// unsafe fn seven(at: NonNull<u8>, _: *mut ()) -> bool {
///     // SAFETY: the caller's promise.
///     unsafe { at.cast::<u64>().write(7) };
///     true
/// }
/// let callbacks = Callbacks { construct: Some(seven), ..Callbacks::default() };
/// // SAFETY: the constructor writes an object of the layout, and nothing else.
/// let options = unsafe { RawCache::builder(Layout::new::<u64>()).callbacks(callbacks) };
/// let cache = options.build(&Family::new()?)?;
/// // SAFETY: constructed, and no other code uses it.
/// assert_eq!(unsafe { cache.get()?.cast::<u64>().read() }, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// Ends `data` itself: called once, after the last call of the others has returned. That may be later than the drop
    /// of the cache and its handles, and on another thread, if a thread asks all caches for memory at that moment. It
    /// is not called for a cache that could not be made.
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
/// let cache = RawCache::builder(Layout::new::<[u8; 100]>())
///     .name("packet")
///     .limit_bytes(1 << 20)
///     .build(&family)?;
/// assert_eq!(cache.stats().name.as_str(), "packet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It makes one cache: two of the same callbacks would both end their `data`.
///
/// ```compile_fail
/// # use larder::objects::{Family, RawCache};
/// # let family = Family::new()?;
/// let options = RawCache::builder(std::alloc::Layout::new::<u64>());
/// let caches = (options.build(&family)?, options.build(&family)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RawCacheBuilder {
    pub(super) config: Config,
    pub(super) construct: Option<unsafe fn(NonNull<u8>, *mut ()) -> bool>,
}

impl RawCache {
    /// A cache with default settings.
    ///
    /// ```
    /// # use larder::objects::{Family, RawCache};
    /// let cache = RawCache::new(&Family::new()?, std::alloc::Layout::new::<[u8; 100]>())?;
    /// assert_eq!(cache.stats().size, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`ObjectError`].
    pub fn new(family: &Family, layout: Layout) -> Result<Self, ObjectError> {
        Self::builder(layout).build(family)
    }

    /// Settings first.
    ///
    /// [`RawCacheBuilder`] shows what there is to set.
    #[must_use]
    pub fn builder(layout: Layout) -> RawCacheBuilder {
        RawCacheBuilder {
            config: Config::new(layout),
            construct: None,
        }
    }
}

impl RawCacheBuilder {
    /// A name for statistics, up to 31 bytes.
    ///
    /// ```
    /// # use larder::objects::{Family, RawCache};
    /// let options = RawCache::builder(std::alloc::Layout::new::<u64>()).name("packet");
    /// assert_eq!(options.build(&Family::new()?)?.stats().name.as_str(), "packet");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.config.name = Name::new(name);
        self
    }

    /// Most bytes of slabs; past it a get is an error.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectError, RawCache};
    /// let options = RawCache::builder(std::alloc::Layout::new::<u64>()).limit_bytes(1);
    /// assert!(matches!(options.build(&Family::new()?)?.get(), Err(ObjectError::Limit { limit: 1, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit_bytes(mut self, bytes: usize) -> Self {
        self.config.limit_bytes = bytes;
        self
    }

    /// Slabs stay with this cache until it is dropped: memory of an object may be read after its put, and is then an
    /// object of the same kind, free or used again.
    ///
    /// ```
    /// # use larder::objects::{Family, RawCache};
    /// let options = RawCache::builder(std::alloc::Layout::new::<u64>()).type_stable(true);
    /// let cache = options.build(&Family::new()?)?;
    /// let object = cache.get()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put(object) };
    /// assert_eq!((cache.trim(), cache.stats().slabs), (0, 1), "its slab stays");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn type_stable(mut self, yes: bool) -> Self {
        self.config.type_stable = yes;
        self
    }

    /// Fewest pages of a slab, up to 64. Large slabs make a cache that is dropped with many objects go faster.
    ///
    /// ```
    /// # use larder::{objects::{Family, RawCache}, os::page_size};
    /// let options = RawCache::builder(std::alloc::Layout::new::<u64>()).slab_pages(16);
    /// let cache = options.build(&Family::new()?)?;
    /// cache.get()?;
    /// assert!(cache.stats().held_bytes >= 16 * page_size());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn slab_pages(mut self, pages: usize) -> Self {
        self.config.slab_pages = pages;
        self
    }

    /// A number that its owner has [claimed](super::Family::claim_numbers); another one where a cache has that.
    pub(crate) fn number(mut self, number: u16) -> Self {
        self.config.number = Some(number);
        self
    }

    /// Whether what is left over in a slab goes before its first object in turn, so that objects of different slabs do not
    /// meet in the same sets of the CPU's caches. On by default; without it the first object begins at a page.
    ///
    /// ```
    /// # use larder::{objects::{Family, RawCache}, os::page_size};
    /// let options = RawCache::builder(std::alloc::Layout::new::<[u8; 5000]>()).colour(false);
    /// let cache = options.build(&Family::new()?)?;
    /// let slabs: Result<Vec<_>, _> = (0..3 * cache.stats().objects_per_slab).map(|_| cache.get()).collect();
    /// let at_pages = slabs?.iter().filter(|object| object.as_ptr() as usize % page_size() == 0).count();
    /// assert!(at_pages >= 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn colour(mut self, yes: bool) -> Self {
        self.config.colour = yes;
        self
    }

    /// Rounds of a magazine at first and at most (up to 255). By default 32 KiB of objects, 8 at least and 255 at most, of objects up to 32 KiB.
    ///
    /// ```
    /// # use larder::objects::{Family, RawCache};
    /// let options = RawCache::builder(std::alloc::Layout::new::<u64>()).magazine(16, 32);
    /// assert_eq!(options.build(&Family::new()?)?.stats().magazine_rounds, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn magazine(mut self, rounds: usize, most: usize) -> Self {
        self.config.rounds = Some((rounds, most));
        self
    }

    /// What is called for the objects.
    ///
    /// # Safety
    /// The functions may be called with this `data` from any thread, several at once, until `end` is. Without `end` the user
    /// cannot know when the last call returns, so `data` must live as long as the family. No other cache has the same `end`
    /// with the same `data`. They do with an object only what fits its layout, and the destructor accepts any object that the
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
    /// ```
    /// # use larder::objects::{ObjectError, Family, RawCache};
    /// let options = RawCache::builder(std::alloc::Layout::new::<[u8; 5 << 20]>());
    /// assert!(matches!(options.build(&Family::new()?), Err(ObjectError::Layout { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`ObjectError`].
    pub fn build(self, family: &Family) -> Result<RawCache, ObjectError> {
        Ok(RawCache {
            cache: CacheRef::of(family, self.config)?,
            construct: self.construct,
        })
    }
}
