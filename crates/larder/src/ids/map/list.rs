//! Some offsets of 65536.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bits::Bits;
use super::sorted::Sorted;
use super::word::join;
use crate::ids::IdError;

/// No list is longer: 1 KiB, an eighth of the bits.
pub(crate) const MOST: u64 = 512;

/// Offsets, ascending: those that are free, or those that are taken. The first entry says which, and how many they are, because
/// the value must leave room for what distinguishes it from other forms: 65536 of them stand in the directory of 2^32 offsets.
#[derive(Debug)]
pub(crate) struct List(Box<[u16]>);

impl List {
    /// No offset, and room for some.
    pub(crate) fn new(of_free: bool, room: u64) -> Result<Self, IdError> {
        let mut slots = slots(room as usize)?;
        slots[0] = u16::from(of_free);
        Ok(Self(slots))
    }

    /// The free offsets of bits, or the taken ones; there are at most half of [`MOST`].
    pub(crate) fn of_bits(bits: &Bits, of_free: bool) -> Result<Self, IdError> {
        let mut list = Self::new(of_free, MOST / 2)?;
        for w in 0..1024 {
            let word = bits.word(w);
            let mut left = if of_free { word } else { !word };
            while left != 0 {
                let len = list.count();
                list.0[1 + len] = join(w, left) as u16;
                list.set_count(len + 1);
                left &= left - 1;
            }
        }
        Ok(list)
    }

    pub(crate) fn of_free(&self) -> bool {
        self.0.first().is_some_and(|head| head & 1 == 1)
    }

    fn count(&self) -> usize {
        self.0.first().map_or(0, |head| usize::from(head / 2))
    }

    fn set_count(&mut self, count: usize) {
        self.0[0] = (count as u16) << 1 | u16::from(self.of_free());
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * 2
    }

    /// Adds what another list has to none; there is room.
    pub(crate) fn fill(&mut self, other: &impl Sorted) {
        let entries = other.entries();
        self.0[1..=entries.len()].copy_from_slice(entries);
        self.set_count(entries.len());
    }

    /// Adds `first..=last`, none of which is in the list.
    pub(crate) fn insert(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        let count = (last - first + 1) as usize;
        self.reserve(count)?;
        let (place, len) = (1 + self.place(first), self.count());
        self.0.copy_within(place..=len, place + count);
        for (slot, at) in self.0[place..].iter_mut().zip(first..=last) {
            *slot = at as u16;
        }
        self.set_count(len + count);
        Ok(())
    }

    /// Makes room for `count` more.
    fn reserve(&mut self, count: usize) -> Result<(), IdError> {
        let want = self.count() + count;
        let room = self.0.len() - 1;
        if want > room {
            self.resize(want.max(room + room / 2))?;
        }
        Ok(())
    }

    fn resize(&mut self, room: usize) -> Result<(), IdError> {
        let mut other = slots(room)?;
        let used = 1 + self.count();
        other[..used].copy_from_slice(&self.0[..used]);
        self.0 = other;
        Ok(())
    }

    /// Removes `first..=last`, all of which are in the list.
    pub(crate) fn remove(&mut self, first: u64, last: u64) {
        let (place, len) = (1 + self.place(first), self.count());
        let removed = (last - first + 1) as usize;
        self.0.copy_within(place + removed..=len, place);
        let len = len - removed;
        self.set_count(len);
        // An eighth in use: give the rest back, if there is memory for a shorter one; else it stays.
        if self.0.len() > 32 && len < self.0.len() / 8 {
            self.resize(len * 2).unwrap_or_default();
        }
    }
}

/// Places for at least so many and the first entry, in steps that leave nothing over in an allocator whose blocks are 8 bytes less than a multiple of 16,
/// and 24 at least, as the C library's are: of many short lists that is a tenth.
fn slots(room: usize) -> Result<Box<[u16]>, IdError> {
    let room = ((room + 4) / 8 * 8 + 4).max(12);
    let mut slots = Vec::new();
    slots
        .try_reserve_exact(room)
        .map_err(|_| IdError::OutOfMemory)?;
    slots.resize(room, 0);
    Ok(slots.into_boxed_slice())
}

impl Sorted for List {
    #[inline]
    fn place(&self, at: u64) -> usize {
        let below = |&entry: &u16| u64::from(entry) < at;
        self.entries().partition_point(below)
    }

    fn entries(&self) -> &[u16] {
        self.0.get(1..=self.count()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_finds_what_it_has_and_what_it_lacks() {
        let mut list = List::new(true, 3).unwrap();
        list.insert(5, 7).unwrap();
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
        assert!(list.contains(0) && list.len() == 1);
        list.remove(0, 0);
        assert_eq!(list.len(), 0);
    }

    #[test]
    fn a_list_that_was_long_gives_its_memory_back() {
        let mut list = List::new(false, MOST).unwrap();
        list.insert(0, 511).unwrap();
        (0..500).for_each(|at| list.remove(at, at));
        assert!(list.bytes() <= 256);
        assert_eq!(list.entries().len(), 12);
        assert_eq!(list.next(0), Some(500));
    }
}
