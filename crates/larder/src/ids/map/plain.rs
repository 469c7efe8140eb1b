//! Free offsets of a range of at most 2^24, as bits that nobody searches.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bits::{CHUNK, join, masks, split};
use super::dense::{DENSE, place, spans};
use crate::ids::IdError;

/// Chunks of 65536 bits, 1 = free, each made when one of its offsets is first taken. No summary and no counts, because
/// a queue knows who is next: they are here to tell an offset that is given back twice.
#[derive(Debug)]
pub(crate) struct Plain {
    /// One that is absent is empty, and all free.
    chunks: Vec<Box<[u64]>>,
    taken: u64,
    last: u64,
}

impl Plain {
    pub(crate) fn new(last: u64) -> Self {
        debug_assert!(last < DENSE);
        Self {
            chunks: Vec::new(),
            taken: 0,
            last,
        }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn bytes(&self) -> usize {
        let bits: usize = self.chunks.iter().map(|chunk| size_of_val(&**chunk)).sum();
        bits + self.chunks.capacity() * size_of::<Box<[u64]>>()
    }

    #[inline]
    pub(crate) fn is_free(&self, at: u64) -> bool {
        let (c, at) = place(at);
        let (w, bit) = split(at);
        self.chunks
            .get(c)
            .and_then(|chunk| chunk.get(w))
            .is_none_or(|word| word & bit != 0)
    }

    #[inline]
    pub(crate) fn take(&mut self, at: u64) -> Result<bool, IdError> {
        let (c, within) = place(at);
        let (w, bit) = split(within);
        let Some(word) = self.chunks.get_mut(c).and_then(|chunk| chunk.get_mut(w)) else {
            self.make(c)?;
            return self.take(at);
        };
        let was = *word & bit != 0;
        *word &= !bit;
        self.taken += u64::from(was);
        Ok(was)
    }

    /// About ten instructions.
    #[inline]
    pub(crate) fn give(&mut self, at: u64) -> bool {
        let (c, at) = place(at);
        let (w, bit) = split(at);
        let Some(word) = self.chunks.get_mut(c).and_then(|chunk| chunk.get_mut(w)) else {
            return false;
        };
        let was = *word & bit == 0;
        *word |= bit;
        self.taken -= u64::from(was);
        was
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        for c in first / CHUNK..=last / CHUNK {
            if self.chunks.get(c as usize).is_none_or(|c| c.is_empty()) {
                self.make(c as usize)?;
            }
        }
        for (c, first, last) in spans(first, last) {
            let chunk = &mut self.chunks[c as usize];
            masks(first, last).for_each(|(w, mask)| chunk[w] &= !mask);
        }
        self.taken += last - first + 1;
        Ok(())
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        if from > self.last {
            return None;
        }
        spans(from, self.last).find_map(|(c, first, last)| {
            let Some(chunk) = self.chunks.get(c as usize).filter(|c| !c.is_empty()) else {
                return Some(c * CHUNK + first);
            };
            first_bit(first, last, |w| chunk[w]).map(|at| c * CHUNK + at)
        })
    }

    /// The first offset of `first..=last` that is taken.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        spans(first, last).find_map(|(c, first, last)| {
            let chunk = self.chunks.get(c as usize).filter(|c| !c.is_empty())?;
            first_bit(first, last, |w| !chunk[w]).map(|at| c * CHUNK + at)
        })
    }

    #[cold]
    fn make(&mut self, c: usize) -> Result<(), IdError> {
        let oom = |_| IdError::OutOfMemory;
        let len = (self.last - c as u64 * CHUNK).min(CHUNK - 1) + 1;
        let words = len.div_ceil(64) as usize;
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(words).map_err(oom)?;
        chunk.resize(words, 0);
        masks(0, len - 1).for_each(|(w, mask)| chunk[w] = mask);
        if c >= self.chunks.len() {
            let more = c + 1 - self.chunks.len();
            self.chunks.try_reserve(more).map_err(oom)?;
            self.chunks.resize_with(c + 1, Box::default);
        }
        self.chunks[c] = chunk.into_boxed_slice();
        Ok(())
    }
}

/// The first offset of `first..=last` whose bit is set.
fn first_bit(first: u64, last: u64, word: impl Fn(usize) -> u64) -> Option<u64> {
    masks(first, last)
        .map(|(w, mask)| (w, word(w) & mask))
        .find(|&(_, found)| found != 0)
        .map(|(w, found)| join(w, found))
}
