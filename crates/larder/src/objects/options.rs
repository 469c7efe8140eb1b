//! How a cache of objects as bytes is made.

use core::ptr::NonNull;

use super::cache::{CacheRef, Config};
use super::error::CreateError;
use super::family::Family;
use super::raw::RawCache;
use super::stats::Name;

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
    pub(super) config: Config,
    pub(super) construct: Option<unsafe fn(NonNull<u8>, *mut ()) -> bool>,
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
