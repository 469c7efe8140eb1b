//! Identifiers of one owner.

use super::rule::Order;
use super::{IdError, IdRange, Rule};

/// Identifiers of a range, handed out by a rule, for one owner: no lock and no atomic instruction.
///
/// [`IdSpace`](super::IdSpace) is the same for many threads. Creation takes constant time, and memory follows what is
/// used, not the range.
#[derive(Debug)]
pub struct Ids<R: Rule> {
    range: IdRange,
    order: R::Order,
}

impl<R: Rule> Ids<R> {
    /// An empty space.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for an empty range or a rule with absurd parameters, [`IdError::OutOfMemory`].
    pub fn new<T>(range: T, rule: R) -> Result<Self, IdError>
    where
        T: TryInto<IdRange>,
        IdError: From<T::Error>,
    {
        let range = range.try_into()?;
        let order = rule.order(range.last() - range.first())?;
        Ok(Self { range, order })
    }

    /// Takes the identifier that the rule says is next.
    ///
    /// # Errors
    /// [`IdError::Full`], [`IdError::Resting`], [`IdError::OutOfMemory`].
    #[inline]
    pub fn alloc(&mut self) -> Result<u64, IdError> {
        match self.order.take()? {
            Some(at) => Ok(self.range.first() + at),
            None => Err(self.full()),
        }
    }

    /// Takes this very identifier.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], [`IdError::Taken`], [`IdError::OutOfMemory`].
    pub fn alloc_at(&mut self, id: u64) -> Result<(), IdError> {
        if self.order.take_at(self.range.offset(id)?)? {
            Ok(())
        } else {
            Err(IdError::Taken { id })
        }
    }

    /// Gives an identifier back.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], and [`IdError::NotAllocated`] for one that was freed before.
    #[inline]
    pub fn free(&mut self, id: u64) -> Result<(), IdError> {
        if self.order.give(self.range.offset(id)?)? {
            Ok(())
        } else {
            Err(IdError::NotAllocated { id })
        }
    }

    /// The range that identifiers are taken from.
    pub fn range(&self) -> IdRange {
        self.range
    }

    /// How many identifiers are allocated, reserved ones included.
    pub fn allocated(&self) -> u64 {
        self.order.taken()
    }

    #[cold]
    fn full(&self) -> IdError {
        IdError::Full {
            allocated: self.allocated(),
        }
    }
}
