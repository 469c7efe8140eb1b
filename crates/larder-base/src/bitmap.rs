//! A set of numbers that finds its lowest member at once: a bitmap with 64-ary summaries.

use core::ops::{DerefMut, Range};

/// Levels of the bitmap: 64^4 numbers, which is 4 TiB in blocks of 64 pages of 4 KiB.
const LEVELS: usize = 4;

/// A set of numbers below its capacity, in words that its owner provides. Bit i of word w of level n+1 says that word 64w+i of
/// level n is not zero. An operation on one number reads at most two words of each level.
///
/// ```
/// use larder_base::bitmap::Bitmap;
///
/// let words = vec![0; Bitmap::<Vec<u64>>::words(1000)];
/// let mut set = Bitmap::new(words, 1000);
/// set.set(700, true);
/// set.set(3, true);
/// assert_eq!((set.first(), set.next(4), set.next(701)), (Some(3), Some(700), None));
/// ```
#[derive(Debug, Default)]
pub struct Bitmap<W> {
    words: W,
    /// Where each level begins in `words`; level 0 holds the members. The levels lie from the highest to the lowest, so that all words
    /// of low numbers lie in the first page.
    starts: [usize; LEVELS],
}

impl<W> Bitmap<W> {
    /// Most numbers that a set can hold.
    pub const MOST: usize = 1 << (6 * LEVELS);

    /// How many words the levels of a set of numbers below `capacity` take, and where each of them begins.
    fn layout(capacity: usize) -> (usize, [usize; LEVELS]) {
        let mut words = [0; LEVELS];
        let mut below = capacity;
        for words in &mut words {
            below = below.div_ceil(64).max(1);
            *words = below;
        }
        let mut starts = [0; LEVELS];
        let mut total = 0;
        for (start, words) in starts.iter_mut().zip(words).rev() {
            *start = total;
            total += words;
        }
        (total, starts)
    }

    /// How many words a set of numbers below `capacity` takes.
    #[must_use]
    pub fn words(capacity: usize) -> usize {
        Self::layout(capacity).0
    }
}

impl<W: DerefMut<Target = [u64]>> Bitmap<W> {
    /// An empty set of numbers below `capacity`, which is at most [`MOST`](Self::MOST). `words` are [as many](Self::words) zeros
    /// as it takes.
    #[must_use]
    pub fn new(words: W, capacity: usize) -> Self {
        debug_assert!(capacity <= Self::MOST);
        let (total, starts) = Self::layout(capacity);
        debug_assert_eq!(words.len(), total);
        Self { words, starts }
    }

    /// Adds or removes a number.
    pub fn set(&mut self, number: usize, member: bool) {
        if self.contains(number) != member {
            self.set_range(number..number + 1, member);
        }
    }

    /// Adds or removes all numbers of a range.
    pub fn set_range(&mut self, numbers: Range<usize>, member: bool) {
        let Range { mut start, mut end } = numbers;
        for level in self.starts {
            if start >= end {
                return;
            }
            let (first, last) = (start / 64, (end - 1) / 64);
            let (head, tail) = (u64::MAX << (start % 64), u64::MAX >> (63 - (end - 1) % 64));
            // The summary changes only when a word becomes or ceases to be zero: it has the bit of a word that was not, and keeps
            // the bit of one that is not.
            let mut change = |word: usize, mask: u64| {
                let word = &mut self.words[level + word];
                let before = *word;
                *word = if member {
                    before | mask
                } else {
                    before & !mask
                };
                before == 0 || *word == 0
            };
            if first == last {
                if !change(first, head & tail) {
                    return;
                }
                (start, end) = (first, first + 1);
                continue;
            }
            let (at_start, at_end) = (change(first, head), change(last, tail));
            for word in first + 1..last {
                change(word, u64::MAX);
            }
            start = first + usize::from(!at_start);
            end = last + usize::from(at_end);
        }
    }

    /// Whether a number is a member.
    #[must_use]
    pub fn contains(&self, number: usize) -> bool {
        self.words[self.starts[0] + number / 64] & 1 << (number % 64) != 0
    }

    /// The lowest member that is at least `from`.
    #[must_use]
    pub fn next(&self, from: usize) -> Option<usize> {
        let mut at = from;
        let mut end = self.words.len();
        for level in 0..LEVELS {
            let words = self.words.get(self.starts[level]..end)?;
            end = self.starts[level];
            let rest = words.get(at / 64)? & (u64::MAX << (at % 64));
            if rest != 0 {
                // Down again: the lowest bit of every word on the way.
                let mut found = at / 64 * 64 + rest.trailing_zeros() as usize;
                for below in (0..level).rev() {
                    found = found * 64
                        + self.words[self.starts[below] + found].trailing_zeros() as usize;
                }
                return Some(found);
            }
            // Nothing in the rest of this word: look in the summary, from the next word on.
            at = at / 64 + 1;
        }
        None
    }

    /// The first of the lowest `n` members from `from` on that follow one another.
    #[must_use]
    pub fn next_run(&self, from: usize, n: usize) -> Option<usize> {
        let mut start = self.next(from)?;
        loop {
            let run = self.run(start, n);
            if run >= n {
                return Some(start);
            }
            start = self.next(start + run + 1)?;
        }
    }

    /// How many members follow one another from `start` on; at least `enough`, if so many do.
    fn run(&self, start: usize, enough: usize) -> usize {
        let members = &self.words[self.starts[0]..];
        let mut n = 0;
        while n < enough
            && let Some(word) = members.get((start + n) / 64)
        {
            let at = (start + n) % 64;
            let ones = (word >> at).trailing_ones() as usize;
            n += ones;
            if ones < 64 - at {
                break;
            }
        }
        n
    }

    /// The lowest member.
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        self.next(0)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn empty(capacity: usize) -> Bitmap<Vec<u64>> {
        let words = vec![0; Bitmap::<Vec<u64>>::words(capacity)];
        Bitmap::new(words, capacity)
    }

    proptest! {
        #[test]
        fn behaves_like_a_tree(ops in proptest::collection::vec((0_usize..300_000, any::<bool>(), 0_usize..300_001), 1..200)) {
            let mut set = empty(300_000);
            let mut model = BTreeSet::new();
            for (number, member, from) in ops {
                set.set(number, member);
                if member { model.insert(number); } else { model.remove(&number); }
                prop_assert_eq!(set.first(), model.first().copied());
                prop_assert_eq!(set.next(from), model.range(from..).next().copied());
                prop_assert_eq!(set.contains(number), member);
            }
        }

        #[test]
        fn ranges_are_all_their_numbers(
            ops in proptest::collection::vec((0_usize..20_000, 0_usize..9_000, any::<bool>(), 1_usize..300), 1..40)
        ) {
            let mut set = empty(29_000);
            let mut model = vec![false; 29_000];
            for (start, n, member, run) in ops {
                set.set_range(start..start + n, member);
                model[start..start + n].fill(member);
                for from in [0, start.saturating_sub(1), start, start + n] {
                    let next = (from..29_000).find(|&i| model[i]);
                    prop_assert_eq!(set.next(from), next, "from {}", from);
                    let of_run = (from..=29_000 - run).find(|&i| model[i..i + run].iter().all(|m| *m));
                    prop_assert_eq!(set.next_run(from, run), of_run, "{} from {}", run, from);
                }
            }
            // The summaries, too, are those of a set that was filled number by number.
            let mut slowly = empty(29_000);
            for (number, member) in model.iter().enumerate() {
                slowly.set(number, *member);
            }
            prop_assert_eq!(set.words, slowly.words);
        }
    }

    #[test]
    fn dense_neighbours_and_both_ends() {
        let mut set = empty(5000);
        assert_eq!(set.first(), None);
        for n in 0..5000 {
            set.set(n, true);
        }
        for n in 0..5000 {
            assert_eq!(set.next(n), Some(n));
        }
        assert_eq!(set.next(5000), None);
        for n in (0..5000).rev() {
            assert!(set.contains(n));
            set.set(n, false);
        }
        assert_eq!(set.first(), None);
    }

    #[test]
    fn a_set_without_words_is_empty() {
        assert_eq!(Bitmap::<Vec<u64>>::default().first(), None);
    }
}
