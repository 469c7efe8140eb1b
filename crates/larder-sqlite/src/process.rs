//! What all caches of the process share: memory, the budget and the list of caches.

use core::alloc::Layout;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use larder::objects::{Family, RawCache};
use larder::pages::PoolError;

use crate::stats::{CacheStats, Stats};

/// Most pages that caches below their share ask others for at once.
const MOST_WANTED: usize = 64;
/// Free bytes that stay when caches end, or a quarter of those in use if that is more. Caches of queries come and go.
const SPARE: usize = 8 << 20;
/// Bytes of ended caches after which free memory is looked at: to look takes a lock and all caches.
const LOOK: usize = 1 << 20;
/// System pages of a slab: 16 of 4 KiB hold 15 pages of SQLite's usual size with what it has beside them, almost without a rest.
const SLAB: usize = 16;

/// One for the process; tests have their own.
#[derive(Debug)]
pub(crate) struct Process {
    family: OnceLock<Family>,
    /// Bytes that the pages of purgeable caches may have; `usize::MAX`: any number.
    budget: AtomicUsize,
    /// Bytes that they have.
    used: AtomicUsize,
    /// Purgeable caches.
    sharers: AtomicUsize,
    /// Pages that caches below their share lack, for those above it to give.
    wanted: AtomicUsize,
    /// Bytes of caches that have ended since free memory was looked at.
    ended: AtomicUsize,
    /// Free bytes that could not go back to the system then, since they lie between pages that stay.
    stayed: AtomicUsize,
    caches: Mutex<Caches>,
}

#[derive(Debug)]
struct Caches {
    there: Vec<Registered>,
    /// For frames of each length that there was. They stay, as the process does.
    memory: Vec<&'static RawCache>,
    /// What those did that are gone.
    gone: Stats,
}

#[derive(Debug)]
struct Registered(*const Counters);

// SAFETY: counters are atomics, and a cache takes itself off the list before it goes.
unsafe impl Send for Registered {}

/// Numbers of one cache. Its owner alone writes them, and others read.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) page_bytes: AtomicUsize,
    /// Bytes of a page and of what it has besides.
    pub(crate) frame_bytes: AtomicUsize,
    pub(crate) purgeable: AtomicBool,
    pub(crate) limit: AtomicUsize,
    pub(crate) pages: AtomicUsize,
    pub(crate) pinned: AtomicUsize,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) evictions: AtomicU64,
}

/// Adds one to a number that no other thread writes: no atomic instruction is needed.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

impl Counters {
    fn stats(&self) -> CacheStats {
        CacheStats {
            page_bytes: self.page_bytes.load(Relaxed),
            purgeable: self.purgeable.load(Relaxed),
            limit: self.limit.load(Relaxed),
            pages: self.pages.load(Relaxed),
            pinned: self.pinned.load(Relaxed),
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
        }
    }
}

/// May a cache have one page more?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    /// The budget is used up, or the cache has as many pages as it may.
    None,
    /// Another cache lacks a page, or all together have too many, and this one has more than its share: it should give one.
    Less,
}

impl Process {
    pub(crate) const fn new() -> Self {
        Self {
            family: OnceLock::new(),
            budget: AtomicUsize::new(usize::MAX),
            used: AtomicUsize::new(0),
            sharers: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            stayed: AtomicUsize::new(0),
            caches: Mutex::new(Caches {
                there: Vec::new(),
                memory: Vec::new(),
                gone: Stats::NONE,
            }),
        }
    }

    fn caches(&self) -> MutexGuard<'_, Caches> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The family of objects, which is made when it is first asked for.
    pub(crate) fn family(&self) -> Result<&Family, PoolError> {
        if let Some(family) = self.family.get() {
            return Ok(family);
        }
        let family = Family::new()?;
        Ok(self.family.get_or_init(|| family))
    }

    /// Memory for frames of a layout. The caches share it: what one gives back serves another, even where it lies between frames that
    /// stay. None: no memory.
    pub(crate) fn memory(&self, layout: Layout) -> Option<&'static RawCache> {
        let all = &mut self.caches().memory;
        let same = |memory: &&&RawCache| memory.stride() == layout.size();
        if let Some(memory) = all.iter().find(same) {
            return Some(memory);
        }
        all.try_reserve(1).ok()?;
        let mut new = Vec::new();
        new.try_reserve_exact(1).ok()?;
        let builder = RawCache::builder(layout).slab_pages(SLAB);
        new.push(builder.build(self.family().ok()?).ok()?);
        let new = &new.leak()[0];
        all.push(new);
        Some(new)
    }

    pub(crate) fn set_budget(&self, bytes: Option<usize>) {
        self.budget.store(bytes.unwrap_or(usize::MAX), Relaxed);
    }

    /// None: any number of bytes.
    fn budget(&self) -> Option<usize> {
        Some(self.budget.load(Relaxed)).filter(|&bytes| bytes != usize::MAX)
    }

    /// Pages of `bytes` that the budget has room for.
    pub(crate) fn budget_pages(&self, bytes: usize) -> usize {
        self.budget().map_or(usize::MAX, |budget| budget / bytes)
    }

    /// Asks for room for a page of `bytes`, for a cache that has `pages` of them. One that has few gets it in any case.
    pub(crate) fn room(&self, bytes: usize, pages: usize, least: usize) -> Room {
        let Some(budget) = self.budget().filter(|_| pages >= least) else {
            return Room::Free;
        };
        let share = self.share(budget, bytes, least);
        if self.must_give(budget, pages, share) {
            return Room::Less;
        }
        if self.used.load(Relaxed).saturating_add(bytes) <= budget {
            return Room::Free;
        }
        if pages < share && self.wanted.load(Relaxed) < MOST_WANTED {
            self.wanted.fetch_add(1, Relaxed);
        }
        Room::None
    }

    /// The same for a cache that has as many pages as SQLite allows it: there is no room, and it may have to give one.
    pub(crate) fn room_of_full(&self, bytes: usize, pages: usize, least: usize) -> Room {
        match self.budget() {
            Some(budget) if self.must_give(budget, pages, self.share(budget, bytes, least)) => {
                Room::Less
            }
            _ => Room::None,
        }
    }

    /// An equal share of the budget in pages of `bytes`, or the fewest that each cache may have.
    fn share(&self, budget: usize, bytes: usize, least: usize) -> usize {
        let sharers = self.sharers.load(Relaxed).max(1);
        (budget / sharers / bytes).max(least)
    }

    /// Has a cache more than its share, while all have more than the budget or another one wants a page? What it gives is wanted no more.
    fn must_give(&self, budget: usize, pages: usize, share: usize) -> bool {
        let less = |wanted: usize| wanted.checked_sub(1);
        pages > share
            && (self.used.load(Relaxed) > budget
                || self.wanted.fetch_update(Relaxed, Relaxed, less).is_ok())
    }

    /// A purgeable cache has a page more.
    pub(crate) fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
    }

    /// Or less.
    pub(crate) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
    }

    /// A cache comes. False: no memory.
    ///
    /// # Safety
    /// The counters stay where they are until [`leave`](Self::leave).
    pub(crate) unsafe fn enter(&self, counters: &Counters) -> bool {
        let mut caches = self.caches();
        if caches.there.try_reserve(1).is_err() {
            return false;
        }
        caches.there.push(Registered(counters));
        if counters.purgeable.load(Relaxed) {
            self.sharers.fetch_add(1, Relaxed);
        }
        true
    }

    pub(crate) fn leave(&self, counters: &Counters) {
        let mut caches = self.caches();
        let same = |there: &Registered| core::ptr::eq(there.0, counters);
        if let Some(at) = caches.there.iter().position(same) {
            caches.there.swap_remove(at);
            caches.gone.add(&counters.stats());
        }
        if counters.purgeable.load(Relaxed) {
            self.sharers.fetch_sub(1, Relaxed);
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let caches = self.caches();
        let mut all = caches.gone.clone();
        all.budget_bytes = self.budget();
        all.held_bytes = self.held();
        for there in &caches.there {
            // SAFETY: what is on the list is alive, and cannot leave while the lock is held.
            let cache = unsafe { &*there.0 }.stats();
            all.add(&cache);
            all.bytes += cache.pages * cache.page_bytes;
            all.caches.push(cache);
        }
        all
    }

    pub(crate) fn trim(&self) -> usize {
        self.family.get().map_or(0, Family::trim)
    }

    /// Bytes that the system has given.
    fn held(&self) -> usize {
        let family = self.family.get();
        family.map_or(0, |family| family.pool().stats().held_bytes)
    }

    /// A cache is gone that had so many bytes of pages. Free memory goes back to the system when it is much.
    pub(crate) fn ended(&self, bytes: usize) {
        let ended = self.ended.fetch_add(bytes, Relaxed).saturating_add(bytes);
        if ended < LOOK {
            return;
        }
        self.ended.store(0, Relaxed);
        let in_use = self.in_use();
        let free = || self.held().saturating_sub(in_use);
        let more = free().saturating_sub(self.stayed.load(Relaxed));
        if more > SPARE.max(in_use / 4) {
            self.trim();
            self.stayed.store(free(), Relaxed);
        }
    }

    /// Bytes of the pages in all caches, with what these have besides.
    fn in_use(&self) -> usize {
        let of = |there: &Registered| {
            // SAFETY: what is on the list is alive, and cannot leave while the lock is held.
            let cache = unsafe { &*there.0 };
            cache.pages.load(Relaxed) * cache.frame_bytes.load(Relaxed)
        };
        self.caches().there.iter().map(of).sum()
    }

    /// Bytes of pages that count against the budget.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}
