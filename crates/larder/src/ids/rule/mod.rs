//! The rules by which freed identifiers come back.
//!
//! A [`Rule`] is a small value that names the rule and its parameters; its [`Order`] is the data structure that keeps it.

use core::fmt::Debug;

use super::IdError;

/// A rule by which identifiers are chosen.
pub trait Rule: Clone + Debug {
    /// The data structure that keeps the rule.
    type Order: Order;

    /// The rule's structure over the offsets `0..=last`, all of them free. Takes constant time.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`], and [`IdError::Invalid`] for parameters that make no sense.
    fn order(&self, last: u64) -> Result<Self::Order, IdError>;
}

/// Offsets `0..=last`, each free or taken, and which free one is next.
///
/// Works on offsets alone; callers have checked that each lies within the range. A method that fails has changed
/// nothing.
pub trait Order: Debug {
    /// Takes the offset that the rule says is next; `None` when all are taken.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`], and [`IdError::Resting`] under a rule that lets offsets rest.
    fn take(&mut self) -> Result<Option<u64>, IdError>;

    /// Takes up to `out.len()` offsets in the order of the rule; says how many.
    ///
    /// # Errors
    /// As [`take`](Order::take), when not a single one was taken.
    fn take_many(&mut self, out: &mut [u64]) -> Result<usize, IdError> {
        for (done, slot) in out.iter_mut().enumerate() {
            match self.take() {
                Ok(Some(at)) => *slot = at,
                Ok(None) => return Ok(done),
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        Ok(out.len())
    }

    /// Takes this very offset; `false` when it is taken already.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`].
    fn take_at(&mut self, at: u64) -> Result<bool, IdError>;

    /// Takes `count` free offsets in a row, the first of which is `phase` more than a multiple of `align`, and says
    /// which is the first; `None` when there are none. The lowest such run, whatever the rule.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`].
    fn take_run(&mut self, count: u64, align: u64, phase: u64) -> Result<Option<u64>, IdError>;

    /// Takes all offsets from `first` to `last`; or none of them and names the first that is taken already.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`].
    fn take_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError>;

    /// Gives an offset back; `false` when it is not taken.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`]: the offset stays taken.
    fn give(&mut self, at: u64) -> Result<bool, IdError>;

    /// Whether the offset is taken.
    fn is_taken(&self, at: u64) -> bool;

    /// The lowest taken offset that is not below `from`.
    fn next_taken(&self, from: u64) -> Option<u64>;

    /// How many offsets are taken. (2^64 of 2^64 cannot be counted and is never reached: see [`Ids`](super::Ids).)
    fn taken(&self) -> u64;

    /// Bytes of memory held.
    fn bytes(&self) -> usize;
}
