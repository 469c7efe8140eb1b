//! Whichever free identifier is cheapest to find.

use super::{Order, Rule};
use crate::ids::IdError;
use crate::ids::map::Held;

/// No order is promised: whichever free identifier is cheapest to find is next. For a caller that needs a number
/// without another owner, and nothing more of it; what Linux's `sbitmap` does for the tags of block devices.
///
/// A freed identifier may come back at the very next allocation. Between threads this is the rule to take: identifiers lie
/// ready for the CPU that freed them, as under [`Lifo`](super::Lifo), and the others in a bitmap, at 1.02 bits each. Every
/// operation looks at most at four levels of words.
///
/// ```
/// use larder::ids::{IdSpace, rule::Any};
///
/// let tags = IdSpace::new(0u16..4096, Any)?;
/// let (one, other) = (tags.alloc()?, tags.alloc()?);
/// assert_ne!(one, other);
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Any;

impl Rule for Any {
    type Order = AnyOrder;

    fn order(&self, last: u64) -> Result<AnyOrder, IdError> {
        Ok(AnyOrder {
            held: Held::new(last),
            last,
        })
    }
}

/// What keeps [`Any`].
///
/// [`Order`] shows what it can do.
#[derive(Debug)]
pub struct AnyOrder {
    /// All free offsets of the word that is held are held.
    held: Held,
    last: u64,
}

impl AnyOrder {
    #[inline(never)]
    fn take_elsewhere(&mut self) -> Result<Option<u64>, IdError> {
        let found = self.held.is_held() && self.held.hold_next()?;
        if !found && !self.held.hold(0)? {
            return Ok(None);
        }
        Ok(self.held.pop())
    }
}

impl Order for AnyOrder {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        match self.held.pop() {
            None => self.take_elsewhere(),
            at => Ok(at),
        }
    }

    #[inline]
    fn take_quickly(&mut self) -> Option<u64> {
        match self.held.pop() {
            None if self.held.hold_next_quickly() => self.held.pop(),
            at => at,
        }
    }

    #[inline]
    fn give_quickly(&mut self, at: u64) -> bool {
        if self.held.holds(at) {
            return self.held.add(at);
        }
        self.held.map().give_quickly(at)
    }

    fn take_at(&mut self, at: u64) -> Result<bool, IdError> {
        self.held.settle()?.take(at)
    }

    fn take_run(&mut self, count: u64, align: u64, phase: u64) -> Result<Option<u64>, IdError> {
        self.held.take_run(self.last, [count, align, phase])
    }

    fn take_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        self.held.take_all(first, last)
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        if self.held.holds(at) {
            Ok(self.held.add(at))
        } else {
            self.held.map().give(at)
        }
    }

    fn give_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        self.held.give_all(first, last)
    }

    #[inline]
    fn is_taken(&self, at: u64) -> bool {
        !self.held.is_free(at)
    }

    fn next_taken(&self, from: u64) -> Option<u64> {
        self.held.first_taken(from, self.last)
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        self.held.next_free(from)
    }

    fn taken(&self) -> u64 {
        self.held.taken()
    }

    fn bytes(&self) -> usize {
        self.held.bytes()
    }
}
