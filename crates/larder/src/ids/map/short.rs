//! A few offsets of 65536 in three machine words.

use super::sorted::Sorted;

/// As many as fit.
pub(crate) const MOST: u64 = ROOM as u64;

const ROOM: usize = 11;

/// Offsets in any order: those that are free, or those that are taken. They stand where a longer list has its address, so
/// that one line of the cache tells everything about most chunks of a space of which few are taken, or few are free;
/// and all are looked at without a branch.
#[derive(Debug)]
pub(crate) struct Short {
    of_free: bool,
    len: u8,
    slots: [u16; ROOM],
}

impl Short {
    /// The offsets `first..=last`, at most [`MOST`] of them.
    pub(crate) fn new(first: u64, last: u64, of_free: bool) -> Self {
        let mut short = Self {
            of_free,
            len: 0,
            slots: [0; ROOM],
        };
        (first..=last).for_each(|at| short.insert(at));
        short
    }

    /// The offsets of a list, at most [`MOST`] of them.
    pub(crate) fn of(list: &impl Sorted, of_free: bool) -> Self {
        let mut short = Self::new(1, 0, of_free);
        list.each(|at| short.insert(at));
        short
    }

    #[inline]
    pub(crate) fn of_free(&self) -> bool {
        self.of_free
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len.into()
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        usize::from(self.len) == ROOM
    }

    /// The place of an offset, where it is there.
    #[inline]
    pub(crate) fn find(&self, at: u64) -> Option<usize> {
        let mut places = 0u32;
        for (n, &slot) in self.slots.iter().enumerate() {
            places |= u32::from(slot == at as u16) << n;
        }
        // What stands behind the last one is of no account.
        places &= (1 << self.len) - 1;
        (places != 0).then(|| places.trailing_zeros() as usize)
    }

    /// Adds one that is not there; there is room.
    #[inline]
    pub(crate) fn insert(&mut self, at: u64) {
        if let Some(slot) = self.slots.get_mut(usize::from(self.len)) {
            *slot = at as u16;
            self.len += 1;
        }
    }

    /// Removes the one at a place: the last one takes it.
    #[inline]
    pub(crate) fn remove_at(&mut self, place: usize) {
        let last = usize::from(self.len).wrapping_sub(1);
        if let Some(&moved) = self.slots.get(last)
            && let Some(slot) = self.slots.get_mut(place)
        {
            *slot = moved;
            self.len -= 1;
        }
    }

    /// Removes `first..=last`, all of which are there.
    pub(crate) fn remove(&mut self, first: u64, last: u64) {
        for at in first..=last {
            if let Some(place) = self.find(at) {
                self.remove_at(place);
            }
        }
    }

    fn entries(&self) -> &[u16] {
        self.slots.get(..self.len.into()).unwrap_or_default()
    }

    /// The offsets of word `w`.
    pub(crate) fn word(&self, w: usize) -> u64 {
        let within = self
            .entries()
            .iter()
            .filter(|&&at| usize::from(at) / 64 == w);
        within.fold(0, |word, &at| word | 1 << (at % 64))
    }

    /// The first offset at or above `from`.
    pub(crate) fn next(&self, from: u64) -> Option<u64> {
        let ahead = self.entries().iter().map(|&at| u64::from(at));
        ahead.filter(|&at| at >= from).min()
    }

    /// The first offset at or above `from` that is not there.
    pub(crate) fn next_missing(&self, from: u64) -> Option<u64> {
        (from..=u64::from(u16::MAX)).find(|&at| self.find(at).is_none())
    }

    /// The offset that has `rank` of them below it.
    pub(crate) fn nth(&self, rank: u64) -> Option<u64> {
        self.sorted().nth(rank)
    }

    /// The offset that has `rank` others below it.
    pub(crate) fn nth_missing(&self, rank: u64) -> u64 {
        self.sorted().nth_missing(rank)
    }

    /// The same in ascending order.
    pub(crate) fn sorted(&self) -> Ascending {
        let mut slots = self.slots;
        let len = usize::from(self.len).min(ROOM);
        slots[..len].sort_unstable();
        Ascending { slots, len }
    }
}

/// Up to [`MOST`] offsets, ascending.
pub(crate) struct Ascending {
    slots: [u16; ROOM],
    len: usize,
}

impl Sorted for Ascending {
    fn place(&self, at: u64) -> usize {
        self.entries()
            .partition_point(|&entry| u64::from(entry) < at)
    }

    fn entries(&self) -> &[u16] {
        &self.slots[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_words() {
        assert_eq!(size_of::<Short>(), 24);
    }

    #[test]
    fn it_knows_what_it_has_whatever_is_added_and_removed() {
        let mut short = Short::new(10, 12, true);
        assert_eq!(short.find(0), None);
        for at in [65535, 0, 11_000, 65534, 9, 13, 7, 8] {
            assert_eq!(short.find(at), None);
            short.insert(at);
            assert!(short.find(at).is_some());
        }
        assert!(short.is_full() && short.find(65533).is_none());
        assert_eq!(short.next(14), Some(11_000));
        assert_eq!(short.next_missing(7), Some(14));
        assert_eq!(short.next_missing(65534), None);
        assert_eq!((short.nth(3), short.nth_missing(3)), (Some(9), 4));
        assert_eq!(short.word(1023), 0b11 << 62);
        short.remove(7, 13);
        assert_eq!(short.sorted().entries(), [0, 11_000, 65534, 65535]);
        short.remove_at(short.find(65535).unwrap());
        assert!(short.find(65535).is_none() && short.find(1).is_none());
        assert_eq!(short.sorted().entries(), [0, 11_000, 65534]);
        short.remove_at(short.find(65534).unwrap());
        assert_eq!(short.sorted().entries(), [0, 11_000]);
    }
}
