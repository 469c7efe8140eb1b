//! Sets of free offsets, by how wide the range is.

mod bits;
mod chunk;
mod counted;
mod dense;
mod held;
mod list;
mod loose;
mod marks;
mod ordered;
mod paged;
mod plain;
mod planes;
mod sets;
mod short;
mod sorted;
mod tree;
mod wide;
mod word;

use self::dense::{DENSE, Dense};
use self::paged::Paged;
use self::tree::Tree;
use self::wide::Wide;
use super::IdError;

pub(crate) use self::held::Held;
pub(crate) use self::loose::Loose;
pub(crate) use self::marks::{Marks, PLAIN};
pub(crate) use self::plain::Plain;
pub(crate) use self::sets::Sets;

/// The free offsets of `0..=last`.
///
/// The quick ways do not ask which structure it is: in wide ranges `dense` is empty, and neither gives nor takes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Map {
    /// Of ranges up to 2^24; beyond it stays empty.
    dense: Dense,
    wide: Option<Spread>,
}

#[derive(Debug)]
enum Spread {
    /// At most 2^32.
    Paged(Wide<Paged>),
    Tree(Wide<Tree>),
}

/// Calls the same method of whichever structure it is.
macro_rules! each {
    ($self:expr, $map:ident => $call:expr) => {
        each!($self, as_ref, $map => $call, $call)
    };
    (mut $self:expr, $map:ident => $call:expr) => {
        each!($self, as_mut, $map => $call, $call)
    };
    (mut $self:expr, $dense:ident => $first:expr, $map:ident => $call:expr) => {
        match $self.wide.as_mut() {
            None => {
                let $dense = &mut $self.dense;
                $first
            }
            Some(Spread::Paged($map)) => $call,
            Some(Spread::Tree($map)) => $call,
        }
    };
    ($self:expr, as_ref, $map:ident => $first:expr, $call:expr) => {
        match $self.wide.as_ref() {
            None => {
                let $map = &$self.dense;
                $first
            }
            Some(Spread::Paged($map)) => $call,
            Some(Spread::Tree($map)) => $call,
        }
    };
    ($self:expr, as_mut, $map:ident => $first:expr, $call:expr) => {
        each!(mut $self, $map => $first, $map => $call)
    };
}

impl Map {
    /// All free. Allocates nothing.
    pub(crate) fn new(last: u64) -> Self {
        if last < DENSE {
            return Self {
                dense: Dense::new(last),
                wide: None,
            };
        }
        Self {
            dense: Dense::new(0),
            wide: Some(if u32::try_from(last).is_ok() {
                Spread::Paged(Wide::new(Paged::default(), last))
            } else {
                Spread::Tree(Wide::new(Tree::default(), last))
            }),
        }
    }

    pub(crate) fn taken(&self) -> u64 {
        each!(self, map => map.taken())
    }

    pub(crate) fn bytes(&self) -> usize {
        each!(self, map => map.bytes())
    }

    #[inline]
    pub(crate) fn is_free(&self, at: u64) -> bool {
        each!(self, map => map.is_free(at))
    }

    /// Takes one; false when it is taken already.
    pub(crate) fn take(&mut self, at: u64) -> Result<bool, IdError> {
        each!(mut self, map => map.take(at))
    }

    /// Gives one back; false when it is free already.
    #[inline]
    pub(crate) fn give(&mut self, at: u64) -> Result<bool, IdError> {
        each!(mut self, dense => Ok(dense.give(at)), map => map.give(at))
    }

    /// To take one from a map may always need memory.
    #[inline]
    pub(crate) fn take_quickly(&mut self, _at: u64) -> bool {
        false
    }

    /// Gives one back if that needs no memory; false says nothing.
    #[inline]
    pub(crate) fn give_quickly(&mut self, at: u64) -> bool {
        self.dense.give(at) || self.give_far(at)
    }

    /// The same in a wide range.
    #[inline(never)]
    fn give_far(&mut self, at: u64) -> bool {
        match &mut self.wide {
            Some(Spread::Paged(map)) => map.give_quickly(at),
            _ => false,
        }
    }

    /// As [`grab_after`](Map::grab_after) if that needs no memory; `None` says nothing.
    #[inline]
    pub(crate) fn grab_after_quickly(&mut self, at: u64) -> Option<(u64, u64)> {
        self.dense.grab_after_quickly(at)
    }

    /// Removes the free offsets at or above `from` of the first word that has any, says its first offset, and which. They
    /// are not taken yet: see [`count_taken`](Map::count_taken).
    #[inline]
    pub(crate) fn grab(&mut self, from: u64) -> Result<Option<(u64, u64)>, IdError> {
        each!(mut self, map => map.grab(from))
    }

    /// As [`grab`](Map::grab), of the first word beyond the one of `at` that has any.
    #[inline]
    pub(crate) fn grab_after(&mut self, at: u64) -> Result<Option<(u64, u64)>, IdError> {
        each!(mut self, map => map.grab_after(at))
    }

    /// Puts the offsets of `mask`, which were grabbed or are taken but are not counted as taken, back to the word at
    /// `base`.
    pub(crate) fn put(&mut self, base: u64, mask: u64) -> Result<(), IdError> {
        each!(mut self, dense => {
            dense.put(base, mask);
            Ok(())
        }, map => map.put(base, mask))
    }

    /// One of those that were grabbed is taken. In a wide range it was counted when it was grabbed, and this counts
    /// in vain, which is cheaper than to ask.
    #[inline]
    pub(crate) fn count_taken(&mut self) {
        self.dense.count_taken();
    }

    /// One that was taken belongs to those that were grabbed.
    #[inline]
    pub(crate) fn count_given(&mut self) {
        self.dense.count_given();
    }

    /// How many are taken when those of `grabbed` are not.
    pub(crate) fn taken_but_for(&self, grabbed: u64) -> u64 {
        match &self.wide {
            None => self.dense.taken(),
            Some(_) => self.taken() - u64::from(grabbed.count_ones()),
        }
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        each!(mut self, map => map.take_span(first, last))
    }

    /// Gives back `first..=last`, all of which are taken.
    pub(crate) fn give_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        each!(mut self, dense => {
            dense.give_span(first, last);
            Ok(())
        }, map => map.give_span(first, last))
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        each!(self, map => map.next_free(from))
    }

    /// The first offset of `first..=last` that is taken.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        each!(self, map => map.first_taken(first, last))
    }

    /// The free offset that has `rank` free ones below it.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        match &self.wide {
            // A rule that needs ranks of a small range counts: see `Counted`.
            None => None,
            Some(Spread::Paged(map)) => map.select(rank),
            Some(Spread::Tree(map)) => map.select(rank),
        }
    }
}
