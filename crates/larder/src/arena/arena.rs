//! The arena as users see it.

use core::fmt;
use core::sync::atomic::Ordering;

use super::check::{check, round_up};
use super::core::{Extent, Kind, NONE, Want};
use super::error::{ArenaError, Refusal};
use super::import::Import;
use super::quantum::{Quantum, take_back};
use super::ranges::Ranges;
use super::request::Request;

/// Ranges of an integer resource: addresses, page numbers, identifiers, anything that is counted.
///
/// An arena never looks at what it hands out. It may be used from all threads; sizes with a quantum cache take no lock.
/// Made by an [`ArenaBuilder`](super::ArenaBuilder).
///
/// The child of a fork goes on with its copy: the lock is taken around the fork. What another thread of the parent was
/// just moving between its magazines, or importing, is lost to the child's copy. Nothing here may be called from a signal
/// handler.
///
/// When an arena is dropped, imported spans in which nothing is allocated go back to the source. Others stay with the
/// callers that hold parts of them.
///
/// ```
/// use larder::arena::{Arena, ArenaError};
/// let ids = Arena::builder("ids").build()?;
/// ids.add(1, 100)?;
/// let id = ids.alloc(1)?;
/// ids.free(id, 1)?;
/// assert!(matches!(ids.free(id, 1), Err(ArenaError::NotAllocated { .. })), "freed once");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Arena {
    pub(super) ranges: Ranges,
    /// Cache n has segments of n + 1 quanta.
    pub(super) quanta: Vec<Quantum>,
    /// The quantum is two to this power.
    pub(super) shift: u32,
}

impl Arena {
    /// Takes `size` units, rounded up to a multiple of the quantum, anywhere.
    ///
    /// Constant time: from a quantum cache without a lock; else, under instant fit, a bit scan and at most 32 looks before
    /// a source is asked. Searching to the end happens before it fails, and emptying the quantum caches.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let pages = Arena::builder("pages").quantum(4096).quantum_max(4 * 4096).build()?;
    /// pages.add(1 << 30, 1 << 24)?;
    /// let addr = pages.alloc(5000)?;
    /// assert_eq!(addr % 4096, 0);
    /// pages.free(addr, 5000)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArenaError::Empty`], [`ArenaError::TooLarge`]; [`ArenaError::NoSpace`], [`ArenaError::Limit`],
    /// [`ArenaError::Source`], [`ArenaError::Memory`]. Segments that other threads are just moving between magazines, and
    /// spans that they are importing, may be missed.
    #[inline]
    pub fn alloc(&self, size: u64) -> Result<u64, ArenaError> {
        if let Some(cache) = self.quantum_of(size)
            && let Ok(addr) = cache.alloc(&self.ranges)
        {
            return Ok(addr);
        }
        self.alloc_slow(size)
    }

    #[cold]
    fn alloc_slow(&self, size: u64) -> Result<u64, ArenaError> {
        round_up(self.name(), size, self.quantum())
            .and_then(|size| self.take_hard(&Want::aligned(size, self.quantum())))
            .inspect_err(|_| self.ranges.lock().guard.fails += 1)
    }

    /// Takes what a [`Request`] describes. Never from a quantum cache.
    ///
    /// Under instant fit constant time when some segment is certainly large enough and there are no bounds; else it looks at
    /// free segments until one fits, at all of them before it fails.
    ///
    /// ```
    /// # use larder::arena::{Arena, Request};
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(1, 100)?;
    /// assert_eq!(ids.xalloc(&Request::new(8).align(16))?, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), and [`ArenaError::Align`], [`ArenaError::Phase`], [`ArenaError::Nocross`],
    /// [`ArenaError::Bounds`].
    pub fn xalloc(&self, request: &Request) -> Result<u64, ArenaError> {
        check(request, self.name(), self.quantum())
            .and_then(|want| self.take_hard(&want))
            .inspect_err(|_| self.ranges.lock().guard.fails += 1)
    }

    /// Gives back what was taken: the address and the size, as asked for or rounded up to the quantum.
    ///
    /// Constant time on average (a hash chain is followed); without a lock where a quantum cache takes it.
    ///
    /// ```
    /// # use larder::arena::{Arena, ArenaError};
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(0, 10)?;
    /// let first = ids.alloc(4)?;
    /// assert!(matches!(ids.free(first, 3), Err(ArenaError::WrongSize { allocated: 4, .. })));
    /// ids.free(first, 4)?;
    /// assert_eq!(ids.stats().free, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArenaError::NotAllocated`] when no allocation begins at `addr`, [`ArenaError::WrongSize`] when it has another size;
    /// [`ArenaError::Empty`] and [`ArenaError::TooLarge`] for sizes that no allocation has. Nothing is freed then.
    #[inline]
    pub fn free(&self, addr: u64, size: u64) -> Result<(), ArenaError> {
        if let Some(cache) = self.quantum_of(size)
            && let Some(tag) = cache.glimpse_back(&self.ranges, addr)
        {
            cache.stock.put(tag as usize, &cache.supply(&self.ranges));
            return Ok(());
        }
        self.free_slow(addr, size)
    }

    #[cold]
    fn free_slow(&self, addr: u64, size: u64) -> Result<(), ArenaError> {
        let arena = self.name();
        let rounded = round_up(arena, size, self.quantum())?;
        let not_allocated = ArenaError::NotAllocated { arena, addr, size };
        let mut locked = self.ranges.lock();
        let number = locked.segments().taken_at(addr);
        let tag = self.ranges.table.tags.get(number);
        if number == NONE || tag.kind() == Kind::Cached {
            return Err(not_allocated);
        }
        let allocated = tag.size();
        if allocated != rounded {
            return Err(ArenaError::WrongSize {
                arena,
                addr,
                size,
                allocated,
            });
        }
        if tag.kind() == Kind::Allocated {
            locked.segments().free(number);
            self.ranges.release_idle(locked, false);
            return Ok(());
        }
        // Lent by a quantum cache, but the look without the lock missed it.
        if !take_back(tag, addr) {
            return Err(not_allocated);
        }
        drop(locked);
        if let Some(cache) = self.quantum_of(allocated) {
            cache
                .stock
                .put(number as usize, &cache.supply(&self.ranges));
        }
        Ok(())
    }

    /// Whether an address lies in one of the arena's spans, allocated or not. O(log spans).
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(10, 5)?;
    /// assert!(ids.contains(14) && !ids.contains(15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn contains(&self, addr: u64) -> bool {
        self.ranges.lock().segments().span_of(addr) != NONE
    }

    /// The name that it was made with; errors begin with it.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// assert_eq!(Arena::builder("ports").build()?.name(), "ports");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.ranges.name
    }

    /// What all sizes and addresses are multiples of.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// assert_eq!(Arena::builder("pages").quantum(4096).build()?.quantum(), 4096);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn quantum(&self) -> u64 {
        self.ranges.table.quantum
    }

    /// Adds a span by hand. It stays for as long as the arena does.
    ///
    /// O(log spans).
    ///
    /// ```
    /// # use larder::arena::{Arena, ArenaError};
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(100, 50)?;
    /// assert_eq!(ids.alloc(50)?, 100);
    /// assert!(matches!(ids.add(149, 1), Err(ArenaError::Overlap { other: 100, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArenaError::Span`], [`ArenaError::Overlap`], [`ArenaError::Limit`], [`ArenaError::Memory`].
    pub fn add(&self, addr: u64, size: u64) -> Result<(), ArenaError> {
        self.ranges.add(Extent { addr, size })
    }

    /// Most units that all spans together may have.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// assert_eq!(Arena::builder("ids").limit(10).build()?.limit(), 10);
    /// assert_eq!(Arena::builder("ids").build()?.limit(), u64::MAX);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.ranges.limit()
    }

    /// Changes the limit. A lower one takes nothing away; it only keeps further spans out.
    ///
    /// ```
    /// # use larder::arena::{Arena, ArenaError};
    /// let ids = Arena::builder("ids").limit(10).build()?;
    /// assert!(matches!(ids.add(0, 11), Err(ArenaError::Limit { limit: 10, .. })));
    /// ids.set_limit(11);
    /// ids.add(0, 11)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_limit(&self, units: u64) {
        self.ranges.limit.store(units, Ordering::Relaxed);
    }

    /// The number of the cache for a size, if there is one: a shift and a comparison.
    #[inline]
    pub(super) fn quantum_number(&self, size: u64) -> Option<usize> {
        let number = usize::try_from(size.wrapping_sub(1) >> self.shift).ok()?;
        (number < self.quanta.len()).then_some(number)
    }

    /// The cache for a size, if there is one.
    #[inline]
    fn quantum_of(&self, size: u64) -> Option<&Quantum> {
        self.quanta.get(self.quantum_number(size)?)
    }

    /// Takes a request for a consumer. Before it fails, it empties the quantum caches, so that their segments are joined, and
    /// returns idle imported spans.
    fn take_hard(&self, want: &Want) -> Result<u64, ArenaError> {
        let take = || self.ranges.take(want, Kind::Allocated);
        let taken = take().or_else(|error| {
            // Segments in magazines may be the missing neighbours, and their tags may be needed.
            if self.empty_caches() > 0
                && let Ok(tag) = take()
            {
                return Ok(tag);
            }
            // The source or the limit may have room for one large span instead of several small ones.
            if self.ranges.release_idle(self.ranges.lock(), true) > 0 {
                return take();
            }
            Err(error)
        })?;
        Ok(self.ranges.table.tags.get(taken).start())
    }

    /// Ends a working-set interval: what the quantum caches did not need since the last call is freed, and imported
    /// spans that are free as a whole go back to the source. Returns how many units went there.
    ///
    /// O(what is freed).
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let arena = Arena::builder("ids").quantum_max(4).build()?;
    /// arena.add(0, 1000)?;
    /// let id = arena.alloc(1)?;
    /// arena.free(id, 1)?;
    /// arena.maintain();
    /// arena.trim();
    /// assert_eq!(arena.stats().free, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn maintain(&self) -> u64 {
        for cache in &self.quanta {
            cache.stock.reap(usize::MAX, &cache.supply(&self.ranges));
        }
        self.ranges.release_idle(self.ranges.lock(), true)
    }

    /// Empties the quantum caches, those of all CPUs, and gives imported spans that are free as a whole back to the
    /// source. Returns how many units went there. A round that another thread is just moving may stay.
    ///
    /// O(what is freed), and a barrier on all CPUs for each cache.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").quantum_max(4).build()?;
    /// ids.add(0, 1000)?;
    /// ids.free(ids.alloc(1)?, 1)?;
    /// assert!(ids.stats().free < 1000, "it lies in a magazine");
    /// ids.trim();
    /// assert_eq!(ids.stats().free, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) -> u64 {
        self.empty_caches();
        self.ranges.release_idle(self.ranges.lock(), true)
    }

    /// Empties the quantum caches. Says how many segments were freed.
    fn empty_caches(&self) -> usize {
        self.quanta
            .iter()
            .map(|cache| cache.stock.drain(&cache.supply(&self.ranges)))
            .sum()
    }
}

impl Import for Arena {
    fn import(&self, size: u64, align: u64) -> Result<Extent, Refusal> {
        let addr = if align <= self.quantum() {
            self.alloc(size)?
        } else {
            self.xalloc(&Request::new(size).align(align))?
        };
        let size = round_up(self.name(), size, self.quantum())?;
        Ok(Extent { addr, size })
    }

    fn release(&self, span: Extent) {
        let freed = self.free(span.addr, span.size);
        debug_assert!(freed.is_ok(), "{freed:?}");
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.ranges.source.is_some() {
            self.trim();
        }
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("name", &self.name())
            .field("quantum", &self.quantum())
            .field("fit", &self.ranges.fit)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
