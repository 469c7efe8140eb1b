//! Which set each offset of a range of at most 2^24 is in, in a few bits.

use alloc::vec::Vec;

use super::dense::DENSE;
use crate::ids::IdError;
use larder_base::word::{join, masks, split};

/// For each offset a number below `2^PLANES`: 0 is none, the others are sets. The bits of the numbers of 64 offsets
/// stand in `PLANES` words in a row, one for each binary digit.
///
/// For each set one bit per 128 offsets says whether one of them may be in it; it is cleared when a search finds none.
/// With two digits and three sets that makes 2.024 bits an offset.
#[derive(Debug)]
pub(crate) struct Planes<const SETS: usize> {
    words: Vec<u64>,
    /// The bits of set 1 to `SETS` for 64 times 128 offsets, then those of the next.
    maybe: Vec<u64>,
    last: u64,
}

impl<const SETS: usize> Planes<SETS> {
    /// Binary digits of a number up to `SETS`.
    const PLANES: usize = (usize::BITS - SETS.leading_zeros()) as usize;

    /// All offsets in set 1.
    pub(crate) fn new(last: u64) -> Self {
        debug_assert!(last < DENSE);
        Self {
            words: Vec::new(),
            maybe: Vec::new(),
            last,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.words.capacity() + self.maybe.capacity()) * 8
    }

    /// The digits of word `w`; beyond the end nothing has been changed.
    #[inline]
    fn digits(&self, w: usize) -> Option<&[u64]> {
        let at = w * Self::PLANES;
        self.words.get(at..at + Self::PLANES)
    }

    /// Which offsets of word `w` are in the set; `set` 0 is none.
    #[inline]
    fn members(&self, w: usize, set: usize) -> u64 {
        let Some(digits) = self.digits(w) else {
            return 0;
        };
        let mut mask = u64::MAX;
        for (p, digit) in digits.iter().enumerate() {
            // All ones where the digit of the set is 0.
            let flip = ((set >> p & 1) as u64).wrapping_sub(1);
            mask &= digit ^ flip;
        }
        mask
    }

    /// The set of an offset.
    #[inline]
    pub(crate) fn set_of(&self, at: u64) -> usize {
        let (w, _) = split(at);
        let Some(digits) = self.digits(w) else {
            return 1;
        };
        let digit = |(p, digit): (usize, &u64)| ((digit >> (at % 64) & 1) as usize) << p;
        digits.iter().enumerate().map(digit).sum()
    }

    /// Puts an offset that is in no set into one; false when it is in one already.
    #[inline]
    pub(crate) fn put(&mut self, at: u64, set: usize) -> bool {
        let (w, bit) = split(at);
        let first = w * Self::PLANES;
        let Some(digits) = self.words.get_mut(first..first + Self::PLANES) else {
            return false;
        };
        if digits.iter().fold(0, |any, digit| any | digit) & bit != 0 {
            return false;
        }
        for (p, digit) in digits.iter_mut().enumerate() {
            if set >> p & 1 == 1 {
                *digit |= bit;
            }
        }
        self.hint(w, set);
        true
    }

    /// Puts the offsets of `mask` of the word at `base`, which are in no set, into one.
    pub(crate) fn put_word(&mut self, base: u64, mask: u64, set: usize) {
        let (w, _) = split(base);
        for p in 0..Self::PLANES {
            if set >> p & 1 == 1 {
                self.words[w * Self::PLANES + p] |= mask;
            }
        }
        self.hint(w, set);
    }

    /// Takes the members of a set out of the first word at or above `from` that has any: its first offset, and which.
    /// Whatever is passed on the way has no more members.
    pub(crate) fn grab(&mut self, from: u64, set: usize) -> Result<Option<(u64, u64)>, IdError> {
        let (mut w, _) = split(from);
        loop {
            // The second word of 128 offsets of which the first was just used up.
            if w % 2 == 1 {
                let found = self.members(w, set);
                self.unhint(w, set);
                if found != 0 {
                    return Ok(Some(self.grabbed(w, found)));
                }
                w += 1;
            }
            let Some(next) = self.next_hint(w, set) else {
                let end = self.words.len() / Self::PLANES;
                if set != 1 || end as u64 * 64 > self.last {
                    return Ok(None);
                }
                self.reach(end)?;
                w = w.max(end & !1);
                continue;
            };
            w = next;
            let found = self.members(w, set);
            if found != 0 {
                return Ok(Some(self.grabbed(w, found)));
            }
            w += 1;
        }
    }

    #[inline]
    fn grabbed(&mut self, w: usize, mask: u64) -> (u64, u64) {
        self.clear(w, mask);
        (w as u64 * 64, mask)
    }

    #[inline]
    fn clear(&mut self, w: usize, mask: u64) {
        let first = w * Self::PLANES;
        for digit in &mut self.words[first..first + Self::PLANES] {
            *digit &= !mask;
        }
    }

    /// Takes `first..=last` out of their sets, and calls `each` with a set and how many of them were in it.
    pub(crate) fn remove(
        &mut self,
        first: u64,
        last: u64,
        mut each: impl FnMut(usize, u64),
    ) -> Result<(), IdError> {
        self.reach(split(last).0)?;
        for (w, mask) in masks(first, last) {
            for set in 1..=SETS {
                each(set, u64::from((self.members(w, set) & mask).count_ones()));
            }
            self.clear(w, mask);
        }
        Ok(())
    }

    /// The first offset of `first..=last` that is in a set, or that is in none.
    pub(crate) fn first(&self, first: u64, last: u64, member: bool) -> Option<u64> {
        for (w, mask) in masks(first, last) {
            let Some(digits) = self.digits(w) else {
                return member.then_some(first.max(w as u64 * 64));
            };
            let any = digits.iter().fold(0, |any, digit| any | digit);
            let found = if member { any } else { !any } & mask;
            if found != 0 {
                return Some(join(w, found));
            }
        }
        None
    }

    /// Where the hint of word `w` is.
    #[inline]
    fn hint_of(w: usize, set: usize) -> (usize, u64) {
        let (h, bit) = split(w as u64 / 2);
        (h * SETS + set - 1, bit)
    }

    #[inline]
    fn hint(&mut self, w: usize, set: usize) {
        let (h, bit) = Self::hint_of(w, set);
        if let Some(hint) = self.maybe.get_mut(h) {
            *hint |= bit;
        }
    }

    fn unhint(&mut self, w: usize, set: usize) {
        let (h, bit) = Self::hint_of(w, set);
        if let Some(hint) = self.maybe.get_mut(h) {
            *hint &= !bit;
        }
    }

    /// The first word of the first 128 offsets, at or above word `w`, that may have members.
    fn next_hint(&self, w: usize, set: usize) -> Option<usize> {
        let (mut h, bit) = Self::hint_of(w, set);
        let mut found = self.maybe.get(h)? & bit.wrapping_neg();
        while found == 0 {
            h += SETS;
            found = *self.maybe.get(h)?;
        }
        Some(join(h / SETS, found) as usize * 2)
    }

    #[inline]
    fn reach(&mut self, w: usize) -> Result<(), IdError> {
        if (w + 1) * Self::PLANES > self.words.len() {
            self.grow(w)?;
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, w: usize) -> Result<(), IdError> {
        let oom = |_| IdError::OutOfMemory;
        let old = self.words.len() / Self::PLANES;
        let all = split(self.last).0 + 1;
        let len = (w + 1).max(old * 2).max(64).min(all);
        let hints = len.div_ceil(128) * SETS;
        self.words
            .try_reserve_exact((len - old) * Self::PLANES)
            .map_err(oom)?;
        self.maybe
            .try_reserve_exact(hints - self.maybe.len())
            .map_err(oom)?;
        self.maybe.resize(hints, 0);
        for w in old..len {
            let (end, bit) = split(self.last);
            let mask = if w == end { bit | (bit - 1) } else { u64::MAX };
            self.words.push(mask);
            self.words.extend((1..Self::PLANES).map(|_| 0));
            self.hint(w, 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_for_three_sets_and_three_for_five() {
        fn bits<const SETS: usize>() -> f64 {
            let mut planes = Planes::<SETS>::new((1 << 22) - 1);
            planes.remove(0, (1 << 22) - 1, |_, _| {}).unwrap();
            planes.bytes() as f64 * 8.0 / (1 << 22) as f64
        }
        assert!(bits::<3>() < 2.03, "{}", bits::<3>());
        assert!(bits::<5>() < 3.05, "{}", bits::<5>());
    }

    #[test]
    fn members_move_between_sets() {
        let mut planes = Planes::<3>::new(999);
        let mut sizes = [0; 4];
        planes.remove(100, 300, |set, n| sizes[set] += n).unwrap();
        assert_eq!(sizes, [0, 201, 0, 0]);
        assert!(planes.put(200, 3) && !planes.put(200, 2) && !planes.put(99, 2));
        assert_eq!(
            (planes.set_of(200), planes.set_of(201), planes.set_of(999)),
            (3, 0, 1)
        );
        assert_eq!(planes.first(100, 999, true), Some(200));
        assert_eq!(planes.first(200, 999, false), Some(201));
        assert_eq!(planes.grab(0, 3).unwrap(), Some((192, 1 << 8)));
        assert_eq!(planes.grab(256, 3).unwrap(), None);
        let mut free = 0;
        let mut from = 0;
        while let Some((base, mask)) = planes.grab(from, 1).unwrap() {
            free += mask.count_ones();
            from = base + 64;
        }
        assert_eq!(free, 1000 - 201);
        assert_eq!(planes.first(0, 999, true), None);
    }
}
