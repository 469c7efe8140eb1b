//! Free offsets that are found by rank.

use super::Map;
use super::counted::Counted;
use super::dense::DENSE;
use crate::ids::IdError;

/// The free offsets of `0..=last`: counted bits up to 2^24, a map beyond.
#[derive(Debug)]
pub(crate) enum Loose {
    Counted(Counted),
    Map(Map),
}

macro_rules! each {
    ($self:expr, $free:ident => $call:expr) => {
        match $self {
            Loose::Counted($free) => $call,
            Loose::Map($free) => $call,
        }
    };
}

impl Loose {
    pub(crate) fn new(last: u64) -> Self {
        if last < DENSE {
            Self::Counted(Counted::new(last))
        } else {
            Self::Map(Map::new(last))
        }
    }

    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        each!(self, free => free.taken())
    }

    pub(crate) fn bytes(&self) -> usize {
        each!(self, free => free.bytes())
    }

    #[inline]
    pub(crate) fn is_free(&self, at: u64) -> bool {
        each!(self, free => free.is_free(at))
    }

    /// Takes one; false when it is taken already.
    #[inline]
    pub(crate) fn take(&mut self, at: u64) -> Result<bool, IdError> {
        each!(self, free => free.take(at))
    }

    /// Gives one back; false when it is free already.
    #[inline]
    pub(crate) fn give(&mut self, at: u64) -> Result<bool, IdError> {
        match self {
            Self::Counted(free) => Ok(free.give(at)),
            Self::Map(free) => free.give(at),
        }
    }

    /// The same if that needs no memory; false says nothing.
    #[inline]
    pub(crate) fn give_quickly(&mut self, at: u64) -> bool {
        match self {
            Self::Counted(free) => free.give(at),
            Self::Map(_) => false,
        }
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        each!(self, free => free.take_span(first, last))
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        each!(self, free => free.next_free(from))
    }

    /// The first offset of `first..=last` that is taken.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        each!(self, free => free.first_taken(first, last))
    }

    /// The free offset that has `rank` free ones below it.
    #[inline(never)]
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        each!(self, free => free.select(rank))
    }
}
