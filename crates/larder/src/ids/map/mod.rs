//! Sets of free offsets, by how wide the range is.

mod bits;
mod chunk;
mod counted;
mod dense;
mod held;
mod list;
mod loose;
mod marks;
mod paged;
mod plain;
mod planes;
mod sets;
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
#[derive(Debug)]
pub(crate) enum Map {
    /// At most 2^24.
    Dense(Dense),
    /// At most 2^32.
    Paged(Wide<Paged>),
    Tree(Wide<Tree>),
}

/// Calls the same method of whichever map it is.
macro_rules! each {
    ($self:expr, $map:ident => $call:expr) => {
        match $self {
            Map::Dense($map) => $call,
            Map::Paged($map) => $call,
            Map::Tree($map) => $call,
        }
    };
}

impl Map {
    /// All free. Allocates nothing.
    pub(crate) fn new(last: u64) -> Self {
        if last < DENSE {
            Self::Dense(Dense::new(last))
        } else if u32::try_from(last).is_ok() {
            Self::Paged(Wide::new(Paged::default(), last))
        } else {
            Self::Tree(Wide::new(Tree::default(), last))
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
        each!(self, map => map.take(at))
    }

    /// Gives one back; false when it is free already.
    #[inline]
    pub(crate) fn give(&mut self, at: u64) -> Result<bool, IdError> {
        match self {
            Map::Dense(map) => Ok(map.give(at)),
            Map::Paged(map) => map.give(at),
            Map::Tree(map) => map.give(at),
        }
    }

    /// To take one from a map may always need memory.
    #[inline]
    pub(crate) fn take_quickly(&mut self, _at: u64) -> bool {
        false
    }

    /// Gives one back if that needs no memory; false says nothing.
    #[inline]
    pub(crate) fn give_quickly(&mut self, at: u64) -> bool {
        match self {
            Map::Dense(map) => map.give(at),
            _ => false,
        }
    }

    /// As [`grab_after`](Map::grab_after) if that needs no memory; `None` says nothing.
    #[inline]
    pub(crate) fn grab_after_quickly(&mut self, at: u64) -> Option<(u64, u64)> {
        match self {
            Map::Dense(map) => map.grab_after_quickly(at),
            _ => None,
        }
    }

    /// Takes the free offsets at or above `from` of the first word that has any: its first offset, and which.
    #[inline]
    pub(crate) fn grab(&mut self, from: u64) -> Result<Option<(u64, u64)>, IdError> {
        each!(self, map => map.grab(from))
    }

    /// As [`grab`](Map::grab), of the first word beyond the one of `at` that has any.
    #[inline]
    pub(crate) fn grab_after(&mut self, at: u64) -> Result<Option<(u64, u64)>, IdError> {
        each!(self, map => map.grab_after(at))
    }

    /// Gives the offsets of `mask`, all of which are taken, back to the word at `base`.
    pub(crate) fn put(&mut self, base: u64, mask: u64) -> Result<(), IdError> {
        match self {
            Map::Dense(map) => {
                map.put(base, mask);
                Ok(())
            }
            Map::Paged(map) => map.put(base, mask),
            Map::Tree(map) => map.put(base, mask),
        }
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        each!(self, map => map.take_span(first, last))
    }

    /// Gives back `first..=last`, all of which are taken.
    pub(crate) fn give_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        match self {
            Map::Dense(map) => {
                map.give_span(first, last);
                Ok(())
            }
            Map::Paged(map) => map.give_span(first, last),
            Map::Tree(map) => map.give_span(first, last),
        }
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
        match self {
            // Whoever wants ranks of a small range counts: see `Counted`.
            Map::Dense(_) => None,
            Map::Paged(map) => map.select(rank),
            Map::Tree(map) => map.select(rank),
        }
    }
}
