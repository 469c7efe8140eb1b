//! Which offsets are free, for a rule that keeps its own queue of them.

use super::dense::DENSE;
use super::{Map, plain::Plain};
use crate::ids::IdError;

/// Which offsets of `0..=last` are free: plain bits up to 2^24, a map beyond.
#[derive(Debug)]
pub(crate) enum Marks {
    Plain(Plain),
    Map(Map),
}

macro_rules! each {
    ($self:expr, $marks:ident => $call:expr) => {
        match $self {
            Marks::Plain($marks) => $call,
            Marks::Map($marks) => $call,
        }
    };
}

impl Marks {
    pub(crate) fn new(last: u64) -> Self {
        if last < DENSE {
            Self::Plain(Plain::new(last))
        } else {
            Self::Map(Map::new(last))
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        each!(self, marks => marks.bytes())
    }

    #[inline]
    pub(crate) fn is_free(&self, at: u64) -> bool {
        each!(self, marks => marks.is_free(at))
    }

    /// Takes one; false when it is taken already.
    #[inline]
    pub(crate) fn take(&mut self, at: u64) -> Result<bool, IdError> {
        each!(self, marks => marks.take(at))
    }

    /// Gives one back; false when it is free already.
    #[inline]
    pub(crate) fn give(&mut self, at: u64) -> Result<bool, IdError> {
        match self {
            Self::Plain(marks) => Ok(marks.give(at)),
            Self::Map(marks) => marks.give(at),
        }
    }

    /// Takes `first..=last`, all of which are free.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        each!(self, marks => marks.take_span(first, last))
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        each!(self, marks => marks.next_free(from))
    }

    /// The first offset of `first..=last` that is taken.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        each!(self, marks => marks.first_taken(first, last))
    }
}
