//! A few offsets of 65536.

use alloc::vec::Vec;

use super::bits::Bits;
use super::word::join;
use crate::ids::IdError;

/// No list is longer: 1 KiB, an eighth of the bits.
pub(crate) const MOST: u64 = 512;

/// Offsets, ascending: those that are free, or those that are taken. The first entry says which, because the value
/// must not be larger than a vector: 65536 of them stand in the directory of 2^32 offsets.
#[derive(Debug)]
pub(crate) struct List(Vec<u16>);

impl List {
    /// The offsets `first..=last`.
    pub(crate) fn new(first: u64, last: u64, of_free: bool) -> Result<Self, IdError> {
        let mut list = Self(Vec::new());
        list.reserve(1)?;
        list.0.push(u16::from(of_free));
        list.insert(first, last)?;
        Ok(list)
    }

    /// The free offsets of bits, or the taken ones.
    pub(crate) fn of_bits(bits: &Bits, of_free: bool) -> Result<Self, IdError> {
        let mut list = Vec::new();
        list.try_reserve_exact(MOST as usize / 2 + 1)
            .map_err(|_| IdError::OutOfMemory)?;
        list.push(u16::from(of_free));
        for w in 0..1024 {
            let word = bits.word(w);
            let mut left = if of_free { word } else { !word };
            while left != 0 {
                list.push(join(w, left) as u16);
                left &= left - 1;
            }
        }
        Ok(Self(list))
    }

    pub(crate) fn of_free(&self) -> bool {
        self.0.first() == Some(&1)
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64 - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity() * 2
    }

    pub(crate) fn contains(&self, at: u64) -> bool {
        self.next(at) == Some(at)
    }

    /// Adds `first..=last`, none of which is in the list.
    pub(crate) fn insert(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        let count = (last - first + 1) as usize;
        self.reserve(count)?;
        let place = self.place(first);
        self.0.extend((first..=last).map(|at| at as u16));
        self.0[place..].rotate_right(count);
        Ok(())
    }

    /// Makes room for `count` more, in steps that leave nothing over in an allocator whose blocks are 8 bytes less than a
    /// multiple of 16, and 24 at least, as the C library's are: of many short lists that is a tenth.
    fn reserve(&mut self, count: usize) -> Result<(), IdError> {
        let (len, room) = (self.0.len(), self.0.capacity());
        if count > room - len {
            let want = (len + count).max(room + room / 2);
            let room = ((want + 3) / 8 * 8 + 4).max(12);
            self.0
                .try_reserve_exact(room - len)
                .map_err(|_| IdError::OutOfMemory)?;
        }
        Ok(())
    }

    /// Removes `first..=last`, all of which are in the list.
    pub(crate) fn remove(&mut self, first: u64, last: u64) {
        let place = self.place(first);
        self.0.drain(place..=place + (last - first) as usize);
        // An eighth in use: give the rest back, if there is memory for a shorter one. (`shrink_to` would not say.)
        if self.0.capacity() > 32 && self.0.len() < self.0.capacity() / 8 {
            let mut short = Vec::new();
            if short.try_reserve_exact(self.0.len() * 2).is_ok() {
                short.extend_from_slice(&self.0);
                self.0 = short;
            }
        }
    }

    /// The offsets of word `w`.
    pub(crate) fn word(&self, w: usize) -> u64 {
        let from = self.place(w as u64 * 64);
        let within = |&&at: &&u16| usize::from(at) / 64 == w;
        let word = self.0[from..].iter().take_while(within);
        word.fold(0, |word, &at| word | 1 << (at % 64))
    }

    /// The first offset at or above `from`.
    pub(crate) fn next(&self, from: u64) -> Option<u64> {
        self.0.get(self.place(from)).map(|&at| u64::from(at))
    }

    /// The first offset at or above `from` that is not in the list.
    pub(crate) fn next_missing(&self, from: u64) -> Option<u64> {
        let ahead = &self.0[self.place(from)..];
        let run = ahead
            .iter()
            .zip(from..)
            .take_while(|&(&at, n)| u64::from(at) == n);
        Some(from + run.count() as u64).filter(|&at| at <= u64::from(u16::MAX))
    }

    /// The offset that has `rank` offsets of the list below it.
    pub(crate) fn nth(&self, rank: u64) -> Option<u64> {
        self.0.get(rank as usize + 1).map(|&at| u64::from(at))
    }

    /// The offset that has `rank` offsets below it that are not in the list.
    pub(crate) fn nth_missing(&self, rank: u64) -> u64 {
        // The entry at index i has i entries and so `entry - i` others below it.
        let before = self.0[1..]
            .iter()
            .zip(0u64..)
            .take_while(|&(&at, i)| u64::from(at) - i <= rank);
        rank + before.count() as u64
    }

    pub(crate) fn each(&self, visit: impl FnMut(u64)) {
        self.0[1..].iter().map(|&at| u64::from(at)).for_each(visit);
    }

    /// Where the first entry at or above `at` is, or would be.
    #[inline]
    fn place(&self, at: u64) -> usize {
        let list = &self.0[1..];
        1 + if list.len() <= 16 {
            list.iter().filter(|&&entry| u64::from(entry) < at).count()
        } else {
            list.partition_point(|&entry| u64::from(entry) < at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_finds_what_it_has_and_what_it_lacks() {
        let mut list = List::new(5, 7, true).unwrap();
        list.insert(65535, 65535).unwrap();
        list.insert(0, 0).unwrap();
        assert!(list.of_free() && list.len() == 5);
        assert_eq!(list.next(1), Some(5));
        assert_eq!(list.next_missing(5), Some(8));
        assert_eq!(list.next_missing(65535), None);
        assert_eq!(list.word(0), 0b1110_0001);
        assert_eq!(list.word(1023), 1 << 63);
        list.remove(5, 7);
        list.remove(65535, 65535);
        assert!(list.contains(0) && !list.is_empty());
        list.remove(0, 0);
        assert!(list.is_empty());
    }

    #[test]
    fn a_list_that_was_long_gives_its_memory_back() {
        let mut list = List::new(0, 511, false).unwrap();
        (0..500).for_each(|at| list.remove(at, at));
        assert!(list.bytes() <= 256);
    }
}
