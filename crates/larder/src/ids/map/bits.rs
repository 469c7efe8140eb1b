//! 65536 offsets as bits.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ids::IdError;

/// Offsets in a chunk.
pub(crate) const CHUNK: u64 = 1 << 16;

/// Up to 65536 offsets, 1 = free, with a summary of the words that are not empty and a count of the free ones.
///
/// One slice holds it all: the words, then the summary backwards, then the count. So the place of the summary follows
/// from the length of the slice, a chunk of a small range is short, and a chunk that is absent is the empty slice: the
/// check of the index says that it is absent. A full-size chunk is 8328 bytes, 1.017 bits an offset.
#[derive(Debug, Default)]
pub(crate) struct Bits(Box<[u64]>);

impl Bits {
    /// A chunk of `len` offsets (1 to 65536), all free or all taken.
    pub(crate) fn new(len: u64, free: bool) -> Result<Self, IdError> {
        let words = len.div_ceil(64) as usize;
        let size = words + words.div_ceil(64) + 1;
        let mut data = Vec::new();
        data.try_reserve_exact(size)
            .map_err(|_| IdError::OutOfMemory)?;
        data.resize(size, 0);
        let mut bits = Self(data.into_boxed_slice());
        if free {
            bits.put_span(0, len - 1);
        }
        Ok(bits)
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// How many are free; 0 when absent.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    fn words(&self) -> usize {
        self.0.len() - 1 - (self.0.len() - 1).div_ceil(65)
    }

    /// The word at index `w`: bit `b` is offset `64 w + b`. `None` beyond the end or when absent.
    #[inline]
    pub(crate) fn word(&self, w: usize) -> Option<u64> {
        // Beyond the words lies the summary, which no caller asks for: offsets are checked against the range.
        self.0.get(w).copied()
    }

    /// Takes one; `None` when absent, `Some(false)` when it is taken already.
    #[inline]
    pub(crate) fn take(&mut self, at: u64) -> Option<bool> {
        let (w, bit) = split(at);
        let word = self.0.get_mut(w)?;
        let old = *word;
        if old & bit == 0 {
            return Some(false);
        }
        *word = old & !bit;
        if old == bit {
            self.emptied(w);
        }
        self.count(|n| n - 1);
        Some(true)
    }

    /// Gives one back; false when it is free already or the chunk is absent. About 14 instructions.
    #[inline]
    pub(crate) fn give(&mut self, at: u64) -> bool {
        let (w, bit) = split(at);
        let Some(word) = self.0.get_mut(w) else {
            return false;
        };
        let old = *word;
        if old & bit != 0 {
            return false;
        }
        *word = old | bit;
        if old == 0 {
            self.filled(w);
        }
        self.count(|n| n + 1);
        true
    }

    /// The first word at index `w` or above that has a free offset.
    #[inline]
    pub(crate) fn next_word(&self, w: usize) -> Option<usize> {
        let top = self.0.len().checked_sub(2)?;
        let mut s = w / 64;
        let mut mask = u64::MAX << (w % 64);
        let lowest = top + 1 - (top + 1).div_ceil(65);
        while s <= top - lowest {
            let found = self.0[top - s] & mask;
            if found != 0 {
                return Some(s * 64 + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
            s += 1;
        }
        None
    }

    /// Takes the offsets of `mask`, all of which are free, out of word `w`.
    #[inline]
    pub(crate) fn remove(&mut self, w: usize, mask: u64) {
        let Some(word) = self.0.get_mut(w) else {
            return;
        };
        *word &= !mask;
        if *word == 0 {
            self.emptied(w);
        }
        self.count(|n| n - u64::from(mask.count_ones()));
    }

    /// Gives the offsets of `mask`, none of which is free, to word `w`.
    #[inline]
    pub(crate) fn insert(&mut self, w: usize, mask: u64) {
        let Some(word) = self.0.get_mut(w) else {
            return;
        };
        *word |= mask;
        self.filled(w);
        self.count(|n| n + u64::from(mask.count_ones()));
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) {
        for (w, mask) in masks(first, last) {
            self.remove(w, mask);
        }
    }

    /// Gives back `first..=last`, none of which is free.
    pub(crate) fn put_span(&mut self, first: u64, last: u64) {
        for (w, mask) in masks(first, last) {
            self.insert(w, mask);
        }
    }

    /// The first free offset at or above `from`.
    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        let (w, bit) = split(from);
        let ahead = self.word(w)? & bit.wrapping_neg();
        if ahead != 0 {
            return Some(join(w, ahead));
        }
        let w = self.next_word(w + 1)?;
        Some(join(w, self.0[w]))
    }

    /// The first offset of `first..=last` that is not free.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        let (w, bit) = split(first);
        let words = self.0.get(..=split(last).0)?;
        let ahead = !words.get(w)? & bit.wrapping_neg();
        if ahead != 0 {
            return Some(join(w, ahead)).filter(|&at| at <= last);
        }
        let next = words[w + 1..].iter().position(|&word| word != u64::MAX)?;
        let w = w + 1 + next;
        Some(join(w, !words[w])).filter(|&at| at <= last)
    }

    /// The free offset that has `rank` free ones below it.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        let mut left = rank;
        let words = self.0.get(..self.words())?;
        for (w, &word) in words.iter().enumerate() {
            let here = u64::from(word.count_ones());
            if left < here {
                let mut rest = word;
                for _ in 0..left {
                    rest &= rest - 1;
                }
                return Some(join(w, rest));
            }
            left -= here;
        }
        None
    }

    #[inline]
    fn count(&mut self, change: impl FnOnce(u64) -> u64) {
        if let Some(count) = self.0.last_mut() {
            *count = change(*count);
        }
    }

    #[inline]
    fn emptied(&mut self, w: usize) {
        let s = self.0.len() - 2 - w / 64;
        self.0[s] &= !(1 << (w % 64));
    }

    #[inline]
    fn filled(&mut self, w: usize) {
        let s = self.0.len() - 2 - w / 64;
        self.0[s] |= 1 << (w % 64);
    }
}

/// The word and the bit of an offset.
#[inline]
pub(crate) fn split(at: u64) -> (usize, u64) {
    ((at / 64) as usize, 1 << (at % 64))
}

/// The offset of the lowest bit of `word` at index `w`.
#[inline]
pub(crate) fn join(w: usize, word: u64) -> u64 {
    w as u64 * 64 + u64::from(word.trailing_zeros())
}

/// The words that `first..=last` touches, and which of their bits.
pub(crate) fn masks(first: u64, last: u64) -> impl Iterator<Item = (usize, u64)> {
    (first / 64..=last / 64).map(move |w| {
        let low = if w == first / 64 { first % 64 } else { 0 };
        let high = if w == last / 64 { last % 64 } else { 63 };
        (w as usize, (u64::MAX << low) & (u64::MAX >> (63 - high)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_of_every_length_has_its_summary_where_it_belongs() {
        for len in [1, 63, 64, 65, 4095, 4096, 4097, 8191, 32768, 65535, 65536] {
            let mut bits = Bits::new(len, true).unwrap();
            assert_eq!(bits.words() as u64, len.div_ceil(64));
            assert_eq!(bits.free(), len);
            let mut order = Vec::new();
            while let Some(w) = bits.next_word(0) {
                let word = bits.word(w).unwrap();
                order.push(join(w, word));
                bits.remove(w, word & word.wrapping_neg());
            }
            assert!(order.iter().copied().eq(0..len), "{len}");
            assert_eq!(bits.free(), 0);
            assert!(bits.give(len - 1) && !bits.give(len - 1));
            assert_eq!(bits.next_free(0), Some(len - 1));
            assert_eq!(bits.select(0), Some(len - 1));
            assert_eq!(bits.take(len - 1), Some(true));
            assert_eq!(bits.take(len - 1), Some(false));
            assert_eq!(bits.next_word(0), None);
        }
    }

    #[test]
    fn a_full_size_chunk_costs_less_than_a_fiftieth_more_than_its_bits() {
        let bits = Bits::new(CHUNK, false).unwrap();
        assert_eq!(bits.bytes(), 8328);
        assert!(Bits::default().is_absent());
        assert_eq!(Bits::default().take(5), None);
    }

    #[test]
    fn spans_end_in_the_middle_of_words() {
        let mut bits = Bits::new(1000, true).unwrap();
        bits.take_span(60, 700);
        assert_eq!(bits.free(), 1000 - 641);
        assert_eq!(bits.next_free(60), Some(701));
        assert_eq!(bits.first_taken(0, 999), Some(60));
        bits.put_span(64, 127);
        assert_eq!(bits.next_free(60), Some(64));
        assert_eq!(bits.first_taken(64, 999), Some(128));
        assert_eq!(bits.first_taken(64, 127), None);
        assert_eq!(bits.first_taken(0, 59), None);
        assert_eq!(bits.select(60), Some(64));
    }
}
