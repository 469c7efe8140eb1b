//! The crate hibitset: four levels of bits.

use anyhow::ensure;
use hibitset::{BitSet, BitSetLike};

use super::{FreeSet, Ordered, Start};

/// A `BitSet` of free identifiers: the lowest by the crate's iterator.
pub type Hibit = Ordered<Levels<true>, false>;

/// The same with the lab's own walk over the levels that the crate shows: the lowest, or with `CYCLIC` the next.
pub type HibitLevels<const CYCLIC: bool> = Ordered<Levels<false>, CYCLIC>;

/// The set, searched for its lowest member by the crate's iterator or by the lab's own walk.
#[derive(Debug)]
pub struct Levels<const BY_ITERATOR: bool>(BitSet);

impl<const BY_ITERATOR: bool> Levels<BY_ITERATOR> {
    /// From a word of `level` down to the lowest identifier under bit `bit`.
    #[inline(always)]
    fn descend(&self, level: usize, index: usize, word: usize) -> u32 {
        let mut index = index * 64 + word.trailing_zeros() as usize;
        for level in (0..level).rev() {
            let word = self.0.get_from_layer(level, index);
            index = index * 64 + word.trailing_zeros() as usize;
        }
        index as u32
    }
}

impl<const BY_ITERATOR: bool> FreeSet for Levels<BY_ITERATOR> {
    const ABOUT: &'static str = if BY_ITERATOR {
        "crate hibitset as a set of free identifiers, the lowest by its iterator"
    } else {
        "crate hibitset with a search of ours over its levels, by the rule of the group"
    };

    fn of(start: &Start) -> anyhow::Result<Self> {
        let count = start.count();
        ensure!(
            count <= 1 << 24,
            "hibitset holds 2^24 identifiers, not {count}"
        );
        let mut free = BitSet::with_capacity((count - 1) as u32);
        for id in start.free_ids() {
            free.add(id);
        }
        Ok(Self(free))
    }

    #[inline(always)]
    fn lowest(&self) -> Option<u32> {
        if BY_ITERATOR {
            return (&self.0).iter().next();
        }
        let top = self.0.layer3();
        (top != 0).then(|| self.descend(3, 0, top))
    }

    #[inline(always)]
    fn at_or_after(&self, from: u32) -> Option<u32> {
        let mut from = from as usize;
        for level in 0..4 {
            let index = from / 64;
            if level == 3 && index > 0 {
                return None;
            }
            let word = self.0.get_from_layer(level, index) & (usize::MAX << (from % 64));
            if word != 0 {
                return Some(self.descend(level, index, word));
            }
            from = index + 1;
        }
        None
    }

    #[inline]
    fn add(&mut self, id: u32) -> bool {
        // The crate says whether the bit was there.
        !self.0.add(id)
    }

    #[inline]
    fn take(&mut self, id: u32) {
        self.0.remove(id);
    }
}
