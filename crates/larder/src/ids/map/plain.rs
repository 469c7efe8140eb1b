//! Free offsets of a range of at most 2^24, as bits that are not searched.

use alloc::vec::Vec;
use core::hint::cold_path;

use larder_base::word::{masks, split};

use super::dense::{self, DENSE, Near};
use crate::ids::IdError;

/// Bits, 1 = free, without summary and count, because a queue knows which offset is next: they detect an offset that is
/// given back twice. They reach as far as offsets were taken. Those beyond are all free, and so are the bits of the
/// last word that lie beyond the range: giving one of those back is refused without another comparison.
#[derive(Debug)]
pub(crate) struct Plain {
    words: Vec<u64>,
    last: u64,
}

impl Near for Plain {
    fn new(last: u64) -> Self {
        debug_assert!(last < DENSE);
        Self {
            words: Vec::new(),
            last,
        }
    }

    fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }

    #[inline]
    fn is_free(&self, at: u64) -> bool {
        let (w, bit) = split(at);
        self.words.get(w).is_none_or(|word| word & bit != 0)
    }

    #[inline]
    fn take(&mut self, at: u64) -> Result<bool, IdError> {
        let (w, bit) = split(at);
        if w >= self.words.len() {
            self.grow(w)?;
        }
        let old = self.words[w];
        self.words[w] = old & !bit;
        Ok(old & bit != 0)
    }

    #[inline(always)]
    fn give(&mut self, at: u64) -> bool {
        let (w, bit) = split(at);
        let Some(word) = self.words.get_mut(w) else {
            cold_path();
            return false;
        };
        let old = *word;
        *word = old | bit;
        if old & bit != 0 {
            cold_path();
            return false;
        }
        true
    }

    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        let (w, _) = split(last);
        if w >= self.words.len() {
            self.grow(w)?;
        }
        masks(first, last).for_each(|(w, mask)| self.words[w] &= !mask);
        Ok(())
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        let beyond = (self.words.len() as u64 * 64).max(from);
        dense::first_bit(&self.words, from, self.last, |word| word)
            .or_else(|| (beyond <= self.last).then_some(beyond))
    }

    fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        dense::first_bit(&self.words, first, last, |word| !word)
    }
}

impl Plain {
    /// Takes one of those that the words reach; false for others and for one that is taken.
    #[inline(always)]
    pub(crate) fn take_quickly(&mut self, at: u64) -> bool {
        let (w, bit) = split(at);
        let Some(word) = self.words.get_mut(w) else {
            cold_path();
            return false;
        };
        let old = *word;
        *word = old & !bit;
        if old & bit == 0 {
            cold_path();
            return false;
        }
        true
    }

    #[cold]
    fn grow(&mut self, w: usize) -> Result<(), IdError> {
        let len = dense::reserve(&mut self.words, w, self.last)?;
        self.words.resize(len, u64::MAX);
        Ok(())
    }
}
