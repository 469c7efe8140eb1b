//! The one that was freed last.

use alloc::vec::Vec;

use hashbrown::HashSet;

use super::line::Slot;
use super::{Order, Rule, forward};
use crate::ids::IdError;
use crate::ids::map::{Map, Plain};

/// The identifier that was freed last is next, as its owner's memory may still be in the cache; those that were never in
/// use come when no other is free, ascending.
///
/// A freed identifier may come back at the very next allocation. It costs 4 bytes for each identifier that waits (8 in
/// ranges beyond 2^32, and up to twice that while the stack grows) and one bit for each one of the range, in chunks of
/// 65536. Every operation takes constant time, except that one may have to make the stack larger, and that
/// [`Ids::alloc_at`](crate::ids::Ids::alloc_at) and its like leave entries behind which are swept out.
///
/// ```
/// use larder::ids::{Ids, rule::Lifo};
///
/// let mut slots = Ids::new(0u8..3, Lifo)?;
/// assert_eq!((slots.alloc()?, slots.alloc()?), (0, 1));
/// slots.free_many(&[1, 0])?;
/// assert_eq!((slots.alloc()?, slots.alloc()?, slots.alloc()?), (0, 1, 2));
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifo;

impl Rule for Lifo {
    type Order = LifoOrder;

    fn order(&self, last: u64) -> Result<LifoOrder, IdError> {
        Ok(match u32::try_from(last) {
            Ok(_) => LifoOrder {
                narrow: Stack::new(last),
                wide: None,
            },
            Err(_) => LifoOrder {
                narrow: Stack::new(0),
                wide: Some(Stack::new(last)),
            },
        })
    }
}

/// What keeps [`Lifo`].
///
/// [`Order`] shows what it can do.
#[derive(Debug)]
#[repr(C)]
pub struct LifoOrder {
    narrow: Stack<u32>,
    /// Of ranges beyond 2^32, where the other is empty.
    wide: Option<Stack<u64>>,
}

forward!(LifoOrder);

#[derive(Debug)]
struct Stack<T> {
    marks: Map<Plain>,
    /// For each free offset that was in use before an entry, and stale ones below it: when an offset is free its
    /// topmost entry counts, and when one is taken none does.
    stack: Vec<T>,
    /// No offset at or above was ever handed out by the rule, unless it was in the stack; `None` is beyond the end.
    fresh: Option<u64>,
    /// How many offsets were taken by name since the last sweep: no more entries than that are stale.
    named: u64,
    /// How many offsets are taken and how many entries there are, together: a take that pops an entry and a give that
    /// pushes one leave it as it is, so the quick ways do not touch it.
    taken_or_stacked: u64,
    last: u64,
}

impl<T: Slot> Stack<T> {
    fn new(last: u64) -> Self {
        Self {
            marks: Map::new(last),
            stack: Vec::new(),
            fresh: Some(0),
            named: 0,
            taken_or_stacked: 0,
            last,
        }
    }

    #[inline(never)]
    fn take_fresh(&mut self) -> Result<Option<u64>, IdError> {
        let Some(from) = self.fresh else {
            return Ok(None);
        };
        let Some(at) = self.marks.next_free(from) else {
            self.fresh = None;
            return Ok(None);
        };
        self.marks.take(at)?;
        self.taken_or_stacked += 1;
        self.fresh = (at < self.last).then(|| at + 1);
        Ok(Some(at))
    }

    #[cold]
    fn grow(&mut self) -> Result<(), IdError> {
        self.stack.try_reserve(1).map_err(|_| IdError::OutOfMemory)
    }

    /// Removes the stale entries; without memory they stay.
    fn sweep(&mut self) {
        let mut seen = HashSet::new();
        if seen.try_reserve(self.stack.len()).is_err() {
            return;
        }
        let marks = &self.marks;
        let before = self.stack.len();
        self.stack.reverse();
        self.stack
            .retain(|slot| marks.is_free(slot.at()) && seen.insert(slot.at()));
        self.stack.reverse();
        self.taken_or_stacked -= (before - self.stack.len()) as u64;
        self.named = 0;
    }
}

impl<T: Slot> Order for Stack<T> {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        while let Some(at) = self.stack.last().map(|slot| slot.at()) {
            let was = self.marks.take(at)?;
            self.stack.pop();
            if was {
                return Ok(Some(at));
            }
            self.taken_or_stacked -= 1;
        }
        self.take_fresh()
    }

    #[inline]
    fn take_quickly(&mut self) -> Option<u64> {
        let at = self.stack.last()?.at();
        // A stale entry is taken already, and left to the slow way.
        if !self.marks.take_quickly(at) {
            return None;
        }
        self.stack.pop();
        Some(at)
    }

    #[inline]
    fn give_quickly(&mut self, at: u64) -> bool {
        if self.stack.len() == self.stack.capacity() || !self.marks.give_quickly(at) {
            return false;
        }
        self.stack.push(T::of(at));
        true
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        if self.stack.len() == self.stack.capacity() {
            self.grow()?;
        }
        let was = self.marks.give(at)?;
        if was {
            self.stack.push(T::of(at));
        }
        Ok(was)
    }

    fn take_back(&mut self, at: u64) -> Result<(), IdError> {
        self.marks.take(at)?;
        self.stack.pop();
        Ok(())
    }

    #[inline]
    fn is_taken(&self, at: u64) -> bool {
        !self.marks.is_free(at)
    }

    fn last(&self) -> u64 {
        self.last
    }

    fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        self.marks.first_taken(first, last)
    }

    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.marks.take_span(first, last)?;
        self.taken_or_stacked += last - first + 1;
        self.named = self.named.saturating_add(last - first + 1);
        if self.named > 64 && self.named > self.stack.len() as u64 / 2 {
            self.sweep();
        }
        Ok(())
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        self.marks.next_free(from)
    }

    fn taken(&self) -> u64 {
        self.taken_or_stacked - self.stack.len() as u64
    }

    fn bytes(&self) -> usize {
        self.marks.bytes() + self.stack.capacity() * size_of::<T>()
    }
}
