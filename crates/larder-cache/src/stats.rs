//! What a cache has done.

/// Counts since the cache was made, and what it holds now. Uses that handles have not reported yet are not in it.
///
/// ```
/// let stats = larder_cache::CacheStats::default();
/// assert_eq!(stats.hits, 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Uses that found their block.
    pub hits: u64,
    /// Uses that did not.
    pub misses: u64,
    /// Misses of blocks that the rule still remembered.
    pub refaults: u64,
    /// Blocks read ahead.
    pub read_ahead: u64,
    /// Blocks read ahead that left without a use.
    pub wasted: u64,
    /// Blocks that left to make room.
    pub evictions: u64,
    /// Blocks written to the storage.
    pub written: u64,
    /// Changed blocks that were forgotten and never written: discarded, truncated or invalidated.
    pub discarded: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Blocks in memory.
    pub resident: usize,
    /// Blocks in memory that the storage does not have yet.
    pub dirty: usize,
    /// Files that are open, or have blocks in memory yet.
    pub files: usize,
    /// Most blocks there may be now.
    pub capacity: usize,
    /// Bytes of the cache's tables and lists, without the blocks and without what the storage keeps. The lists of dirty blocks, of
    /// written ones that are not synced and of files are estimated from their lengths.
    pub table_bytes: usize,
    /// The rule's name.
    pub policy: &'static str,
    /// What the rule says of itself, see [`Policy::explain`](larder_policy::Policy::explain).
    pub explanation: Vec<(&'static str, f64)>,
}

/// Counts of one file since it was opened, or of all files of a tenant, and what is in memory of it now.
///
/// ```
/// let stats = larder_cache::FileStats::default();
/// assert_eq!((stats.hits, stats.misses), (0, 0));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStats {
    /// Uses that found their block.
    pub hits: u64,
    /// Uses that did not.
    pub misses: u64,
    /// Misses of blocks that the rule still remembered.
    pub refaults: u64,
    /// Blocks read ahead.
    pub read_ahead: u64,
    /// Blocks read ahead that left without a use.
    pub wasted: u64,
    /// Blocks that left to make room.
    pub evictions: u64,
    /// Blocks written to the storage.
    pub written: u64,
    /// Changed blocks that were forgotten and never written: discarded, truncated or invalidated.
    pub discarded: u64,
    /// Blocks in memory.
    pub resident: usize,
    /// Blocks in memory that the storage does not have yet.
    pub dirty: usize,
}

impl FileStats {
    pub(crate) fn add(&mut self, other: &Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.refaults += other.refaults;
        self.read_ahead += other.read_ahead;
        self.wasted += other.wasted;
        self.evictions += other.evictions;
        self.written += other.written;
        self.discarded += other.discarded;
        self.resident += other.resident;
        self.dirty += other.dirty;
    }
}
