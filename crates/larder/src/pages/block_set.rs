//! A set of block numbers that finds its lowest member at once: a bitmap with 64-ary summaries.

use std::sync::Arc;

use crate::os::{MetaSlice, OsError, System};

/// Levels of the bitmap: 64^4 blocks of 64 pages of 4 KiB are 4 TiB.
const LEVELS: usize = 4;

/// A set of numbers below its capacity. Bit i of word w of level n+1 says that word 64w+i of level n is not zero.
#[derive(Debug)]
pub(super) struct BlockSet {
    words: MetaSlice<u64>,
    /// Where each level begins in `words`; level 0 holds the members.
    starts: [usize; LEVELS],
}

impl BlockSet {
    /// Most numbers that a set can hold.
    pub(super) const MOST: usize = 1 << (6 * LEVELS);

    /// An empty set of numbers below `capacity`, which is at most [`MOST`](Self::MOST).
    pub(super) fn new(system: Arc<dyn System>, capacity: usize) -> Result<Self, OsError> {
        debug_assert!(capacity <= Self::MOST);
        let mut starts = [0; LEVELS];
        let mut total = 0;
        let mut words = capacity;
        for start in &mut starts {
            words = words.div_ceil(64).max(1);
            *start = total;
            total += words;
        }
        Ok(Self {
            words: MetaSlice::new(system, total)?,
            starts,
        })
    }

    /// Adds or removes a number.
    pub(super) fn set(&mut self, number: usize, member: bool) {
        if self.contains(number) == member {
            return;
        }
        let mut at = number;
        for start in self.starts {
            let word = &mut self.words[start + at / 64];
            let before = *word;
            *word = if member {
                before | 1 << (at % 64)
            } else {
                before & !(1 << (at % 64))
            };
            // The summary above changes only when the word becomes or ceases to be zero.
            if before != 0 && *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// Whether a number is a member.
    pub(super) fn contains(&self, number: usize) -> bool {
        self.words[self.starts[0] + number / 64] & 1 << (number % 64) != 0
    }

    /// The lowest member that is at least `from`.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for level in 0..LEVELS {
            let words = &self.words[self.starts[level]
                ..self
                    .starts
                    .get(level + 1)
                    .copied()
                    .unwrap_or(self.words.len())];
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

    /// The lowest member.
    pub(super) fn first(&self) -> Option<usize> {
        self.next(0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::os::testing::system;

    proptest! {
        #[test]
        fn behaves_like_a_tree(ops in proptest::collection::vec((0_usize..300_000, any::<bool>(), 0_usize..300_001), 1..200)) {
            let mut set = BlockSet::new(system(), 300_000).unwrap();
            let mut model = BTreeSet::new();
            for (number, member, from) in ops {
                set.set(number, member);
                if member { model.insert(number); } else { model.remove(&number); }
                prop_assert_eq!(set.first(), model.first().copied());
                prop_assert_eq!(set.next(from), model.range(from..).next().copied());
                prop_assert_eq!(set.contains(number), member);
            }
        }
    }

    #[test]
    fn dense_neighbours_and_both_ends() {
        let mut set = BlockSet::new(system(), 5000).unwrap();
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
}
