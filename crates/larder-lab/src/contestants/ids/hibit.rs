//! The crate hibitset: four levels of bits.

use anyhow::ensure;
use hibitset::{BitSet, BitSetLike};

use super::{IdSource, Start};

/// How the first free identifier is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// By the crate's iterator: the lowest.
    Iterator,
    /// By a walk of ours over the levels that the crate shows: the lowest.
    Lowest,
    /// By a walk of ours, from the last identifier on.
    Cyclic,
}

/// A `BitSet` of free identifiers. `SEARCH` is a [`Search`] as a number, which is what a type parameter can be.
#[derive(Debug)]
pub struct Hibit<const SEARCH: u8> {
    free: BitSet,
    next: u32,
}

impl<const SEARCH: u8> Hibit<SEARCH> {
    const SEARCH: Search = match SEARCH {
        0 => Search::Iterator,
        1 => Search::Lowest,
        _ => Search::Cyclic,
    };

    /// From a word of `level` down to the lowest identifier under bit `bit`.
    #[inline(always)]
    fn descend(&self, level: usize, index: usize, word: usize) -> u32 {
        let mut index = index * 64 + word.trailing_zeros() as usize;
        for level in (0..level).rev() {
            let word = self.free.get_from_layer(level, index);
            index = index * 64 + word.trailing_zeros() as usize;
        }
        index as u32
    }

    #[inline(always)]
    fn lowest(&self) -> Option<u32> {
        let top = self.free.layer3();
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
            let word = self.free.get_from_layer(level, index) & (usize::MAX << (from % 64));
            if word != 0 {
                return Some(self.descend(level, index, word));
            }
            from = index + 1;
        }
        None
    }
}

impl<const SEARCH: u8> IdSource for Hibit<SEARCH> {
    const ABOUT: &'static str = match Self::SEARCH {
        Search::Iterator => {
            "crate hibitset as a set of free identifiers, the lowest by its iterator"
        }
        _ => "crate hibitset with a search of ours over its levels, by the rule of the group",
    };

    fn start(start: &Start) -> anyhow::Result<Self> {
        ensure!(
            start.count() <= 1 << 24,
            "hibitset holds 2^24 identifiers, not {}",
            start.count()
        );
        let mut free = BitSet::with_capacity((start.count() - 1) as u32);
        for id in start.free_ids() {
            free.add(id);
        }
        Ok(Self { free, next: 0 })
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        let id = match Self::SEARCH {
            Search::Iterator => (&self.free).iter().next()?,
            Search::Lowest => self.lowest()?,
            Search::Cyclic => self.at_or_after(self.next).or_else(|| self.lowest())?,
        };
        self.free.remove(id);
        self.next = id + 1;
        Some(u64::from(id))
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        // The crate says whether the bit was there.
        !self.free.add(id as u32)
    }
}
