//! Quantum caches: magazines of ready segments for the small multiples of the quantum.
//!
//! A round is the number of a segment's tag. The segment stays allocated in the core while it goes from magazine to
//! consumer and back; its tag says which of the two has it, so a second free of the same address fails, also when two
//! threads try it at the same moment.

use super::core::{Kind, Tag, Want};
use super::error::ArenaError;
use super::ranges::Ranges;
use crate::magazine::{Stock, Supply};

/// The cache of one size.
#[derive(Debug)]
pub(super) struct Quantum {
    pub(super) size: u64,
    pub(super) stock: Stock,
}

impl Quantum {
    /// Where its segments come from and go to.
    #[inline]
    pub(super) fn supply<'a>(&self, ranges: &'a Ranges) -> Drawer<'a> {
        Drawer {
            ranges,
            size: self.size,
        }
    }

    /// Takes a ready segment. Warm: a restartable section, two loads and a store.
    #[inline]
    pub(super) fn alloc(&self, ranges: &Ranges) -> Result<u64, ArenaError> {
        let round = self.stock.get(&self.supply(ranges))?;
        Ok(lend(ranges, round))
    }

    /// Takes a segment back without the lock, if it is one of this cache and the table was not just changing. What is returned
    /// is a round for the cache.
    #[inline]
    pub(super) fn glimpse_back(&self, ranges: &Ranges, addr: u64) -> Option<u32> {
        let table = &ranges.table;
        let (number, tag) = table.hash.glimpse(&table.tags, addr)?;
        (tag.size() == self.size && take_back(tag, addr)).then_some(number)
    }
}

/// Marks a round's segment as a consumer's. Its address.
#[inline]
pub(super) fn lend(ranges: &Ranges, round: usize) -> u64 {
    let tag = ranges.table.tags.get(round as u32);
    tag.set_kind(Kind::Lent);
    tag.start()
}

/// Makes a lent segment one of its cache's again. From then on its tag is the caller's, and does not change.
#[inline]
pub(super) fn take_back(tag: Tag<'_>, addr: u64) -> bool {
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

/// Draws segments of one size from the core, a magazine's worth under one lock.
#[derive(Debug)]
pub(super) struct Drawer<'a> {
    ranges: &'a Ranges,
    size: u64,
}

impl Supply for Drawer<'_> {
    type Error = ArenaError;

    fn fetch(&self, rounds: &mut [usize]) -> Result<usize, ArenaError> {
        let want = Want::aligned(self.size, self.ranges.table.quantum);
        let Some((first, rest)) = rounds.split_first_mut() else {
            return Ok(0);
        };
        *first = self.ranges.take(&want, Kind::Cached)? as usize;
        Ok(1 + self.ranges.take_more(&want, Kind::Cached, rest))
    }

    fn accept(&self, rounds: &[usize]) {
        let mut locked = self.ranges.lock();
        for &round in rounds {
            locked.segments().free(round as u32);
        }
        self.ranges.release_idle(locked, false);
    }
}
