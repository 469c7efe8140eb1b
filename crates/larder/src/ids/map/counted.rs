//! Free offsets of a range of at most 2^24, as bits that are counted.

use alloc::vec::Vec;

use super::plain::Plain;
use super::word::masks;
use crate::ids::IdError;

/// Offsets whose taken ones are counted.
const BLOCK: u64 = 4096;

/// Blocks whose taken ones are counted.
const GROUP: u64 = 64 * BLOCK;

/// Bits, and how many are taken of each 4096 offsets and of each 64 times that: so the free offset of any rank is found
/// by looking at no more than 64 counts, 64 counts and 64 words. 1.004 bits an offset.
#[derive(Debug)]
pub(crate) struct Counted {
    bits: Plain,
    blocks: Vec<u16>,
    groups: Vec<u32>,
    taken: u64,
    last: u64,
}

impl Counted {
    pub(crate) fn new(last: u64) -> Self {
        Self {
            bits: Plain::new(last),
            blocks: Vec::new(),
            groups: Vec::new(),
            taken: 0,
            last,
        }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bits.bytes() + self.blocks.capacity() * 2 + self.groups.capacity() * 4
    }

    #[inline]
    pub(crate) fn is_free(&self, at: u64) -> bool {
        self.bits.is_free(at)
    }

    #[inline]
    pub(crate) fn take(&mut self, at: u64) -> Result<bool, IdError> {
        self.reach(at)?;
        let was = self.bits.take(at)?;
        if was {
            self.count(at, 1, false);
        }
        Ok(was)
    }

    #[inline]
    pub(crate) fn give(&mut self, at: u64) -> bool {
        let was = self.bits.give(at);
        if was {
            self.count(at, 1, true);
        }
        was
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.reach(last)?;
        self.bits.take_span(first, last)?;
        for (w, mask) in masks(first, last) {
            self.count(w as u64 * 64, mask.count_ones(), false);
        }
        Ok(())
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        self.bits.next_free(from)
    }

    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        self.bits.first_taken(first, last)
    }

    /// The free offset that has `rank` free ones below it.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        let mut left = rank;
        let mut at = 0;
        for (size, counts) in [(GROUP, None), (BLOCK, Some(&self.blocks))] {
            loop {
                let n = (at / size) as usize;
                let taken = match counts {
                    None => self.groups.get(n).copied().unwrap_or(0),
                    Some(blocks) => blocks.get(n).copied().unwrap_or(0).into(),
                };
                let free = size - u64::from(taken);
                if left < free {
                    break;
                }
                left -= free;
                at += size;
                if at > self.last {
                    return None;
                }
            }
        }
        self.bits.select(at, left)
    }

    #[inline]
    fn count(&mut self, at: u64, count: u32, free: bool) {
        let (b, g) = ((at / BLOCK) as usize, (at / GROUP) as usize);
        if free {
            self.blocks[b] -= count as u16;
            self.groups[g] -= count;
            self.taken -= u64::from(count);
        } else {
            self.blocks[b] += count as u16;
            self.groups[g] += count;
            self.taken += u64::from(count);
        }
    }

    #[inline]
    fn reach(&mut self, at: u64) -> Result<(), IdError> {
        if at / BLOCK >= self.blocks.len() as u64 {
            self.grow(at)?;
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, at: u64) -> Result<(), IdError> {
        let oom = |_| IdError::OutOfMemory;
        let blocks = (at / BLOCK + 1) as usize;
        let groups = (at / GROUP + 1) as usize;
        self.blocks
            .try_reserve(blocks - self.blocks.len())
            .map_err(oom)?;
        if let Some(more) = groups.checked_sub(self.groups.len()) {
            self.groups.try_reserve(more).map_err(oom)?;
            self.groups.resize(groups, 0);
        }
        self.blocks.resize(blocks, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_found() {
        for last in [0, 70, 5000, 300_000, 600_000] {
            let mut map = Counted::new(last);
            let step = last / 500 + 1;
            let mut expect: Vec<u64> = (0..=last).collect();
            for at in (0..=last).step_by(3) {
                assert!(map.take(at).unwrap());
            }
            expect.retain(|at| at % 3 != 0);
            for rank in (0..expect.len() as u64).step_by(step as usize) {
                assert_eq!(map.select(rank), Some(expect[rank as usize]));
            }
            assert_eq!(map.select(expect.len() as u64), None, "{last}");
        }
    }
}
