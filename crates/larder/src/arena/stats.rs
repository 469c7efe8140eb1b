//! What an arena has done and holds.

use super::arena::Arena;
use super::core::Kind;
use crate::magazine::StockStats;

/// Numbers of an arena, of one moment.
///
/// ```
/// # use larder::arena::Arena;
/// let ids = Arena::builder("ids").build()?;
/// ids.add(0, 100)?;
/// ids.alloc(30)?;
/// let stats = ids.stats();
/// assert_eq!(stats.total, stats.free + stats.allocated);
/// assert_eq!((stats.free, stats.allocs), (70, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaStats {
    /// Units in all spans.
    pub total: u64,
    /// Units in free segments.
    pub free: u64,
    /// Units that were cut from free segments: with consumers, and in the magazines of quantum caches.
    /// [`Arena::in_use`] tells them apart.
    pub allocated: u64,
    /// Units in spans that came from the source.
    pub imported: u64,
    /// Units in spans from the source that are free as a whole, kept for the next need.
    pub idle: u64,
    /// Spans.
    pub spans: u64,
    /// Segments, free and allocated.
    pub segments: u64,
    /// Segments cut from free ones. What a quantum cache recycles is in its own statistics.
    pub allocs: u64,
    /// Segments freed, in the same sense.
    pub frees: u64,
    /// Calls that failed.
    pub fails: u64,
    /// Spans imported.
    pub imports: u64,
    /// Spans given back to the source.
    pub releases: u64,
    /// Bytes of the system's memory that tags and hash may use; magazines apart.
    pub bookkeeping_bytes: usize,
}

impl Arena {
    /// Reads the counters. Constant time, under the lock.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(0, 100)?;
    /// ids.alloc(7)?;
    /// let stats = ids.stats();
    /// assert_eq!((stats.total, stats.allocated, stats.segments), (100, 7, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> ArenaStats {
        let locked = self.ranges.lock();
        let counts = locked.guard.state.counts;
        let table = &self.ranges.table;
        ArenaStats {
            total: counts.total,
            free: counts.free,
            allocated: counts.total - counts.free,
            imported: counts.imported,
            idle: counts.idle,
            spans: counts.spans,
            segments: counts.segments,
            allocs: counts.allocs,
            frees: counts.frees,
            fails: locked.guard.fails,
            imports: locked.guard.imports,
            releases: locked.guard.releases,
            bookkeeping_bytes: table.tags.bytes() + table.hash.bytes(),
        }
    }

    /// The size of each quantum cache's segments, and what its magazines did.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").quantum_max(2).build()?;
    /// for (size, cache) in ids.quantum_stats() {
    ///     println!("size {size}: {} hits, {} misses", cache.pops, cache.misses);
    /// }
    /// assert_eq!(ids.quantum_stats().map(|(size, _)| size).collect::<Vec<_>>(), [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quantum_stats(&self) -> impl Iterator<Item = (u64, StockStats)> + '_ {
        let caches = self.quanta.iter();
        caches.map(|cache| (cache.size, cache.stock.stats()))
    }

    /// Units in consumers' hands: what is allocated without what lies in magazines.
    ///
    /// Reads the tags of all segments, without the lock; what changes meanwhile is counted or not.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").quantum_max(1).build()?;
    /// ids.add(0, 1000)?;
    /// ids.alloc(1)?;
    /// assert_eq!(ids.in_use(), 1);
    /// assert!(ids.stats().allocated > 1, "a magazine's worth was cut");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn in_use(&self) -> u64 {
        let tags = self.ranges.lock().segments().tags();
        (0..tags)
            .map(|number| self.ranges.table.tags.get(number))
            .filter(|tag| matches!(tag.kind(), Kind::Allocated | Kind::Lent))
            .fold(0, |sum: u64, tag| sum.saturating_add(tag.size()))
    }
}
