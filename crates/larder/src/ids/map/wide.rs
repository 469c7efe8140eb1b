//! Free offsets of a range wider than 2^24.

use super::bits::CHUNK;
use super::chunk::Chunk;
use crate::ids::IdError;
use larder_base::word::split;

/// Where the chunks of a wide range are. All chunks are free at first. One chunk may reach beyond the range: what is
/// there is free and is never asked for.
pub(crate) trait Table {
    fn get(&self, c: u64) -> &Chunk;

    /// The chunk, whose form must not change, where it can be had with few instructions.
    fn chunk_quickly(&mut self, _c: u64) -> Option<&mut Chunk> {
        None
    }

    /// Changes a chunk; when `change` fails, nothing has changed.
    fn change<T>(
        &mut self,
        c: u64,
        change: impl FnOnce(&mut Chunk) -> Result<T, IdError>,
    ) -> Result<T, IdError>;

    /// Makes all offsets of the chunks `first..=last`, all of which are free or all of which are not, the other.
    fn change_all(&mut self, first: u64, last: u64, free: bool) -> Result<(), IdError>;

    /// The first chunk at or above `c` that has a free offset; it may be beyond the range.
    fn next_open(&self, c: u64) -> Option<u64>;

    /// The first chunk at or above `c` that has a taken offset.
    fn next_used(&self, c: u64) -> Option<u64>;

    fn bytes(&self) -> usize;
}

/// Chunks of 65536 offsets in a table.
#[derive(Debug)]
pub(crate) struct Wide<T> {
    table: T,
    /// 2^64 are 0.
    taken: u64,
    last: u64,
}

impl<T: Table> Wide<T> {
    pub(crate) fn new(table: T, last: u64) -> Self {
        Self {
            table,
            taken: 0,
            last,
        }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
    }

    pub(crate) fn is_free(&self, at: u64) -> bool {
        self.table.get(at / CHUNK).is_free(at % CHUNK)
    }

    /// Takes one if one more can be counted.
    pub(crate) fn take(&mut self, at: u64) -> Result<bool, IdError> {
        self.needs(1)?;
        let was = self
            .table
            .change(at / CHUNK, |chunk| chunk.set(at % CHUNK, false))?;
        self.taken = self.taken.wrapping_add(was.into());
        Ok(was)
    }

    pub(crate) fn give(&mut self, at: u64) -> Result<bool, IdError> {
        let was = self
            .table
            .change(at / CHUNK, |chunk| chunk.set(at % CHUNK, true))?;
        self.taken = self.taken.wrapping_sub(was.into());
        Ok(was)
    }

    /// The same if a few instructions suffice. False says nothing.
    #[inline]
    pub(crate) fn give_quickly(&mut self, at: u64) -> bool {
        let Some(chunk) = self.table.chunk_quickly(at / CHUNK) else {
            return false;
        };
        let was = chunk.give_quickly(at % CHUNK);
        self.taken -= u64::from(was);
        was
    }

    /// Takes the free offsets at or above `from` of the first word that has any, or the first one where no more can be
    /// counted: the word's index, and which.
    pub(crate) fn grab(&mut self, from: u64) -> Result<Option<(u64, u64)>, IdError> {
        let room = self.room();
        self.grab_most(from, if room < 64 { room.min(1) } else { 64 })
    }

    /// The same of the first word beyond that of index `w`.
    pub(crate) fn grab_after(&mut self, w: u64) -> Result<Option<(u64, u64)>, IdError> {
        match (w + 1).checked_mul(64) {
            Some(from) => self.grab(from),
            None => Ok(None),
        }
    }

    /// The same of at most so many: 64, 1 or none. For an owner that counts.
    #[inline]
    pub(crate) fn grab_most(
        &mut self,
        from: u64,
        most: u64,
    ) -> Result<Option<(u64, u64)>, IdError> {
        let Some(at) = self.next_free(from).filter(|_| most != 0) else {
            return Ok(None);
        };
        let (w, bit) = split(at % CHUNK);
        let beyond = self.last - (at & !63);
        let valid = if beyond < 63 {
            (2 << beyond) - 1
        } else {
            u64::MAX
        };
        let mask = self.table.change(at / CHUNK, |chunk| {
            let mut mask = chunk.word(w) & bit.wrapping_neg() & valid;
            if most == 1 {
                mask &= mask.wrapping_neg();
            }
            chunk.change_word(w, mask, false)?;
            Ok(mask)
        })?;
        self.taken = self.taken.wrapping_add(mask.count_ones().into());
        Ok(Some((at / 64, mask)))
    }

    /// Gives the offsets of `mask`, all of which are taken, back to the word at index `w`.
    pub(crate) fn put(&mut self, w: u64, mask: u64) -> Result<(), IdError> {
        const WORDS: u64 = CHUNK / 64;
        self.table.change(w / WORDS, |chunk| {
            chunk.change_word((w % WORDS) as usize, mask, true)
        })?;
        self.taken = self.taken.wrapping_sub(mask.count_ones().into());
        Ok(())
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.change_span(first, last, false)?;
        self.taken = self.taken.wrapping_add((last - first).wrapping_add(1));
        Ok(())
    }

    /// Gives back `first..=last`, all of which are taken.
    pub(crate) fn give_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.change_span(first, last, true)?;
        self.taken = self.taken.wrapping_sub((last - first).wrapping_add(1));
        Ok(())
    }

    /// How many more can be counted.
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        u64::MAX - self.taken
    }

    /// Whether so many more can be counted; 2^64 are 0.
    #[inline]
    pub(crate) fn needs(&self, count: u64) -> Result<(), IdError> {
        if count.wrapping_sub(1) < self.room() {
            return Ok(());
        }
        Err(IdError::Full {
            allocated: self.taken,
        })
    }

    /// A piece in the first chunk, all of the chunks between, and a piece in the last chunk.
    fn change_span(&mut self, first: u64, last: u64, free: bool) -> Result<(), IdError> {
        let (mut whole, mut end) = (first / CHUNK, last / CHUNK);
        if whole == end {
            return self.piece(first, last, free);
        }
        let head = !first.is_multiple_of(CHUNK);
        let tail = last % CHUNK != CHUNK - 1;
        if head {
            self.piece(first, first | (CHUNK - 1), free)?;
            whole += 1;
        }
        let mut done = Ok(());
        if tail {
            done = self.piece(last & !(CHUNK - 1), last, free);
            end -= 1;
        }
        let between = done.is_ok() && whole <= end;
        if between {
            done = self.table.change_all(whole, end, free);
            if done.is_err() && tail {
                self.piece(last & !(CHUNK - 1), last, !free)?;
            }
        }
        if done.is_err() && head {
            self.piece(first, first | (CHUNK - 1), !free)?;
        }
        done
    }

    /// `first..=last` of one chunk.
    fn piece(&mut self, first: u64, last: u64, free: bool) -> Result<(), IdError> {
        let (from, to) = (first % CHUNK, last % CHUNK);
        self.table
            .change(first / CHUNK, |chunk| chunk.change(from, to, free))
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        if from > self.last {
            return None;
        }
        let c = from / CHUNK;
        let at = match self.table.get(c).next_free(from % CHUNK) {
            Some(at) => c * CHUNK + at,
            None => {
                let c = self.table.next_open(c.checked_add(1)?)?;
                c.checked_mul(CHUNK)? + self.table.get(c).next_free(0)?
            }
        };
        (at <= self.last).then_some(at)
    }

    /// The free offset that has `rank` free ones below it.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        let (mut c, mut left) = (0, rank);
        loop {
            let used = self.table.next_used(c);
            // All of the chunks before that one are free.
            let between = used.map_or(u64::MAX, |used| used - c);
            if left / CHUNK < between {
                return (c + left / CHUNK)
                    .checked_mul(CHUNK)?
                    .checked_add(left % CHUNK);
            }
            left -= between * CHUNK;
            c = self.table.next_open(used?)?;
            let chunk = self.table.get(c);
            if left < chunk.free() {
                return Some(c * CHUNK + chunk.select(left)?);
            }
            left -= chunk.free();
            c = c.checked_add(1)?;
        }
    }

    /// The first offset of `first..=last` that is taken.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        let (mut c, mut from) = (first / CHUNK, first % CHUNK);
        loop {
            let to = if c == last / CHUNK {
                last % CHUNK
            } else {
                CHUNK - 1
            };
            if let Some(at) = self.table.get(c).first_taken(from, to) {
                return Some(c * CHUNK + at);
            }
            c = self.table.next_used(c + 1)?;
            if c > last / CHUNK {
                return None;
            }
            from = 0;
        }
    }
}
