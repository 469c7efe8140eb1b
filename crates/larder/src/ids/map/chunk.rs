//! 65536 offsets of a wide range: a short list, a longer one, or bits.
//!
//! The rows `sparse` and `bits` of the experiment `id-space` need all three: a list in the entry is one line of the cache
//! where few of 2^32 are taken, or free; the longer list holds them in 4 MB; bits are for everything else.

use alloc::boxed::Box;
use alloc::vec::Vec;

use larder_base::word::{join, split};

use super::bits::{Bits, CHUNK};
use crate::ids::IdError;

/// Most offsets of a list.
const MOST: u64 = 512;
/// Most offsets of a list in the entry.
const SHORT: usize = 11;

/// 65536 offsets. The form follows the contents: up to 11 offsets that are taken, or that are free, stand in the entry
/// itself, up to 512 in a list of 2 bytes each. A chunk takes a smaller form again below half of what that form could
/// hold, so that a chunk near a limit does not change its form back and forth.
#[derive(Debug)]
pub(crate) enum Chunk {
    Short(Short),
    List(List),
    Bits(Bits),
}

/// Offsets in any order: those that are free, or those that are taken.
#[derive(Debug)]
pub(crate) struct Short {
    of_free: bool,
    len: u8,
    slots: [u16; SHORT],
}

/// The same: first twice their number, and one more where they are free.
#[derive(Debug)]
pub(crate) struct List(Box<[u16]>);

impl Chunk {
    /// All free.
    pub(crate) const FREE: Chunk = Chunk::Short(Short::new(false));
    /// All taken.
    pub(crate) const FULL: Chunk = Chunk::Short(Short::new(true));

    fn all(free: bool) -> Self {
        if free { Self::FREE } else { Self::FULL }
    }

    /// Whether all are free, or all are taken.
    #[inline]
    pub(crate) fn is_all(&self, free: bool) -> bool {
        matches!(self, Self::Short(short) if short.len == 0 && short.of_free != free)
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Short(_) => 0,
            Self::List(list) => list.0.len() * 2,
            Self::Bits(bits) => bits.bytes(),
        }
    }

    /// The bits, or the listed offsets and whether they are the free ones.
    fn form(&self) -> Result<&Bits, (bool, &[u16])> {
        match self {
            Self::Short(short) => Err((short.of_free, short.listed())),
            Self::List(list) => Err((list.of_free(), list.listed())),
            Self::Bits(bits) => Ok(bits),
        }
    }

    pub(crate) fn is_free(&self, at: u64) -> bool {
        match self.form() {
            Ok(bits) => bits.word(split(at).0) & split(at).1 != 0,
            Err((of_free, listed)) => contains(listed, at) == of_free,
        }
    }

    /// The free offsets of word `w`.
    pub(crate) fn word(&self, w: usize) -> u64 {
        match self.form() {
            Ok(bits) => bits.word(w),
            Err((of_free, listed)) => {
                let within = listed.iter().filter(|&&at| usize::from(at) / 64 == w);
                let word = within.fold(0, |word, &at| word | 1 << (at % 64));
                if of_free { word } else { !word }
            }
        }
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        match self.form() {
            Ok(bits) => bits.next_free(from),
            Err((true, free)) => next(free, from),
            Err((false, taken)) => next_missing(taken, from),
        }
    }

    /// The first taken offset of `first..=last`.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        let found = match self.form() {
            Ok(bits) => bits.first_taken(first, last),
            Err((true, free)) => next_missing(free, first),
            Err((false, taken)) => next(taken, first),
        };
        found.filter(|&at| at <= last)
    }

    /// How many are free.
    pub(crate) fn free(&self) -> u64 {
        match self.form() {
            Ok(bits) => bits.free(),
            Err((true, free)) => free.len() as u64,
            Err((false, taken)) => CHUNK - taken.len() as u64,
        }
    }

    /// The free offset that has `rank` free ones below it.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        match self.form() {
            Ok(bits) => bits.select(rank),
            Err((true, free)) => {
                let below = |at: u16| free.iter().filter(|&&other| other < at).count();
                let found = free.iter().find(|&&at| below(at) as u64 == rank)?;
                Some((*found).into())
            }
            Err((false, taken)) => {
                // Those taken up to there put it off, and then those taken up to there.
                let mut at = rank;
                loop {
                    let before = taken.iter().filter(|&&other| u64::from(other) <= at);
                    let next = rank + before.count() as u64;
                    if next == at {
                        return Some(at);
                    }
                    at = next;
                }
            }
        }
    }

    /// Gives one back if the form stays as it is and a few instructions suffice. False says nothing.
    #[inline]
    pub(crate) fn give_quickly(&mut self, at: u64) -> bool {
        match self {
            // One that is the first in a full chunk, or the last that was taken, changes what the table says of the chunk.
            Self::Short(list) if list.len > 0 => match list.find(at) {
                None if list.of_free && usize::from(list.len) < SHORT => list.push(at),
                Some(place) if !list.of_free && list.len > 1 => list.remove(place),
                _ => return false,
            },
            Self::Bits(bits) => {
                let (w, bit) = split(at);
                // One that leaves few taken may be the one that makes it a list.
                if bits.word(w) & bit != 0 || CHUNK - bits.free() <= MOST / 2 + 1 {
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
        match self {
            Self::Short(list) => match list.find(at) {
                there if there.is_some() == (list.of_free == free) => return Ok(false),
                Some(place) => {
                    list.remove(place);
                    return Ok(true);
                }
                None if usize::from(list.len) < SHORT => {
                    list.push(at);
                    return Ok(true);
                }
                None => {}
            },
            Self::List(list) => match list.find(at) {
                there if there.is_some() == (list.of_free() == free) => return Ok(false),
                Some(place) => {
                    list.remove(place);
                    self.shorten();
                    return Ok(true);
                }
                None => {}
            },
            Self::Bits(_) if self.is_free(at) == free => return Ok(false),
            Self::Bits(_) => {}
        }
        self.change(at, at, free)?;
        Ok(true)
    }

    /// Takes `first..=last`, all of which are free, or gives them back, all of which are taken.
    pub(crate) fn change(&mut self, first: u64, last: u64, free: bool) -> Result<(), IdError> {
        let count = last - first + 1;
        if count == CHUNK {
            *self = Self::all(free);
            return Ok(());
        }
        let (of_free, listed) = match self {
            Self::Bits(bits) => {
                bits.change(first, last, free);
                self.shrink();
                return Ok(());
            }
            Self::Short(short) => (short.of_free, short.listed()),
            Self::List(list) => (list.of_free(), list.listed()),
        };
        if of_free != free {
            self.unlist(first, last);
            return Ok(());
        }
        let want = listed.len() as u64 + count;
        if want > MOST {
            let mut bits = Bits::new(!free)?;
            for &at in listed {
                let (w, bit) = split(at.into());
                if free {
                    bits.insert(w, bit);
                } else {
                    bits.remove(w, bit);
                }
            }
            bits.change(first, last, free);
            *self = Self::Bits(bits);
            self.shrink();
            return Ok(());
        }
        match self {
            Self::Short(short) if want <= SHORT as u64 => {
                (first..=last).for_each(|at| short.push(at));
            }
            Self::List(list) if want < list.0.len() as u64 => list.extend(first, last),
            _ => {
                let Err((_, listed)) = self.form() else {
                    return Ok(());
                };
                // By half of what is there, so that the list is not copied at each of many.
                let room = (want as usize).max(listed.len() * 3 / 2);
                let mut list = List::new(free, room)?;
                list.copy(listed);
                list.extend(first, last);
                *self = Self::List(list);
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

    /// Removes the offsets of `first..=last` from the list, which has them all.
    fn unlist(&mut self, first: u64, last: u64) {
        let list = match self {
            Self::Short(short) => {
                for at in first..=last {
                    if let Some(place) = short.find(at) {
                        short.remove(place);
                    }
                }
                return;
            }
            Self::List(list) => list,
            Self::Bits(_) => return,
        };
        let mut kept = 0;
        for n in 1..=list.len() {
            let at = list.0[n];
            if !(first..=last).contains(&at.into()) {
                kept += 1;
                list.0[kept] = at;
            }
        }
        list.set_len(kept);
        self.shorten();
    }

    /// Gives a list up that has few entries, or most of its memory. Without memory for a shorter one it stays.
    #[inline]
    fn shorten(&mut self) {
        let Self::List(list) = self else { return };
        let len = list.len();
        if len <= SHORT / 2 {
            *self = Self::Short(Short::of(list));
        } else if list.0.len() > 32
            && len < list.0.len() / 8
            && let Ok(mut shorter) = List::new(list.of_free(), len * 2)
        {
            shorter.copy(list.listed());
            *self = Self::List(shorter);
        }
    }

    /// Gives bits up that hold almost nothing, or nearly all. Without memory for a list they stay.
    #[inline]
    fn shrink(&mut self) {
        let Self::Bits(bits) = self else { return };
        let free = bits.free();
        if free.min(CHUNK - free) > MOST / 2 {
            return;
        }
        if free == 0 || free == CHUNK {
            *self = Self::all(free != 0);
            return;
        }
        let of_free = free < CHUNK / 2;
        let Ok(mut list) = List::new(of_free, MOST as usize / 2) else {
            return;
        };
        for w in 0..CHUNK as usize / 64 {
            let word = bits.word(w);
            let mut left = if of_free { word } else { !word };
            while left != 0 {
                list.extend(join(w, left), join(w, left));
                left &= left - 1;
            }
        }
        *self = if list.len() <= SHORT / 2 {
            Self::Short(Short::of(&list))
        } else {
            Self::List(list)
        };
    }
}

impl Short {
    const fn new(of_free: bool) -> Self {
        Self {
            of_free,
            len: 0,
            slots: [0; SHORT],
        }
    }

    fn of(list: &List) -> Self {
        let mut short = Self::new(list.of_free());
        list.listed().iter().for_each(|&at| short.push(at.into()));
        short
    }

    fn listed(&self) -> &[u16] {
        self.slots.get(..self.len.into()).unwrap_or_default()
    }

    /// The place of an offset, where it is there; all slots are looked at without a branch.
    #[inline]
    fn find(&self, at: u64) -> Option<usize> {
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
    fn push(&mut self, at: u64) {
        if let Some(slot) = self.slots.get_mut(usize::from(self.len)) {
            *slot = at as u16;
            self.len += 1;
        }
    }

    /// Removes the one at a place: the last one takes it.
    #[inline]
    fn remove(&mut self, place: usize) {
        let last = usize::from(self.len).wrapping_sub(1);
        if let Some(&moved) = self.slots.get(last)
            && let Some(slot) = self.slots.get_mut(place)
        {
            *slot = moved;
            self.len -= 1;
        }
    }
}

impl List {
    /// An empty list with room for so many, in whole blocks of the C library's allocator.
    fn new(of_free: bool, room: usize) -> Result<Self, IdError> {
        let room = ((room + 4) / 8 * 8 + 4).max(12);
        let mut slots = Vec::new();
        slots
            .try_reserve_exact(room)
            .map_err(|_| IdError::OutOfMemory)?;
        slots.resize(room, 0);
        slots[0] = u16::from(of_free);
        Ok(Self(slots.into_boxed_slice()))
    }

    fn of_free(&self) -> bool {
        self.0.first().is_some_and(|head| head & 1 == 1)
    }

    fn len(&self) -> usize {
        self.0.first().map_or(0, |head| usize::from(head / 2))
    }

    fn set_len(&mut self, len: usize) {
        self.0[0] = (len as u16) << 1 | self.0[0] & 1;
    }

    fn listed(&self) -> &[u16] {
        self.0.get(1..=self.len()).unwrap_or_default()
    }

    /// The place of an offset among the listed, where it is there.
    fn find(&self, at: u64) -> Option<usize> {
        let mut parts = self.listed().chunks(32).zip((0..).step_by(32));
        let (part, base) = parts.find(|(part, _)| contains(part, at))?;
        let place = part.iter().position(|&slot| u64::from(slot) == at)?;
        Some(base + place)
    }

    /// Removes the one at a place: the last one takes it.
    fn remove(&mut self, place: usize) {
        let len = self.len();
        if place < len {
            self.0[place + 1] = self.0[len];
            self.set_len(len - 1);
        }
    }

    /// Adds `first..=last`, none of which is there; there is room.
    fn extend(&mut self, first: u64, last: u64) {
        let (len, count) = (self.len(), (last - first) as usize + 1);
        if let Some(slots) = self.0.get_mut(len + 1..=len + count) {
            for (slot, at) in slots.iter_mut().zip(first..) {
                *slot = at as u16;
            }
            self.set_len(len + count);
        }
    }

    /// Lists the same as another; there is room.
    fn copy(&mut self, listed: &[u16]) {
        if let Some(slots) = self.0.get_mut(1..=listed.len()) {
            slots.copy_from_slice(listed);
            self.set_len(listed.len());
        }
    }
}

/// Whether an offset is listed. All are looked at, which the compiler does some at a time.
fn contains(listed: &[u16], at: u64) -> bool {
    listed
        .iter()
        .fold(false, |found, &slot| found | (u64::from(slot) == at))
}

/// The first listed offset at or above `from`.
fn next(listed: &[u16], from: u64) -> Option<u64> {
    let ahead = listed.iter().map(|&at| u64::from(at));
    ahead.filter(|&at| at >= from).min()
}

/// The first offset at or above `from` that is not listed.
fn next_missing(listed: &[u16], from: u64) -> Option<u64> {
    (from..CHUNK).find(|&at| !contains(listed, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_three_words() {
        assert_eq!(size_of::<Chunk>(), 24);
    }

    #[test]
    fn the_form_follows_the_contents() {
        let mut chunk = Chunk::FREE;
        for at in (0..CHUNK).step_by(2) {
            chunk.change(at, at, false).unwrap();
            let count = at / 2 + 1;
            assert_eq!(matches!(chunk, Chunk::Short(_)), count <= SHORT as u64);
            let list = matches!(chunk, Chunk::Short(_) | Chunk::List(_));
            assert_eq!(list, count <= MOST);
        }
        for at in (1..CHUNK).step_by(2) {
            assert_eq!(chunk.next_free(0), Some(at));
            chunk.change(at, at, false).unwrap();
        }
        assert!(chunk.is_all(false) && !chunk.is_all(true));
        for at in (0..CHUNK).rev() {
            chunk.change(at, at, true).unwrap();
            let few = CHUNK - at <= MOST || at <= MOST / 2;
            let short = CHUNK - at <= SHORT as u64 || at <= SHORT as u64 / 2;
            assert_eq!(matches!(chunk, Chunk::List(_)), few && !short, "{at}");
            assert_eq!(matches!(chunk, Chunk::Short(_)), short, "{at}");
            assert_eq!(chunk.first_taken(at, CHUNK - 1), None);
            assert_eq!(chunk.next_free(at / 2), Some(at));
        }
        assert!(chunk.is_all(true) && !chunk.is_all(false));
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
            let mut chunk = Chunk::all(!full);
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
            let mut chunk = Chunk::FREE;
            if spoil {
                chunk.change(10_000, 20_000, false).unwrap();
            }
            chunk.change_word(3, 0xF0F0, false).unwrap();
            assert_eq!(chunk.word(3), !0xF0F0);
            chunk.change_word(3, 0x00F0, true).unwrap();
            assert_eq!(chunk.word(3), !0xF000);
            assert!(!chunk.is_free(3 * 64 + 12));
            assert_eq!(chunk.first_taken(0, 9999), Some(3 * 64 + 12));
        }
    }

    /// Lists of every length, in the entry and beside it, have what was added and nothing else.
    #[test]
    fn a_list_finds_what_it_has_and_what_it_lacks() {
        for more in [0, 100] {
            let mut chunk = Chunk::FULL;
            chunk.change(1000, 1000 + more, true).unwrap();
            for at in [5, 6, 7, 65535, 0] {
                assert!(!chunk.is_free(at));
                chunk.change(at, at, true).unwrap();
            }
            assert_eq!(matches!(chunk, Chunk::List(_)), more != 0);
            assert_eq!(chunk.free(), more + 6);
            assert_eq!(chunk.next_free(1), Some(5));
            assert_eq!(chunk.first_taken(5, 2000), Some(8));
            assert_eq!(chunk.first_taken(65535, 65535), None);
            assert_eq!((chunk.word(0), chunk.word(1023)), (0b1110_0001, 1 << 63));
            chunk.change(5, 7, false).unwrap();
            chunk.change(65535, 65535, false).unwrap();
            chunk.change(1000, 1000 + more, false).unwrap();
            assert!(chunk.is_free(0) && chunk.free() == 1);
            chunk.change(0, 0, false).unwrap();
            assert!(chunk.is_all(false));
        }
    }

    #[test]
    fn a_list_that_was_long_gives_its_memory_back() {
        let mut chunk = Chunk::FREE;
        chunk.change(0, 511, false).unwrap();
        (0..500).for_each(|at| chunk.change(at, at, true).unwrap());
        assert!(chunk.bytes() <= 256, "{}", chunk.bytes());
        assert_eq!(
            (chunk.first_taken(0, 600), chunk.free()),
            (Some(500), CHUNK - 12)
        );
    }
}
