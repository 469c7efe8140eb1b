//! 65536 offsets as bits.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ids::IdError;
use larder_base::word::{join, masks, nth, split};

/// Offsets in a chunk.
pub(crate) const CHUNK: u64 = 1 << 16;

const WORDS: usize = 1024;
const ALL: usize = WORDS + WORDS / 64;

/// 65536 offsets, 1 = free, then a bit for each word that is not empty: 8320 bytes, 1.016 bits an offset.
///
/// How many are free stands beside the address, on the line of the cache that is had already: to give one back touches two
/// lines, and a third when its word was empty.
#[derive(Debug)]
pub(crate) struct Bits {
    data: Box<[u64; ALL]>,
    free: u32,
}

impl Bits {
    /// All free or all taken.
    pub(crate) fn new(free: bool) -> Result<Self, IdError> {
        let mut data = Vec::new();
        data.try_reserve_exact(ALL)
            .map_err(|_| IdError::OutOfMemory)?;
        data.resize(ALL, if free { u64::MAX } else { 0 });
        let data = data.into_boxed_slice().try_into();
        Ok(Self {
            data: data.map_err(|_| IdError::OutOfMemory)?,
            free: if free { CHUNK as u32 } else { 0 },
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.data)
    }

    /// How many are free.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.free.into()
    }

    /// The word at index `w`: bit `b` is offset `64 w + b`.
    #[inline]
    pub(crate) fn word(&self, w: usize) -> u64 {
        self.data[w % WORDS]
    }

    /// Takes the offsets of `mask`, all of which are free, out of word `w`.
    #[inline]
    pub(crate) fn remove(&mut self, w: usize, mask: u64) {
        let w = w % WORDS;
        self.data[w] &= !mask;
        if self.data[w] == 0 {
            self.data[WORDS + w / 64] &= !(1 << (w % 64));
        }
        self.free -= mask.count_ones();
    }

    /// Gives the offsets of `mask`, none of which is free, to word `w`.
    #[inline]
    pub(crate) fn insert(&mut self, w: usize, mask: u64) {
        let w = w % WORDS;
        let old = self.data[w];
        self.data[w] = old | mask;
        if old == 0 {
            self.data[WORDS + w / 64] |= 1 << (w % 64);
        }
        self.free += mask.count_ones();
    }

    /// Takes `first..=last`, or gives them back; all of them can be.
    pub(crate) fn change(&mut self, first: u64, last: u64, free: bool) {
        for (w, mask) in masks(first, last) {
            if free {
                self.insert(w, mask);
            } else {
                self.remove(w, mask);
            }
        }
    }

    /// The first free offset at or above `from`.
    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        let (w, bit) = split(from % CHUNK);
        let ahead = self.word(w) & bit.wrapping_neg();
        if ahead != 0 {
            return Some(join(w, ahead));
        }
        // `2 << 63` is 0: of a word's last bit nothing lies beyond.
        let mut mask = (2u64 << (w % 64)).wrapping_neg();
        for s in w / 64..WORDS / 64 {
            let found = self.data[WORDS + s] & mask;
            if found != 0 {
                let w = join(s, found) as usize;
                return Some(join(w, self.word(w)));
            }
            mask = u64::MAX;
        }
        None
    }

    /// The free offset that has `rank` free ones below it.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        let mut left = rank;
        for (w, &word) in self.data[..WORDS].iter().enumerate() {
            match nth(word, left) {
                Ok(bit) => return Some(w as u64 * 64 + bit),
                Err(rest) => left = rest,
            }
        }
        None
    }

    /// The first offset of `first..=last` that is not free.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        masks(first, last)
            .map(|(w, mask)| (w, !self.word(w) & mask))
            .find(|&(_, taken)| taken != 0)
            .map(|(w, taken)| join(w, taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_costs_less_than_a_fiftieth_more_than_its_bits() {
        let bits = Bits::new(false).unwrap();
        assert_eq!((bits.bytes(), bits.free()), (8320, 0));
        assert_eq!(bits.next_free(0), None);
    }

    #[test]
    fn spans_end_in_the_middle_of_words() {
        let mut bits = Bits::new(true).unwrap();
        bits.change(60, 7000, false);
        assert_eq!(bits.free(), CHUNK - 6941);
        assert_eq!(bits.next_free(60), Some(7001));
        assert_eq!(bits.first_taken(0, CHUNK - 1), Some(60));
        bits.change(64, 127, true);
        assert_eq!(bits.next_free(60), Some(64));
        assert_eq!(bits.first_taken(64, 7000), Some(128));
        assert_eq!(bits.first_taken(64, 127), None);
        bits.change(7001, CHUNK - 2, false);
        assert_eq!(bits.next_free(128), Some(CHUNK - 1));
        assert_eq!(bits.word(1023), 1 << 63);
    }
}
