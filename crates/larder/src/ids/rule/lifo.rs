//! The one that was freed last.

use alloc::vec::Vec;
use core::hint::cold_path;

use hashbrown::HashMap;

use super::line::Width;
use super::{Order, Rule, Shape};
use crate::ids::IdError;
use crate::ids::map::Map;

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
    const SHAPE: Shape = Shape::Near;

    fn order(&self, last: u64) -> Result<LifoOrder, IdError> {
        Ok(LifoOrder {
            marks: Map::new(last),
            stack: Vec::new(),
            width: Width::of(last),
            fresh: Some(0),
            named: 0,
            taken_or_stacked: 0,
            last,
        })
    }
}

/// What keeps [`Lifo`].
///
/// [`Order`] shows what it can do.
#[derive(Debug)]
pub struct LifoOrder {
    marks: Map<false>,
    /// For each free offset that was in use before an entry, and stale ones below it: when an offset is free its
    /// topmost entry counts, and when one is taken none does.
    stack: Vec<u32>,
    width: Width,
    /// No offset at or above was ever handed out by the rule, unless it was in the stack; `None` is beyond the end.
    fresh: Option<u64>,
    /// How many offsets were taken by name since the last sweep: no more entries than that are stale.
    named: u64,
    /// How many offsets are taken and how many entries there are, together: a take that pops an entry and a give that
    /// pushes one leave it as it is, so the quick ways do not touch it.
    taken_or_stacked: u64,
    last: u64,
}

impl LifoOrder {
    /// How many entries there are.
    fn stacked(&self) -> u64 {
        self.width.count(self.stack.len()) as u64
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
        self.stack.try_reserve(2).map_err(|_| IdError::OutOfMemory)
    }

    /// Removes the stale entries; without memory they stay.
    fn sweep(&mut self) {
        let mut above = HashMap::new();
        if above.try_reserve(self.stack.len()).is_err() {
            return;
        }
        // How many entries of an offset are not passed yet: the last one is the topmost.
        self.width.retain(&mut self.stack, |at| {
            *above.entry(at).or_insert(0u32) += 1;
            true
        });
        let (marks, before) = (&self.marks, self.stacked());
        self.width.retain(&mut self.stack, |at| {
            let left = above.entry(at).or_insert(1);
            *left -= 1;
            *left == 0 && marks.is_free(at)
        });
        self.taken_or_stacked -= before - self.stacked();
        self.named = 0;
    }
}

impl Order for LifoOrder {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        while let Some(at) = self.width.last(&self.stack) {
            let was = self.marks.take(at)?;
            self.width.pop(&mut self.stack);
            if was {
                return Ok(Some(at));
            }
            self.taken_or_stacked -= 1;
        }
        self.take_fresh()
    }

    #[inline(always)]
    fn take_quickly(&mut self) -> Option<u64> {
        let at = self.stack.pop()?;
        if !self.marks.take_quickly(at.into()) {
            // It is stale; or half of an offset, for in a wide range no mark can be had quickly.
            cold_path();
            self.stack.push(at);
            return None;
        }
        Some(at.into())
    }

    #[inline(always)]
    fn give_quickly(&mut self, at: u64) -> bool {
        if at > self.last || self.stack.len() == self.stack.capacity() {
            return false;
        }
        self.stack.push(at as u32);
        if !self.marks.give_quickly(at) {
            cold_path();
            self.stack.pop();
            return false;
        }
        true
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        if !self.width.has_room(&self.stack) {
            self.grow()?;
        }
        let was = self.marks.give(at)?;
        if was {
            self.width.push(&mut self.stack, at);
        }
        Ok(was)
    }

    fn take_back(&mut self, at: u64) -> Result<(), IdError> {
        self.marks.take(at)?;
        self.width.pop(&mut self.stack);
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
        if self.named > 64 && self.named > self.stacked() / 2 {
            self.sweep();
        }
        Ok(())
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        self.marks.next_free(from)
    }

    fn taken(&self) -> u64 {
        self.taken_or_stacked - self.stacked()
    }

    fn bytes(&self) -> usize {
        self.marks.bytes() + self.stack.capacity() * size_of::<u32>()
    }
}
