//! What a cache is built with.

use std::sync::Arc;
use std::time::Duration;

use crate::error::CacheError;
use crate::io::{Shared, Storage};
use crate::state::{DirtyLimits, MakeRule, State, by_name, default_rule, own};
use crate::table::Table;
use larder::os::{page_size, pressure::memory_some_avg10};
use larder::pages::PagePool;
use larder_policy::{Policy, PolicyError};

/// Says how large a cache is and what rules it; [`BlockCache::builder`](crate::BlockCache::builder) begins one.
///
/// ```
/// use larder_cache::{BlockCache, MemoryStorage};
/// use larder::pages::PagePool;
/// let cache = BlockCache::builder(MemoryStorage::default())
///     .bytes(16 << 20)
///     .most_bytes(64 << 20)
///     .policy("lirs")
///     .read_ahead(0)
///     .dirty_age(std::time::Duration::from_secs(5))
///     .dirty_share(0.25)
///     .pool(PagePool::new()?)
///     .build();
/// # let _ = cache;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct BlockCacheBuilder {
    storage: Box<dyn Storage>,
    pool: Option<PagePool>,
    bytes: usize,
    most: Option<usize>,
    policy: MakeRule,
    read_ahead: usize,
    read_threads: usize,
    dirty_age: Duration,
    dirty_share: f64,
    pressure: Arc<Pressure>,
}

/// Percent of the last ten seconds in which a program waited for memory.
pub(crate) type Pressure = dyn Fn() -> Option<f64> + Send + Sync;

impl BlockCacheBuilder {
    pub(crate) fn new(storage: Box<dyn Storage>) -> Self {
        Self {
            storage,
            pool: None,
            bytes: 64 << 20,
            most: None,
            policy: default_rule(),
            read_ahead: 32,
            read_threads: 4,
            dirty_age: Duration::from_secs(30),
            dirty_share: 0.5,
            pressure: Arc::new(memory_some_avg10),
        }
    }

    /// Takes what a settings file says about block caches in place of what was said before; what is said later counts.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, MemoryStorage};
    /// use larder::settings::Settings;
    /// let settings: Settings = "version = 1\n[cache]\npolicy = \"lirs\"\nbytes = 1048576\n".parse()?;
    /// let cache = BlockCache::builder(MemoryStorage::default()).settings(&settings).build()?;
    /// let stats = cache.stats();
    /// assert_eq!((stats.policy, stats.capacity * cache.block_size()), ("lirs", 1 << 20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "settings")]
    pub fn settings(mut self, settings: &larder::settings::Settings) -> Self {
        let cache = settings.cache();
        self.bytes = cache.bytes.unwrap_or(self.bytes);
        match &cache.policy {
            Some(name) => self.policy(name),
            None => self,
        }
    }

    /// Bytes of blocks in memory; 64 MiB if nothing is said.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).build()?;
    /// let file = cache.file(FileId(1))?;
    /// for index in 0..1000 {
    ///     cache.handle().read(&file, index)?;
    /// }
    /// assert_eq!(cache.stats().resident * cache.block_size(), 1 << 20);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// The most that [`BlockCache::set_bytes`](crate::BlockCache::set_bytes) may ask for; as much as the cache begins with if nothing is said. Tables are made
    /// for so many.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).most_bytes(4 << 20).build()?;
    /// assert!(cache.set_bytes(4 << 20).is_ok());
    /// assert!(cache.set_bytes(5 << 20).is_err());
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn most_bytes(mut self, bytes: usize) -> Self {
        self.most = Some(bytes);
        self
    }

    /// The replacement rule, by [name](larder_policy::rules); `adaptive` if nothing is said.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).policy("lirs").build()?;
    /// assert_eq!(cache.stats().policy, "lirs");
    /// assert!(BlockCache::builder(MemoryStorage::default()).policy("best").build().is_err());
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn policy(mut self, name: &str) -> Self {
        self.policy = by_name(name.to_owned());
        self
    }

    /// A replacement rule of your own, for a number of frames that the cache gives; `name` is what statistics call it.
    ///
    /// It is compiled together with the cache as the rules of the registry are, so its calls cost no more than theirs.
    ///
    /// Dirty blocks are pinned for it. Those that an eviction had to pass are [parked](Policy::park) until they are clean or used.
    ///
    /// The cache calls it under its lock, in the middle of its own changes. So it must not panic: the lists of the cache disagree after
    /// that, a block may be found with another one's bytes, and threads may wait for ever. A program whose rule has panicked must not use
    /// the cache any more.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, MemoryStorage};
    /// use larder_policy::Sieve;
    /// let builder = BlockCache::builder(MemoryStorage::default());
    /// let cache = builder.own_policy("mine", Sieve::new).build()?;
    /// assert_eq!(cache.stats().policy, "mine");
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn own_policy<P: Policy>(
        mut self,
        name: &'static str,
        make: impl FnOnce(usize) -> Result<P, PolicyError> + Send + 'static,
    ) -> Self {
        self.policy = own(name, make);
        self
    }

    /// Most blocks that are read ahead of a sequential reader; 32 if nothing is said, 0 turns it off.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).read_ahead(0).build()?;
    /// let file = cache.file(FileId(1))?;
    /// let mut handle = cache.handle();
    /// for index in 0..10 {
    ///     handle.read(&file, index)?;
    /// }
    /// assert_eq!(cache.stats().misses, 10, "nothing came before it was asked for");
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn read_ahead(mut self, blocks: usize) -> Self {
        self.read_ahead = blocks;
        self
    }

    /// Most threads of the cache that read for [`CacheHandle::start_read`](crate::CacheHandle::start_read), so many reads are under way at
    /// a time; 4 if nothing is said. They are started as they are needed. With 0 the caller reads.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).read_threads(0).build()?;
    /// let file = cache.file(FileId(1))?;
    /// let caller = std::thread::current().id();
    /// cache.handle().start_read(&file, 0..1, move |_| assert_eq!(std::thread::current().id(), caller));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn read_threads(mut self, threads: usize) -> Self {
        self.read_threads = threads;
        self
    }

    /// How long a block may be dirty until [`BlockCache::maintain`](crate::BlockCache::maintain), or the
    /// [helper](crate::BlockCache::start_helper), writes it; 30 seconds if nothing is said. Counted in hundredths of a
    /// second, and for 248 days at most. With zero each call writes all that is dirty.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # use std::time::Duration;
    /// for (age, dirty) in [(Duration::ZERO, 0), (Duration::from_secs(3600), 1)] {
    ///     let cache = BlockCache::builder(MemoryStorage::default()).dirty_age(age).build()?;
    ///     cache.handle().overwrite(&cache.file(FileId(1))?, 0)?.fill(7);
    ///     cache.maintain()?;
    ///     assert_eq!(cache.stats().dirty, dirty);
    /// }
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn dirty_age(mut self, age: Duration) -> Self {
        self.dirty_age = age;
        self
    }

    /// The share of the cache that may be dirty, from 0 to 1; a half if nothing is said. A thread that makes one more block
    /// dirty writes some first, and [`BlockCache::maintain`](crate::BlockCache::maintain) writes what is beyond.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).dirty_share(0.25).build()?;
    /// let file = cache.file(FileId(1))?;
    /// for index in 0..200 {
    ///     cache.handle().overwrite(&file, index)?.fill(7);
    ///     assert!(cache.stats().dirty <= 65);
    /// }
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn dirty_share(mut self, share: f64) -> Self {
        self.dirty_share = share;
        self
    }

    /// Takes pages from this pool, which others may use as well; a pool of its own if nothing is said.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # use larder::pages::PagePool;
    /// let pool = PagePool::new()?;
    /// let cache = BlockCache::builder(MemoryStorage::default()).pool(pool.clone()).build()?;
    /// cache.handle().read(&cache.file(FileId(1))?, 0)?;
    /// assert!(pool.stats().out_bytes >= cache.block_size());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pool(mut self, pool: PagePool) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Where [`BlockCache::maintain`](crate::BlockCache::maintain) learns for how many percent of the last ten seconds a program waited for memory;
    /// the machine's `/proc/pressure/memory` by default. A container has its own in its cgroup's `memory.pressure`.
    ///
    /// ```
    /// use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).pressure(|| Some(50.0)).build()?;
    /// let file = cache.file(FileId(1))?;
    /// for index in 0..32 {
    ///     cache.handle().read(&file, index)?;
    /// }
    /// assert_eq!(cache.maintain()?, 2 * cache.block_size());
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn pressure(mut self, percent: impl Fn() -> Option<f64> + Send + Sync + 'static) -> Self {
        self.pressure = Arc::new(percent);
        self
    }

    /// What the owners of the cache share, with the pressure and the readahead.
    pub(crate) fn make(self) -> Result<(Shared, Arc<Pressure>, usize), CacheError> {
        let most_bytes = self.most.unwrap_or(self.bytes);
        let (frames, most) = (self.bytes / page_size(), most_bytes / page_size());
        if frames == 0 || frames > most {
            return Err(CacheError::Size {
                bytes: self.bytes,
                block: page_size(),
                most: most_bytes,
            });
        }
        let limits = DirtyLimits::new(self.dirty_share, self.dirty_age);
        let limits = limits.ok_or(CacheError::Share {
            share: self.dirty_share,
        })?;
        let pool = match self.pool {
            Some(pool) => pool,
            None => PagePool::new().map_err(|error| CacheError::Pool(error.to_string()))?,
        };
        let mut rule = (self.policy)(most)?;
        if frames < most {
            rule.1.resize(frames)?;
        }
        let state = State::new(rule, most, limits)?;
        let table = Table::new(most, pool)?;
        let shared = Shared::new(table, state, self.storage, self.read_threads);
        Ok((shared, self.pressure, self.read_ahead))
    }
}
