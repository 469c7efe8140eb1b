//! What the caches have and did.

/// Numbers of all caches of the process, which take the place of those that SQLite does not have any more. They are read while
/// other threads go on, so they belong to slightly different moments.
///
/// ```
/// let stats = larder_sqlite::stats();
/// assert_eq!((stats.bytes, stats.hit_ratio()), (0, None)); // nothing is installed
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of the pages that are in the caches.
    pub bytes: usize,
    /// Bytes of memory for them: with what each page has besides, and free memory that was not given back.
    pub held_bytes: usize,
    /// Most bytes that the pages may have.
    pub budget_bytes: Option<usize>,
    /// Pages that SQLite found in a cache.
    pub hits: u64,
    /// Pages that it did not find, and that came in.
    pub misses: u64,
    /// Pages that left to make room.
    pub evictions: u64,
    /// The caches that there are. The sums above are also of those that are gone.
    pub caches: Vec<CacheStats>,
}

/// Numbers of one cache: a connection has one for each of its databases.
///
/// ```
/// for cache in larder_sqlite::stats().caches {
///     println!("{} of {} pages, {} in use", cache.pages, cache.limit, cache.pinned);
/// }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Bytes of a page.
    pub page_bytes: usize,
    /// False: a database in memory, whose pages may not leave.
    pub purgeable: bool,
    /// Pages that it may have, by `PRAGMA cache_size`.
    pub limit: usize,
    /// Pages that it has.
    pub pages: usize,
    /// Of these, how many are in use or dirty.
    pub pinned: usize,
    /// As in [`Stats`].
    pub hits: u64,
    /// As in [`Stats`].
    pub misses: u64,
    /// As in [`Stats`].
    pub evictions: u64,
}

impl Stats {
    pub(crate) const NONE: Self = Self {
        bytes: 0,
        held_bytes: 0,
        budget_bytes: None,
        hits: 0,
        misses: 0,
        evictions: 0,
        caches: Vec::new(),
    };

    /// Hits of all that was looked for. None if nothing was.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        let all = self.hits + self.misses;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }

    pub(crate) fn add(&mut self, cache: &CacheStats) {
        self.hits += cache.hits;
        self.misses += cache.misses;
        self.evictions += cache.evictions;
    }
}
