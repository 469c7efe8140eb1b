//! 65536 offsets of a wide range, in the smallest of five forms.

use super::bits::{Bits, CHUNK};
use super::list::{self, List};
use super::short::{self, Short};
use super::sorted::Sorted;
use super::word::split;
use crate::ids::IdError;

/// 65536 offsets. The form follows the contents. Up to 11 offsets stand in the entry itself. At most 512 are a list of
/// 2 bytes each, which becomes bits when it grows beyond. A chunk takes a smaller form again below half of what that
/// form could hold, so that a chunk near a limit does not change its form back and forth.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// All free.
    Free,
    /// All taken.
    Full,
    /// Very few are taken, or very few are free.
    Short(Short),
    /// Few are taken, or few are free.
    Few(List),
    /// Anything else.
    Bits(Bits),
}

impl Chunk {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Free | Self::Full | Self::Short(_) => 0,
            Self::Few(list) => list.bytes(),
            Self::Bits(bits) => bits.bytes(),
        }
    }

    pub(crate) fn is_free(&self, at: u64) -> bool {
        match self {
            Self::Free => true,
            Self::Full => false,
            Self::Short(list) => list.find(at).is_some() == list.of_free(),
            Self::Few(list) => list.contains(at) == list.of_free(),
            Self::Bits(bits) => {
                let (w, bit) = split(at);
                bits.word(w) & bit != 0
            }
        }
    }

    /// The free offsets of word `w`.
    pub(crate) fn word(&self, w: usize) -> u64 {
        match self {
            Self::Free => u64::MAX,
            Self::Full => 0,
            Self::Short(list) if list.of_free() => list.word(w),
            Self::Short(list) => !list.word(w),
            Self::Few(list) if list.of_free() => list.word(w),
            Self::Few(list) => !list.word(w),
            Self::Bits(bits) => bits.word(w),
        }
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        match self {
            Self::Free => Some(from),
            Self::Full => None,
            Self::Short(list) if list.of_free() => list.next(from),
            Self::Short(list) => list.next_missing(from),
            Self::Few(list) if list.of_free() => list.next(from),
            Self::Few(list) => list.next_missing(from),
            Self::Bits(bits) => bits.next_free(from),
        }
    }

    /// The first taken offset of `first..=last`.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        let found = match self {
            Self::Free => None,
            Self::Full => Some(first),
            Self::Short(list) if list.of_free() => list.next_missing(first),
            Self::Short(list) => list.next(first),
            Self::Few(list) if list.of_free() => list.next_missing(first),
            Self::Few(list) => list.next(first),
            Self::Bits(bits) => bits.first_taken(first, last),
        };
        found.filter(|&at| at <= last)
    }

    /// How many are free.
    pub(crate) fn free(&self) -> u64 {
        match self {
            Self::Free => CHUNK,
            Self::Full => 0,
            Self::Short(list) if list.of_free() => list.len(),
            Self::Short(list) => CHUNK - list.len(),
            Self::Few(list) if list.of_free() => list.len(),
            Self::Few(list) => CHUNK - list.len(),
            Self::Bits(bits) => bits.free(),
        }
    }

    /// The free offset that has `rank` free ones below it; there are more than that.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        match self {
            Self::Free => Some(rank),
            Self::Full => None,
            Self::Short(list) if list.of_free() => list.nth(rank),
            Self::Short(list) => Some(list.nth_missing(rank)),
            Self::Few(list) if list.of_free() => list.nth(rank),
            Self::Few(list) => Some(list.nth_missing(rank)),
            Self::Bits(bits) => bits.select(rank),
        }
    }

    /// Gives one back if the form stays as it is and a few instructions suffice. False says nothing.
    #[inline]
    pub(crate) fn give_quickly(&mut self, at: u64) -> bool {
        match self {
            Self::Short(list) => match list.find(at) {
                None if list.of_free() && !list.is_full() => list.insert(at),
                Some(place) if !list.of_free() && list.len() > 1 => list.remove_at(place),
                _ => return false,
            },
            Self::Bits(bits) => {
                let (w, bit) = split(at);
                // One that leaves few taken may be the one that makes it a list.
                if bits.word(w) & bit != 0 || CHUNK - bits.free() <= list::MOST / 2 + 1 {
                    return false;
                }
                bits.insert(w, bit);
            }
            _ => return false,
        }
        true
    }

    /// Takes one, or gives it back; false when it is taken already, or free.
    #[inline]
    pub(crate) fn set(&mut self, at: u64, free: bool) -> Result<bool, IdError> {
        if let Self::Short(list) = self {
            match list.find(at) {
                there if there.is_some() == (list.of_free() == free) => return Ok(false),
                Some(_) if list.len() == 1 => {
                    *self = if free { Self::Free } else { Self::Full };
                    return Ok(true);
                }
                Some(place) => {
                    list.remove_at(place);
                    return Ok(true);
                }
                None if !list.is_full() => {
                    list.insert(at);
                    return Ok(true);
                }
                None => {}
            }
        } else if self.is_free(at) == free {
            return Ok(false);
        }
        self.change(at, at, free)?;
        Ok(true)
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.change(first, last, false)
    }

    /// Gives back `first..=last`, all of which are taken.
    pub(crate) fn give_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.change(first, last, true)
    }

    fn change(&mut self, first: u64, last: u64, free: bool) -> Result<(), IdError> {
        let count = last - first + 1;
        if count == CHUNK {
            *self = if free { Self::Free } else { Self::Full };
            return Ok(());
        }
        match self {
            Self::Free | Self::Full => {
                *self = if count <= short::MOST {
                    Self::Short(Short::new(first, last, free))
                } else if count <= list::MOST {
                    let mut list = List::new(free, count)?;
                    list.insert(first, last)?;
                    Self::Few(list)
                } else {
                    let mut bits = Bits::new(!free)?;
                    change(&mut bits, first, last, free);
                    Self::Bits(bits)
                };
            }
            Self::Short(list) if list.of_free() != free => {
                list.remove(first, last);
                if list.len() == 0 {
                    *self = if free { Self::Free } else { Self::Full };
                }
            }
            Self::Short(list) if list.len() + count <= short::MOST => {
                (first..=last).for_each(|at| list.insert(at));
            }
            Self::Short(list) if list.len() + count <= list::MOST => {
                let mut longer = List::new(free, list.len() + count)?;
                longer.fill(&list.sorted());
                longer.insert(first, last)?;
                *self = Self::Few(longer);
            }
            Self::Short(list) => {
                let mut bits = Bits::new(!free)?;
                list.sorted().each(|at| change(&mut bits, at, at, free));
                change(&mut bits, first, last, free);
                *self = Self::Bits(bits);
                self.shrink();
            }
            Self::Few(list) if list.of_free() != free => {
                list.remove(first, last);
                self.shorten();
            }
            Self::Few(list) if list.len() + count <= list::MOST => list.insert(first, last)?,
            Self::Few(list) => {
                let mut bits = Bits::new(!list.of_free())?;
                list.each(|at| change(&mut bits, at, at, list.of_free()));
                change(&mut bits, first, last, free);
                *self = Self::Bits(bits);
                self.shrink();
            }
            Self::Bits(bits) => {
                change(bits, first, last, free);
                self.shrink();
            }
        }
        Ok(())
    }

    /// Takes, or gives back, the offsets of `mask` of word `w`; all of them can be.
    pub(crate) fn change_word(&mut self, w: usize, mask: u64, free: bool) -> Result<(), IdError> {
        if let Self::Bits(bits) = self {
            if free {
                bits.insert(w, mask);
            } else {
                bits.remove(w, mask);
            }
            self.shrink();
            return Ok(());
        }
        let base = w as u64 * 64;
        let mut left = mask;
        while left != 0 {
            let first = u64::from(left.trailing_zeros());
            let count = u64::from((left >> first).trailing_ones());
            if let Err(error) = self.change(base + first, base + first + count - 1, free) {
                // What was done is a smaller mask, and goes back the way it came: into memory that is there.
                self.change_word(w, mask & !left, !free)?;
                return Err(error);
            }
            left &= u64::MAX.checked_shl((first + count) as u32).unwrap_or(0);
        }
        Ok(())
    }

    /// Gives a list up that holds almost nothing.
    fn shorten(&mut self) {
        let Self::Few(list) = self else { return };
        if list.len() > short::MOST / 2 {
            return;
        }
        *self = match (list.len(), list.of_free()) {
            (0, true) => Self::Full,
            (0, false) => Self::Free,
            (_, of_free) => Self::Short(Short::of(list, of_free)),
        };
    }

    /// Gives bits up that hold almost nothing, or nearly all. Without memory for a list they stay.
    #[inline]
    fn shrink(&mut self) {
        let Self::Bits(bits) = self else { return };
        let free = bits.free();
        if free.min(CHUNK - free) > list::MOST / 2 {
            return;
        }
        if free == 0 {
            *self = Self::Full;
        } else if free == CHUNK {
            *self = Self::Free;
        } else {
            let of_free = free < CHUNK / 2;
            let found = List::of_bits(bits, of_free);
            if let Ok(list) = found {
                *self = Self::Few(list);
                self.shorten();
            }
        }
    }
}

fn change(bits: &mut Bits, first: u64, last: u64, free: bool) {
    if free {
        bits.give_span(first, last);
    } else {
        bits.take_span(first, last);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn an_entry_is_three_words() {
        assert_eq!(size_of::<Chunk>(), 24);
    }

    #[test]
    fn the_form_follows_the_contents() {
        let mut chunk = Chunk::Free;
        for at in (0..CHUNK).step_by(2) {
            chunk.take_span(at, at).unwrap();
            let count = at / 2 + 1;
            assert_eq!(matches!(chunk, Chunk::Short(_)), count <= short::MOST);
            let list = matches!(chunk, Chunk::Short(_) | Chunk::Few(_));
            assert_eq!(list, count <= list::MOST);
        }
        for at in (1..CHUNK).step_by(2) {
            assert_eq!(chunk.next_free(0), Some(at));
            chunk.take_span(at, at).unwrap();
        }
        assert!(matches!(chunk, Chunk::Full));
        for at in (0..CHUNK).rev() {
            chunk.give_span(at, at).unwrap();
            let few = CHUNK - at <= list::MOST || at <= list::MOST / 2;
            let short = CHUNK - at <= short::MOST || at <= short::MOST / 2;
            assert_eq!(matches!(chunk, Chunk::Few(_)), few && !short, "{at}");
            assert_eq!(matches!(chunk, Chunk::Short(_)), short && at != 0, "{at}");
            assert_eq!(chunk.first_taken(at, CHUNK - 1), None);
            assert_eq!(chunk.next_free(at / 2), Some(at));
        }
        assert!(matches!(chunk, Chunk::Free));
    }

    #[test]
    fn every_form_finds_the_free_offset_of_a_rank() {
        for (step, full) in [
            (1000, false),
            (1000, true),
            (7, false),
            (65536, false),
            (9000, true),
        ] {
            let mut chunk = if full { Chunk::Full } else { Chunk::Free };
            let mut free = alloc::vec![!full; CHUNK as usize];
            for at in (3..CHUNK).step_by(step) {
                assert!(chunk.set(at, full).unwrap() && !chunk.set(at, full).unwrap());
                free[at as usize] = full;
            }
            let free: Vec<_> = (0..CHUNK).filter(|&at| free[at as usize]).collect();
            assert_eq!(chunk.free(), free.len() as u64);
            for rank in (0..free.len()).step_by(free.len() / 50 + 1) {
                assert_eq!(chunk.select(rank as u64), Some(free[rank]));
            }
        }
    }

    #[test]
    fn masks_change_lists_and_bits() {
        for spoil in [false, true] {
            let mut chunk = Chunk::Free;
            if spoil {
                chunk.take_span(10_000, 20_000).unwrap();
            }
            chunk.change_word(3, 0xF0F0, false).unwrap();
            assert_eq!(chunk.word(3), !0xF0F0);
            chunk.change_word(3, 0x00F0, true).unwrap();
            assert_eq!(chunk.word(3), !0xF000);
            assert!(!chunk.is_free(3 * 64 + 12));
            assert_eq!(chunk.first_taken(0, 9999), Some(3 * 64 + 12));
        }
    }
}
