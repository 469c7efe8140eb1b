//! Free offsets of a range of at most 2^24, as bits.

use alloc::vec::Vec;

use super::bits::{Bits, CHUNK, join, split};
use crate::ids::IdError;

/// The widest range that this map serves.
pub(crate) const DENSE: u64 = 1 << 24;

/// Chunks of 65536 bits, each made when it is first needed; and which of them have a free offset.
#[derive(Debug)]
pub(crate) struct Dense {
    chunks: Vec<Bits>,
    /// Bit c: chunk c has a free offset. A chunk that is absent is all free.
    open: [u64; 4],
    taken: u64,
    last: u64,
}

impl Dense {
    pub(crate) fn new(last: u64) -> Self {
        debug_assert!(last < DENSE);
        let mut open = [0; 4];
        for c in 0..=last / CHUNK {
            let (w, bit) = split(c);
            open[w] |= bit;
        }
        Self {
            chunks: Vec::new(),
            open,
            taken: 0,
            last,
        }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Bits>()
            + self.chunks.iter().map(Bits::bytes).sum::<usize>()
    }

    #[inline]
    pub(crate) fn is_free(&self, at: u64) -> bool {
        let (c, at) = place(at);
        let (w, bit) = split(at);
        self.chunks
            .get(c)
            .and_then(|chunk| chunk.word(w))
            .is_none_or(|word| word & bit != 0)
    }

    pub(crate) fn take(&mut self, at: u64) -> Result<bool, IdError> {
        let (c, at) = place(at);
        let chunk = self.chunk(c)?;
        let was = chunk.take(at) == Some(true);
        if was {
            if chunk.free() == 0 {
                self.close(c);
            }
            self.taken += 1;
        }
        Ok(was)
    }

    #[inline]
    pub(crate) fn give(&mut self, at: u64) -> bool {
        let (c, at) = place(at);
        let Some(chunk) = self.chunks.get_mut(c) else {
            return false;
        };
        if !chunk.give(at) {
            return false;
        }
        if chunk.free() == 1 {
            self.open(c);
        }
        self.taken -= 1;
        true
    }

    /// Takes the free offsets at or above `from` of the first word that has any: its first offset, and which.
    #[inline]
    pub(crate) fn grab(&mut self, from: u64) -> Result<Option<(u64, u64)>, IdError> {
        if from > self.last {
            return Ok(None);
        }
        let (c, at) = place(from);
        let (w, bit) = split(at);
        if let Some(chunk) = self.chunks.get_mut(c)
            && let Some(word) = chunk.word(w)
        {
            let ahead = word & bit.wrapping_neg();
            if ahead != 0 {
                return Ok(Some(self.grabbed(c, w, ahead)));
            }
            if let Some(w) = chunk.next_word(w + 1) {
                let word = chunk.word(w).unwrap_or(0);
                return Ok(Some(self.grabbed(c, w, word)));
            }
            return self.grab_beyond(c as u64 + 1);
        }
        self.grab_absent(from)
    }

    #[inline]
    fn grabbed(&mut self, c: usize, w: usize, mask: u64) -> (u64, u64) {
        let chunk = &mut self.chunks[c];
        chunk.remove(w, mask);
        if chunk.free() == 0 {
            self.close(c);
        }
        self.taken += u64::from(mask.count_ones());
        ((c * 1024 + w) as u64 * 64, mask)
    }

    #[inline(never)]
    fn grab_absent(&mut self, from: u64) -> Result<Option<(u64, u64)>, IdError> {
        let (c, at) = place(from);
        self.chunk(c)?;
        let (w, bit) = split(at);
        let ahead = self.chunks[c].word(w).unwrap_or(0) & bit.wrapping_neg();
        Ok(Some(self.grabbed(c, w, ahead)))
    }

    #[inline(never)]
    fn grab_beyond(&mut self, from: u64) -> Result<Option<(u64, u64)>, IdError> {
        let Some(c) = self.next_open(from) else {
            return Ok(None);
        };
        let chunk = self.chunk(c)?;
        let Some(w) = chunk.next_word(0) else {
            return Ok(None);
        };
        let word = chunk.word(w).unwrap_or(0);
        Ok(Some(self.grabbed(c, w, word)))
    }

    /// Gives the offsets of `mask`, all of which are taken, back to the word at `base`.
    #[inline]
    pub(crate) fn put(&mut self, base: u64, mask: u64) {
        let (c, at) = place(base);
        if mask != 0
            && let Some(chunk) = self.chunks.get_mut(c)
        {
            chunk.insert((at / 64) as usize, mask);
            self.open(c);
            self.taken -= u64::from(mask.count_ones());
        }
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        for c in first / CHUNK..=last / CHUNK {
            self.chunk(c as usize)?;
        }
        for (c, first, last) in spans(first, last) {
            let c = c as usize;
            self.chunks[c].take_span(first, last);
            if self.chunks[c].free() == 0 {
                self.close(c);
            }
        }
        self.taken += last - first + 1;
        Ok(())
    }

    /// Gives back `first..=last`, all of which are taken.
    pub(crate) fn give_span(&mut self, first: u64, last: u64) {
        for (c, first, last) in spans(first, last) {
            let c = c as usize;
            if let Some(chunk) = self.chunks.get_mut(c) {
                chunk.put_span(first, last);
                self.open(c);
            }
        }
        self.taken -= last - first + 1;
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        if from > self.last {
            return None;
        }
        let (c, at) = place(from);
        let Some(chunk) = self.chunks.get(c).filter(|chunk| !chunk.is_absent()) else {
            return Some(from);
        };
        if let Some(at) = chunk.next_free(at) {
            return Some(c as u64 * CHUNK + at);
        }
        let c = self.next_open(c as u64 + 1)?;
        let first = self.chunks.get(c).and_then(|chunk| chunk.next_free(0));
        Some(c as u64 * CHUNK + first.unwrap_or(0))
    }

    /// The first offset of `first..=last` that is taken.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        spans(first, last).find_map(|(c, first, last)| {
            let chunk = self.chunks.get(c as usize).filter(|c| !c.is_absent())?;
            Some(c * CHUNK + chunk.first_taken(first, last)?)
        })
    }

    /// The free offset that has `rank` free ones below it. At most 256 counts and 1024 words are read.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        let mut left = rank;
        for c in 0..=self.last / CHUNK {
            let chunk = self.chunks.get(c as usize).filter(|c| !c.is_absent());
            let here = chunk.map_or_else(|| self.len_of(c), Bits::free);
            if left < here {
                let at = chunk.map_or(Some(left), |chunk| chunk.select(left))?;
                return Some(c * CHUNK + at);
            }
            left -= here;
        }
        None
    }

    fn len_of(&self, c: u64) -> u64 {
        (self.last - c * CHUNK + 1).min(CHUNK)
    }

    fn next_open(&self, c: u64) -> Option<usize> {
        let (mut w, bit) = split(c);
        let mut mask = bit.wrapping_neg();
        while w < self.open.len() {
            let found = self.open[w] & mask;
            if found != 0 {
                return Some(join(w, found) as usize);
            }
            mask = u64::MAX;
            w += 1;
        }
        None
    }

    /// The chunk, made when it is absent.
    #[inline]
    fn chunk(&mut self, c: usize) -> Result<&mut Bits, IdError> {
        if self.chunks.get(c).is_none_or(Bits::is_absent) {
            self.make(c)?;
        }
        Ok(&mut self.chunks[c])
    }

    #[cold]
    fn make(&mut self, c: usize) -> Result<(), IdError> {
        let bits = Bits::new(self.len_of(c as u64), true)?;
        if c >= self.chunks.len() {
            let more = c + 1 - self.chunks.len();
            self.chunks
                .try_reserve(more)
                .map_err(|_| IdError::OutOfMemory)?;
            self.chunks.resize_with(c + 1, Bits::default);
        }
        self.chunks[c] = bits;
        Ok(())
    }

    #[cold]
    fn close(&mut self, c: usize) {
        let (w, bit) = split(c as u64);
        self.open[w] &= !bit;
    }

    #[inline]
    fn open(&mut self, c: usize) {
        let (w, bit) = split(c as u64);
        self.open[w] |= bit;
    }
}

/// The chunk of an offset, and the offset within.
#[inline]
pub(crate) fn place(at: u64) -> (usize, u64) {
    ((at / CHUNK) as usize, at % CHUNK)
}

/// `first..=last` cut at the borders of chunks: the chunk, and the first and last offset within.
pub(crate) fn spans(first: u64, last: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    (first / CHUNK..=last / CHUNK).map(move |c| {
        let low = if c == first / CHUNK { first % CHUNK } else { 0 };
        let high = if c == last / CHUNK {
            last % CHUNK
        } else {
            CHUNK - 1
        };
        (c, low, high)
    })
}
