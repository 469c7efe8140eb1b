//! Which offsets are free, for a rule that keeps its own queue of them.

use super::dense::DENSE;
use super::{Map, plain::Plain};
use crate::ids::IdError;

/// The widest range that [`Plain`] serves.
pub(crate) const PLAIN: u64 = DENSE;

/// Which offsets are free: plain bits in small ranges, a map in wide ones. Each rule is compiled for both, so that a
/// small range does not ask again and again which it is.
pub(crate) trait Marks: core::fmt::Debug {
    fn new(last: u64) -> Self;
    fn bytes(&self) -> usize;
    fn is_free(&self, at: u64) -> bool;
    /// Takes one; false when it is taken already.
    fn take(&mut self, at: u64) -> Result<bool, IdError>;
    /// Gives one back; false when it is free already.
    fn give(&mut self, at: u64) -> Result<bool, IdError>;
    /// As [`take`](Marks::take) if that needs no memory; false says nothing.
    fn take_quickly(&mut self, at: u64) -> bool;
    /// As [`give`](Marks::give) if that needs no memory; false says nothing.
    fn give_quickly(&mut self, at: u64) -> bool;
    /// Takes `first..=last`, all of which are free.
    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError>;
    fn next_free(&self, from: u64) -> Option<u64>;
    /// The first offset of `first..=last` that is taken.
    fn first_taken(&self, first: u64, last: u64) -> Option<u64>;
}

macro_rules! marks {
    ($map:ident, $self:ident, $at:ident => $give:expr, $take_quickly:expr, $give_quickly:expr) => {
        impl Marks for $map {
            fn new(last: u64) -> Self {
                $map::new(last)
            }
            fn bytes(&self) -> usize {
                $map::bytes(self)
            }
            #[inline]
            fn is_free(&self, at: u64) -> bool {
                $map::is_free(self, at)
            }
            #[inline]
            fn take(&mut self, at: u64) -> Result<bool, IdError> {
                $map::take(self, at)
            }
            #[inline]
            fn give(&mut $self, $at: u64) -> Result<bool, IdError> {
                $give
            }
            #[inline]
            fn take_quickly(&mut $self, $at: u64) -> bool {
                $take_quickly
            }
            #[inline]
            fn give_quickly(&mut $self, $at: u64) -> bool {
                $give_quickly
            }
            fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
                $map::take_span(self, first, last)
            }
            fn next_free(&self, from: u64) -> Option<u64> {
                $map::next_free(self, from)
            }
            fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
                $map::first_taken(self, first, last)
            }
        }
    };
}

marks!(Plain, self, at => Ok(Plain::give(self, at)), Plain::take_quickly(self, at), Plain::give(self, at));
marks!(Map, self, at => Map::give(self, at), Map::take_quickly(self, at), Map::give_quickly(self, at));
