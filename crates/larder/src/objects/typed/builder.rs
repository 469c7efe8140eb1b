//! How a cache of values is made.

use core::alloc::Layout;
use core::convert::Infallible;
use core::marker::PhantomData;

use super::super::cache::Config;
use super::super::error::ObjectError;
use super::super::family::Family;
use super::super::stats::Name;
use super::ObjectCache;
use super::cache::Calls;

/// Settings of a cache that is to be.
///
/// ```
/// use larder::objects::{Family, ObjectCache};
/// let family = Family::new()?;
/// let cache = ObjectCache::builder()
///     .name("counter")
///     .align(64)
///     .limit_bytes(1 << 20)
///     .build(&family, || 0_u64)?;
/// assert_eq!(cache.stats().stride, 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ObjectCacheBuilder<T, E = Infallible> {
    config: Config,
    align: usize,
    reclaim: Option<Box<dyn Fn() + Send + Sync>>,
    of: PhantomData<(T, E)>,
}

impl<T: Send + 'static> ObjectCache<T> {
    /// A cache whose constructor cannot fail.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::new(&Family::new()?, || vec![1, 2, 3])?;
    /// assert_eq!(*cache.get()?, [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`ObjectError`]; a type without size is one that no cache holds.
    pub fn new(
        family: &Family,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<Self, ObjectError> {
        Self::try_new(family, move || Ok(make()))
    }
}

impl<T: Send + 'static, E: 'static> ObjectCache<T, E> {
    /// A cache whose constructor may fail.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache, ObjectError};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::<u64, &str>::try_new(&family, || Err("no"))?;
    /// assert_eq!(cache.get().err(), Some(ObjectError::Constructor("no")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn try_new(
        family: &Family,
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, ObjectError> {
        Self::builder().try_build(family, make)
    }

    /// Settings first.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::builder().align(64).build(&Family::new()?, || 0_u64)?;
    /// assert_eq!(cache.stats().stride, 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn builder() -> ObjectCacheBuilder<T, E> {
        ObjectCacheBuilder::new()
    }
}

impl<T: Send + 'static> ObjectCacheBuilder<T> {
    /// Makes a cache whose constructor cannot fail.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::builder().name("seven").build(&Family::new()?, || 7)?;
    /// assert_eq!(*cache.get()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`ObjectError`].
    pub fn build(
        self,
        family: &Family,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<ObjectCache<T>, ObjectError> {
        self.try_build(family, move || Ok(make()))
    }
}

impl<T: Send + 'static, E: 'static> ObjectCacheBuilder<T, E> {
    pub(super) fn new() -> Self {
        Self {
            config: Config::new(Layout::new::<T>()),
            align: align_of::<T>(),
            reclaim: None,
            of: PhantomData,
        }
    }

    /// A name for statistics, up to 31 bytes.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::builder().name("inode").build(&Family::new()?, || 0_u64)?;
    /// assert_eq!(cache.stats().name.as_str(), "inode");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.config.name = Name::new(name);
        self
    }

    /// Aligns values to at least `align` bytes, a power of two up to a page: 64 or 128 keeps values of different threads
    /// out of each other's cache lines.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::builder().align(128).build(&Family::new()?, || 0_u64)?;
    /// assert_eq!(cache.stats().stride, 128);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn align(mut self, align: usize) -> Self {
        self.align = align;
        self
    }

    /// Most bytes of slabs; past it a get is an error.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::builder().limit_bytes(1).build(&Family::new()?, || 0_u64)?;
    /// assert!(cache.get().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit_bytes(mut self, bytes: usize) -> Self {
        self.config.limit_bytes = bytes;
        self
    }

    /// Slabs stay with this cache until it is dropped, and values stay constructed as long.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::builder().type_stable(true).build(&Family::new()?, || 0_u64)?;
    /// drop(cache.get()?);
    /// assert_eq!((cache.trim(), cache.stats().slabs), (0, 1), "its slab stays");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn type_stable(mut self, yes: bool) -> Self {
        self.config.type_stable = yes;
        self
    }

    /// Fewest pages of a slab, up to 64. Large slabs make a cache that is dropped with many values go faster.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::builder().slab_pages(16).build(&family, || [0_u8; 64])?;
    /// assert!(cache.stats().objects_per_slab >= 15 * 4096 / 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn slab_pages(mut self, pages: usize) -> Self {
        self.config.slab_pages = pages;
        self
    }

    /// Whether what is left over in a slab goes before its first value in turn, so that values of different slabs do not
    /// meet in the same sets of the CPU's caches. On by default; without it the first value begins at a page.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::builder().colour(false).build(&family, || [0_u8; 5000])?;
    /// let slab: Result<Vec<_>, _> = (0..cache.stats().objects_per_slab).map(|_| cache.get()).collect();
    /// assert!(slab?.iter().any(|value| value.as_ptr() as usize % 4096 == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn colour(mut self, yes: bool) -> Self {
        self.config.colour = yes;
        self
    }

    /// Rounds of a magazine at first and at most (up to 255).
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache};
    /// let cache = ObjectCache::builder().magazine(16, 32).build(&Family::new()?, || 0_u64)?;
    /// assert_eq!(cache.stats().magazine_rounds, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn magazine(mut self, rounds: usize, most: usize) -> Self {
        self.config.rounds = Some((rounds, most));
        self
    }

    /// Called without any lock when memory is short: puts values back that the user can do without. It must not drop
    /// the cache.
    ///
    /// ```
    /// # use larder::{objects::{Family, ObjectCache}, pages::PagePool};
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// static ASKED: AtomicBool = AtomicBool::new(false);
    /// let family = Family::builder().pages(PagePool::builder().limit_bytes(1 << 20)).build()?;
    /// let cache = ObjectCache::builder()
    ///     .reclaim(|| ASKED.store(true, Ordering::Relaxed))   // a program would clear a list of spare values
    ///     .build(&family, || 0_u64)?;
    /// let _held = family.get_large(768 << 10, 1)?;
    /// assert!(family.get_large(512 << 10, 1).is_err());
    /// assert!(ASKED.load(Ordering::Relaxed), "memory was short");
    /// # drop(cache);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reclaim(mut self, f: impl Fn() + Send + Sync + 'static) -> Self {
        self.reclaim = Some(Box::new(f));
        self
    }

    /// Makes a cache whose constructor may fail.
    ///
    /// ```
    /// # use larder::objects::{Family, ObjectCache, ObjectError};
    /// let cache = ObjectCache::builder().try_build(&Family::new()?, || "x".parse::<u64>())?;
    /// assert!(matches!(cache.get(), Err(ObjectError::Constructor(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`ObjectError`].
    pub fn try_build(
        mut self,
        family: &Family,
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<ObjectCache<T, E>, ObjectError> {
        let (size, align) = (size_of::<T>(), self.align);
        self.config.layout = Layout::from_size_align(size, align)
            .and_then(|layout| layout.align_to(align_of::<T>()))
            .map_err(|_| ObjectError::Layout { size, align })?;
        ObjectCache::with(
            family,
            self.config,
            Calls {
                make: Box::new(make),
                reclaim: self.reclaim,
            },
        )
    }
}

impl<T, E> core::fmt::Debug for ObjectCacheBuilder<T, E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ObjectCacheBuilder")
            .field("config", &self.config)
            .field("align", &self.align)
            .finish_non_exhaustive()
    }
}
