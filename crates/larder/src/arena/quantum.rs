//! Quantum caches: magazines of ready segments for the small multiples of the quantum.
//!
//! A round is the number of a segment's tag. The segment stays allocated in the arena while it goes from magazine to
//! consumer and back; its tag says which of the two has it, so a second free of the same address fails, also when two
//! threads try it at the same moment.

use super::arena::Arena;
use super::error::ArenaError;
use super::request::Want;
use super::tag::{Kind, Tag};
use crate::magazine::{Stock, Supply};

/// Most quantum caches of an arena, as in libumem.
pub(super) const MOST: u64 = 16;

/// The cache of one size.
#[derive(Debug)]
pub(super) struct Quantum {
    pub(super) size: u64,
    pub(super) stock: Stock,
}

impl Quantum {
    /// Where its segments come from and go to.
    #[inline]
    pub(super) fn supply<'a>(&self, arena: &'a Arena) -> Drawer<'a> {
        Drawer {
            arena,
            size: self.size,
        }
    }
}

/// Draws segments of one size from the arena, a magazine's worth under one lock.
#[derive(Debug)]
pub(super) struct Drawer<'a> {
    arena: &'a Arena,
    size: u64,
}

impl Supply for Drawer<'_> {
    type Error = ArenaError;

    fn fetch(&self, rounds: &mut [usize]) -> Result<usize, ArenaError> {
        let want = Want::plain(self.size, self.arena.quantum());
        let Some((first, rest)) = rounds.split_first_mut() else {
            return Ok(0);
        };
        *first = self.arena.take(&want, Kind::Cached)? as usize;
        Ok(1 + self.arena.take_more(&want, Kind::Cached, rest))
    }

    fn accept(&self, rounds: &[usize]) {
        let mut segments = self.arena.lock();
        for &round in rounds {
            segments.free(round as u32);
        }
        self.arena.release_idle(segments, false);
    }
}

impl Arena {
    /// The number of the cache for a size, if there is one: a shift and a comparison.
    #[inline]
    pub(super) fn quantum_number(&self, size: u64) -> Option<usize> {
        let number = usize::try_from(size.wrapping_sub(1) >> self.shift).ok()?;
        (number < self.quanta.len()).then_some(number)
    }

    /// The cache for a size, if there is one.
    #[inline]
    pub(super) fn quantum_of(&self, size: u64) -> Option<&Quantum> {
        self.quanta.get(self.quantum_number(size)?)
    }

    /// Takes a ready segment. Warm: a restartable section, two loads and a store.
    #[inline]
    pub(super) fn alloc_cached(&self, cache: &Quantum) -> Result<u64, ArenaError> {
        let round = cache.stock.get(&cache.supply(self))?;
        let tag = self.shared.tags.get(round as u32);
        tag.set_kind(Kind::Lent);
        Ok(tag.start())
    }

    /// Takes a segment back without the lock, if it is one of `cache` and the table was not just changing. What is returned
    /// is a round for the cache.
    #[inline]
    pub(super) fn glimpse_back(&self, cache: &Quantum, addr: u64) -> Option<u32> {
        let (number, tag) = self.shared.hash.glimpse(&self.shared.tags, addr)?;
        (tag.size() == cache.size && self.take_back(tag, addr)).then_some(number)
    }

    /// Makes a lent segment one of its cache's again. From then on its tag is the caller's, and does not change.
    #[inline]
    pub(super) fn take_back(&self, tag: Tag<'_>, addr: u64) -> bool {
        let size = tag.size();
        if !tag.take_back() {
            return false;
        }
        // Between the look and the exchange the tag may have become another segment's, if a caller freed a segment that it
        // did not hold. Then that other segment is still lent.
        if tag.start() == addr && tag.size() == size {
            return true;
        }
        tag.set_kind(Kind::Lent);
        false
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
    /// arena.reap();
    /// arena.drain();
    /// assert_eq!(arena.stats().free, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reap(&self) -> u64 {
        for cache in &self.quanta {
            cache.stock.reap(usize::MAX, &cache.supply(self));
        }
        self.release_idle(self.lock(), true)
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
    /// ids.drain();
    /// assert_eq!(ids.stats().free, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain(&self) -> u64 {
        self.empty_caches();
        self.release_idle(self.lock(), true)
    }

    /// Empties the quantum caches. Says how many segments were freed.
    pub(super) fn empty_caches(&self) -> usize {
        self.quanta
            .iter()
            .map(|cache| cache.stock.drain(&cache.supply(self)))
            .sum()
    }
}
