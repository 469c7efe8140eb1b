//! Free offsets of a range of at most 2^24, as bits.

use alloc::vec::Vec;
use core::hint::{cold_path, select_unpredictable};

use larder_base::word::{join, masks, nth, split};

use crate::ids::IdError;

/// The widest range that this map serves.
pub(crate) const DENSE: u64 = 1 << 24;

/// The free offsets of a range of at most 2^24 as bits, 1 = free. The words reach as far as offsets were taken: those
/// beyond are all free. They are made in steps that double.
///
/// When they are searched they have two levels of summary: 1 = the word is not empty. A summary is changed only when a word
/// becomes empty or stops being empty. 1.016 bits an offset. Otherwise they have none and count nothing, because a queue knows
/// which offset is next: they detect an offset that is given back twice.
#[derive(Debug)]
pub(crate) struct Dense<const SEARCHED: bool = true> {
    words: Vec<u64>,
    some: Vec<u64>,
    /// At most 4096 words have a summary, so 64 words of the next level are enough.
    more: Vec<u64>,
    taken: u64,
    /// While more than this many are taken it cannot be predicted whether a word is empty, and while more than that,
    /// whether a word of its summary is.
    words_vary: u64,
    summaries_vary: u64,
    last: u64,
}

impl<const SEARCHED: bool> Dense<SEARCHED> {
    pub(crate) fn new(last: u64) -> Self {
        debug_assert!(last < DENSE);
        Self {
            words: Vec::new(),
            some: Vec::new(),
            more: Vec::new(),
            taken: 0,
            words_vary: last - last / 32,
            summaries_vary: last - last / 2048,
            last,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.words.capacity() + self.some.capacity() + self.more.capacity()) * 8
    }

    #[inline]
    pub(crate) fn is_free(&self, at: u64) -> bool {
        let (w, bit) = split(at);
        self.words.get(w).is_none_or(|word| word & bit != 0)
    }

    /// Takes one; false when it is taken already.
    #[inline]
    pub(crate) fn take(&mut self, at: u64) -> Result<bool, IdError> {
        let (w, bit) = split(at);
        self.reach(w)?;
        let was = self.words[w] & bit != 0;
        if was {
            self.remove(w, bit);
            self.taken += 1;
        }
        Ok(was)
    }

    /// Gives one of the range back; false when it is free already.
    #[inline(always)]
    pub(crate) fn give(&mut self, at: u64) -> bool {
        let (w, bit) = split(at);
        let Some(word) = self.words.get_mut(w) else {
            return false;
        };
        let old = *word;
        // To set a bit before it is known to be clear takes two instructions less, and changes nothing when it is set.
        *word = old | bit;
        if old & bit != 0 {
            cold_path();
            return false;
        }
        if SEARCHED {
            self.taken -= 1;
            // Whether the word was empty cannot be predicted when nearly all are taken; to say again that it is not costs
            // less than to guess wrong.
            if self.taken >= self.words_vary || old == 0 {
                self.filled(w);
            }
        }
        true
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.reach(split(last).0)?;
        masks(first, last).for_each(|(w, mask)| self.remove(w, mask));
        self.taken = self.taken.wrapping_add(last - first + 1);
        Ok(())
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        let (w, bit) = split(from);
        let Some(word) = self.words.get(w) else {
            return (from <= self.last).then_some(from);
        };
        let ahead = word & bit.wrapping_neg();
        if ahead != 0 {
            return Some(join(w, ahead));
        }
        let found = if SEARCHED {
            self.next_summary(w).map(|(s, found)| join(s, found))
        } else {
            let next = self.words[w + 1..].iter().position(|&word| word != 0);
            next.map(|next| (w + 1 + next) as u64)
        };
        match found {
            Some(w) => Some(join(w as usize, self.words[w as usize])),
            None => {
                let beyond = self.words.len() as u64 * 64;
                (beyond <= self.last).then_some(beyond)
            }
        }
    }

    /// The first offset of `first..=last` that is taken.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        let (w, bit) = split(first);
        let words = self.words.get(..=split(last).0).unwrap_or(&self.words);
        let mut ahead = !words.get(w)? & bit.wrapping_neg();
        let mut at = w;
        if ahead == 0 {
            at += 1 + words[w + 1..].iter().position(|&word| word != u64::MAX)?;
            ahead = !words[at];
        }
        Some(join(at, ahead)).filter(|&at| at <= last)
    }

    /// The first word beyond `w` that is not empty: its summary's index, and the bits of the summary from there on. At most
    /// three levels.
    #[inline]
    fn next_summary(&self, w: usize) -> Option<(usize, u64)> {
        let s = w / 64;
        let found = self.some.get(s)? & beyond(w);
        if found != 0 {
            return Some((s, found));
        }
        let mut m = s / 64;
        let mut upper = self.more.get(m)? & beyond(s);
        while upper == 0 {
            m += 1;
            upper = *self.more.get(m)?;
        }
        let s = join(m, upper) as usize;
        Some((s, *self.some.get(s)?))
    }

    /// As [`next_summary`](Dense::next_summary), and does not branch on whether it is under the same word of the summary,
    /// which cannot be predicted near full.
    #[inline]
    fn next_summary_maybe(&self, w: usize) -> Option<(usize, u64)> {
        let s = w / 64;
        let near = self.some.get(s)? & beyond(w);
        let upper = self.more.get(s / 64)? & beyond(s);
        if upper == 0 {
            return self.next_summary(w);
        }
        let far = join(s / 64, upper) as usize;
        let found = select_unpredictable(near != 0, near, *self.some.get(far)?);
        Some((select_unpredictable(near != 0, s, far), found))
    }

    /// Removes the offsets of `mask`, all of which are free.
    #[inline]
    fn remove(&mut self, w: usize, mask: u64) {
        self.words[w] &= !mask;
        if SEARCHED && self.words[w] == 0 {
            let (s, bit) = split(w as u64);
            self.some[s] &= !bit;
            if self.some[s] == 0 {
                let (m, bit) = split(s as u64);
                self.more[m] &= !bit;
            }
        }
    }

    /// Adds the offsets of `mask`, none of which is free.
    fn insert(&mut self, w: usize, mask: u64) {
        self.words[w] |= mask;
        self.filled(w);
    }

    /// Notes that a word is not empty, without a branch.
    #[inline]
    fn filled(&mut self, w: usize) {
        let (s, bit) = split(w as u64);
        let (m, upper) = split(s as u64);
        if let (Some(some), Some(more)) = (self.some.get_mut(s), self.more.get_mut(m)) {
            *some |= bit;
            *more |= upper;
        }
    }

    #[inline]
    fn reach(&mut self, w: usize) -> Result<(), IdError> {
        if w >= self.words.len() {
            self.grow(w)?;
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, w: usize) -> Result<(), IdError> {
        let (end, bit) = split(self.last);
        let old = self.words.len();
        let len = (w + 1).max(old * 2).max(64).min(end + 1);
        let summaries = if SEARCHED { len } else { 0 };
        let sizes = [len, summaries.div_ceil(64), summaries.div_ceil(4096)];
        let mut levels = [&mut self.words, &mut self.some, &mut self.more];
        for (level, len) in levels.iter_mut().zip(sizes) {
            level
                .try_reserve_exact(len - level.len())
                .map_err(|_| IdError::OutOfMemory)?;
        }
        self.words.resize(len, u64::MAX);
        self.some.resize(sizes[1], 0);
        self.more.resize(sizes[2], 0);
        if len == end + 1 {
            // None is free beyond the range.
            self.words[end] = bit | (bit - 1);
        }
        (old..len).for_each(|w| self.filled(w));
        Ok(())
    }
}

impl Dense {
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Counts one that was grabbed as taken.
    #[inline]
    pub(crate) fn count_taken(&mut self) {
        self.taken = self.taken.wrapping_add(1);
    }

    /// Counts one that is taken as grabbed.
    #[inline]
    pub(crate) fn count_given(&mut self) {
        self.taken = self.taken.wrapping_sub(1);
    }

    /// Removes the free offsets at or above `from` of the first word that has any: its index, and which. They are counted
    /// when they are handed out.
    #[inline]
    pub(crate) fn grab(&mut self, from: u64) -> Result<Option<(u64, u64)>, IdError> {
        let (w, bit) = split(from);
        let Some(word) = self.words.get(w) else {
            return self.grab_beyond(from);
        };
        let mask = word & bit.wrapping_neg();
        if mask == 0 {
            return self.grab_after(w as u64);
        }
        self.remove(w, mask);
        Ok(Some((w as u64, mask)))
    }

    /// As [`grab`](Dense::grab) of the first word beyond that of index `w`.
    pub(crate) fn grab_after(&mut self, w: u64) -> Result<Option<(u64, u64)>, IdError> {
        match self.grab_after_quickly(w) {
            None => self.grab_beyond((self.words.len() as u64).max(w + 1) * 64),
            found => Ok(found),
        }
    }

    /// The same of the words that are there. The summary is asked first: whether the very next word is empty cannot be
    /// predicted.
    #[inline(always)]
    pub(crate) fn grab_after_quickly(&mut self, w: u64) -> Option<(u64, u64)> {
        let varies = self.taken > self.summaries_vary;
        let (s, found) = if varies {
            self.next_summary_maybe(w as usize)?
        } else {
            self.next_summary(w as usize)?
        };
        let w = join(s, found);
        let mask = core::mem::take(self.words.get_mut(w as usize)?);
        if let (Some(some), Some(more)) = (self.some.get_mut(s), self.more.get_mut(s / 64)) {
            *some ^= found & found.wrapping_neg();
            // Whether the word of the summary becomes empty, too, cannot be predicted then.
            if varies || *some == 0 {
                *more &= !(u64::from(*some == 0) << (s % 64));
            }
        }
        Some((w, mask))
    }

    /// Out of the words that are not there yet.
    #[cold]
    fn grab_beyond(&mut self, from: u64) -> Result<Option<(u64, u64)>, IdError> {
        if from > self.last {
            return Ok(None);
        }
        self.reach(split(from).0)?;
        self.grab(from)
    }

    /// Puts the offsets of `mask`, which were grabbed and not handed out, back to the word at index `w`.
    #[inline]
    pub(crate) fn put(&mut self, w: u64, mask: u64) {
        if mask != 0 {
            self.insert(w as usize, mask);
        }
    }

    /// Gives back `first..=last`, all of which are taken.
    pub(crate) fn give_span(&mut self, first: u64, last: u64) {
        masks(first, last).for_each(|(w, mask)| self.insert(w, mask));
        self.taken -= last - first + 1;
    }

    /// The free offset that has `rank` free ones below it: looks at the words that have any.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        let mut left = rank;
        let mut from = self.next_free(0)?;
        while let (w, _) = split(from)
            && let Some(&word) = self.words.get(w)
        {
            match nth(word, left) {
                Ok(bit) => return Some(w as u64 * 64 + bit),
                Err(rest) => left = rest,
            }
            from = self.next_free((w as u64 + 1) * 64)?;
        }
        from.checked_add(left).filter(|&at| at <= self.last)
    }
}

impl Dense<false> {
    /// Takes one of those that the words reach; false for others and for one that is taken.
    #[inline(always)]
    pub(crate) fn take_quickly(&mut self, at: u64) -> bool {
        let (w, bit) = split(at);
        let Some(word) = self.words.get_mut(w) else {
            return false;
        };
        let old = *word;
        *word = old & !bit;
        old & bit != 0
    }
}

/// The bits beyond that of `at` in its word. `2 << 63` is 0: of a word's last bit nothing lies beyond.
#[inline]
fn beyond(at: usize) -> u64 {
    (2u64 << (at % 64)).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_of_four_million_costs_less_than_a_fiftieth_more_than_its_bits() {
        let mut map = <Dense>::new((1 << 22) - 1);
        assert_eq!(map.bytes(), 0);
        map.take_span(0, (1 << 22) - 1).unwrap();
        assert!(map.bytes() * 8 * 100 <= (1 << 22) * 102);
        assert_eq!(map.taken(), 1 << 22);
        assert_eq!(map.grab(0), Ok(None));
        assert_eq!(map.next_free(0), None);
        assert!(map.give(4_000_000));
        assert_eq!(map.next_free(0), Some(4_000_000));
        assert_eq!(map.grab(5), Ok(Some((4_000_000 / 64, 1))));
    }

    #[test]
    fn a_range_of_every_length_ends_where_it_ends() {
        for len in [1, 63, 64, 65, 4095, 4096, 4097, 262_143, 262_144, 262_145] {
            let mut map = <Dense>::new(len - 1);
            let mut taken = 0;
            while let Some((w, mask)) = map.grab(0).unwrap() {
                assert_eq!(w * 64, taken);
                taken += u64::from(mask.count_ones());
                (0..mask.count_ones()).for_each(|_| map.count_taken());
            }
            assert_eq!((taken, map.taken()), (len, len));
            map.give_span(len - 1, len - 1);
            assert_eq!(map.next_free(0), Some(len - 1));
            assert_eq!(map.grab(len - 1).unwrap().map(|_| ()), Some(()));
            assert_eq!(map.first_taken(0, len - 1), Some(0));
        }
    }

    #[test]
    fn memory_grows_with_use() {
        let mut map = <Dense>::new(DENSE - 1);
        map.grab(0).unwrap();
        assert!(map.bytes() <= 1024);
    }
}
