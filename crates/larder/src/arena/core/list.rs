//! The free lists: one for each power of two, and a bit for each that has something.

use super::tag::{Kind, NONE, Tags};

/// Free segments by size: list n has those from 2^n to 2^(n+1) - 1. Doubly linked through the tags, so that a segment
/// whose neighbour is freed leaves its list in constant time.
#[derive(Debug)]
pub(super) struct Lists {
    heads: [u32; 64],
    /// Bit n: list n is not empty.
    filled: u64,
}

impl Lists {
    pub(super) fn new() -> Self {
        Self {
            heads: [NONE; 64],
            filled: 0,
        }
    }

    /// The list of a size, which is not 0.
    pub(super) fn of(size: u64) -> u32 {
        size.ilog2()
    }

    /// First segment of the first list from `n` on that has one.
    pub(super) fn first_from(&self, n: u32) -> u32 {
        let filled = self.filled & u64::MAX.checked_shl(n).unwrap_or(0);
        if filled == 0 {
            NONE
        } else {
            self.heads[filled.trailing_zeros() as usize]
        }
    }

    /// Numbers of the lists from `n` on that have segments.
    pub(super) fn filled_from(&self, n: u32) -> impl Iterator<Item = u32> {
        let mut filled = self.filled & u64::MAX.checked_shl(n).unwrap_or(0);
        core::iter::from_fn(move || {
            let list = (filled != 0).then(|| filled.trailing_zeros());
            filled &= filled.wrapping_sub(1);
            list
        })
    }

    /// The segments of list `n`, latest first.
    pub(super) fn segments<'t>(&self, tags: Tags<'t>, n: u32) -> impl Iterator<Item = u32> + 't {
        let mut at = self.heads[n as usize];
        core::iter::from_fn(move || {
            let tag = (at != NONE).then_some(at)?;
            at = tags.get(tag).right();
            Some(tag)
        })
    }

    /// Marks a segment as free and lists it.
    pub(super) fn insert(&mut self, tags: Tags<'_>, tag: u32) {
        let it = tags.get(tag);
        let n = Self::of(it.size());
        let head = self.heads[n as usize];
        // With nothing before it.
        it.set_kind(Kind::Free);
        it.set_right(head);
        if head != NONE {
            tags.get(head).set_left(tag);
        }
        self.heads[n as usize] = tag;
        self.filled |= 1 << n;
    }

    /// Takes a segment off its list. Its size is still the one that it was listed with.
    pub(super) fn remove(&mut self, tags: Tags<'_>, tag: u32) {
        let it = tags.get(tag);
        let (left, right) = (it.left(), it.right());
        if right != NONE {
            tags.get(right).set_left(left);
        }
        if left != NONE {
            tags.get(left).set_right(right);
            return;
        }
        let n = Self::of(it.size());
        self.heads[n as usize] = right;
        if right == NONE {
            self.filled &= !(1 << n);
        }
    }
}
