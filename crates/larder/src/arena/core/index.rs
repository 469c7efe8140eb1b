//! The spans by address: a treap (Seidel and Aragon 1996) through their tags, balanced by a hash of the address.
//!
//! It answers which span an address lies in, and refuses spans that overlap.

use super::tag::{NONE, Tags};

/// A place in the tree where a subtree hangs.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Root,
    Left(u32),
    Right(u32),
}

/// The tree of all spans.
#[derive(Debug)]
pub(super) struct Index {
    root: u32,
}

impl Index {
    pub(super) fn new() -> Self {
        Self { root: NONE }
    }

    fn get(&self, tags: Tags<'_>, slot: Slot) -> u32 {
        match slot {
            Slot::Root => self.root,
            Slot::Left(of) => tags.get(of).left(),
            Slot::Right(of) => tags.get(of).right(),
        }
    }

    fn set(&mut self, tags: Tags<'_>, slot: Slot, to: u32) {
        match slot {
            Slot::Root => self.root = to,
            Slot::Left(of) => tags.get(of).set_left(to),
            Slot::Right(of) => tags.get(of).set_right(to),
        }
    }

    /// The span with the largest start that is at most `addr`, or `NONE`.
    pub(super) fn floor(&self, tags: Tags<'_>, addr: u64) -> u32 {
        let (mut at, mut best) = (self.root, NONE);
        while at != NONE {
            let tag = tags.get(at);
            if tag.start() <= addr {
                best = at;
                at = tag.right();
            } else {
                at = tag.left();
            }
        }
        best
    }

    /// The span with the smallest start that is at least `addr`, or `NONE`.
    pub(super) fn ceiling(&self, tags: Tags<'_>, addr: u64) -> u32 {
        let (mut at, mut best) = (self.root, NONE);
        while at != NONE {
            let tag = tags.get(at);
            if tag.start() >= addr {
                best = at;
                at = tag.left();
            } else {
                at = tag.right();
            }
        }
        best
    }

    /// The span after `span`, or `NONE`.
    pub(super) fn after(&self, tags: Tags<'_>, span: u32) -> u32 {
        tags.get(span)
            .last()
            .checked_add(1)
            .map_or(NONE, |next| self.ceiling(tags, next))
    }

    /// The first span, or `NONE`.
    pub(super) fn first(&self, tags: Tags<'_>) -> u32 {
        self.ceiling(tags, 0)
    }

    /// The span that shares an address with the given range, or `NONE`.
    pub(super) fn overlapping(&self, tags: Tags<'_>, start: u64, last: u64) -> u32 {
        match self.floor(tags, last) {
            span if span != NONE && tags.get(span).last() >= start => span,
            _ => NONE,
        }
    }

    /// Adds a span that overlaps no other.
    pub(super) fn insert(&mut self, tags: Tags<'_>, span: u32) {
        let key = tags.get(span).start();
        let mut slot = Slot::Root;
        let mut at = self.root;
        while at != NONE && rank(tags, at) >= rank(tags, span) {
            slot = side(tags, at, key);
            at = self.get(tags, slot);
        }
        self.set(tags, slot, span);
        // What hung there is parted into what lies before the span and what lies after.
        let (mut before, mut after) = (Slot::Left(span), Slot::Right(span));
        while at != NONE {
            if tags.get(at).start() < key {
                self.set(tags, before, at);
                before = Slot::Right(at);
                at = self.get(tags, before);
            } else {
                self.set(tags, after, at);
                after = Slot::Left(at);
                at = self.get(tags, after);
            }
        }
        self.set(tags, before, NONE);
        self.set(tags, after, NONE);
    }

    /// Removes a span that is there.
    pub(super) fn remove(&mut self, tags: Tags<'_>, span: u32) {
        let key = tags.get(span).start();
        let mut slot = Slot::Root;
        loop {
            match self.get(tags, slot) {
                at if at == span => break,
                // It is not there.
                NONE => return,
                at => slot = side(tags, at, key),
            }
        }
        // Its two subtrees become one.
        let (mut a, mut b) = (tags.get(span).left(), tags.get(span).right());
        while a != NONE && b != NONE {
            if rank(tags, a) >= rank(tags, b) {
                self.set(tags, slot, a);
                slot = Slot::Right(a);
                a = self.get(tags, slot);
            } else {
                self.set(tags, slot, b);
                slot = Slot::Left(b);
                b = self.get(tags, slot);
            }
        }
        self.set(tags, slot, if a == NONE { b } else { a });
    }
}

fn side(tags: Tags<'_>, at: u32, key: u64) -> Slot {
    if key < tags.get(at).start() {
        Slot::Left(at)
    } else {
        Slot::Right(at)
    }
}

/// What the tree is a heap by: two rounds of a mixing function, so that no pattern of addresses is a pattern of ranks.
fn rank(tags: Tags<'_>, span: u32) -> u64 {
    let mut x = tags.get(span).start();
    for _ in 0..2 {
        x = (x ^ (x >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    x ^ (x >> 29)
}
