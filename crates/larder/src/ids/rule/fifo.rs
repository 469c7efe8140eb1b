//! The one that was freed first.

use core::hint::cold_path;

use super::line::{Line, Width};
use super::stale::Stale;
use super::{Order, Rule, Shape};
use crate::ids::IdError;
use crate::ids::map::Map;

/// The identifier that was freed first is next; those that were never in use come before, ascending.
///
/// Between a free and the reuse lie as many allocations as identifiers were free: no rule can do better. It costs 4
/// bytes for each identifier that waits (8 in ranges beyond 2^32) in blocks of 4096, a few blocks more, and one bit for
/// each one of the range, in chunks of 65536. Every operation takes constant time, but for this:
/// [`Ids::alloc_at`](crate::ids::Ids::alloc_at) and its like leave entries behind which are swept out before they
/// outnumber the others.
///
/// ```
/// use larder::ids::{Ids, rule::Fifo};
///
/// let mut ids = Ids::new(0u8..3, Fifo)?;
/// assert_eq!((ids.alloc()?, ids.alloc()?), (0, 1));
/// ids.free_many(&[1, 0])?;
/// assert_eq!((ids.alloc()?, ids.alloc()?, ids.alloc()?), (2, 1, 0));
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fifo;

impl Rule for Fifo {
    type Order = FifoOrder;
    const SHAPE: Shape = Shape::InOrder;

    fn order(&self, last: u64) -> Result<FifoOrder, IdError> {
        Ok(FifoOrder {
            marks: Map::new(last),
            line: Line::new(Width::of(last)),
            fresh: 0,
            dry: false,
            queued_ahead: None,
            stale: Stale::default(),
            untouched: last.wrapping_add(1),
            last,
        })
    }
}

/// What keeps [`Fifo`].
///
/// [`Order`] shows what it can do.
#[derive(Debug)]
pub struct FifoOrder {
    marks: Map<false>,
    /// Free offsets, the one that was freed first at the front; and stale entries. The quick way out of it is barred while
    /// there are stale entries, and while some offset was never in use.
    line: Line,
    /// No offset at or above was ever handed out by the rule. All free ones below are in the line.
    fresh: u64,
    /// There is none: `fresh` is beyond the end, or the largest number.
    dry: bool,
    /// Offsets at or above `fresh` that are, or were, in the line: taken by name and given back. They are taken here.
    queued_ahead: Option<Map<false>>,
    /// How many of the first entries of an offset in the line are stale, because it was taken by name since.
    stale: Stale,
    /// How many offsets are free and not in the line; 0 for 2^64.
    untouched: u64,
    last: u64,
}

impl FifoOrder {
    /// An offset that was never in use.
    #[inline(never)]
    fn take_fresh(&mut self) -> Result<Option<u64>, IdError> {
        while !self.dry {
            let free = self.marks.next_free(self.fresh);
            let next = match (free, &self.queued_ahead) {
                (Some(at), Some(ahead)) => ahead.next_free(at),
                (free, _) => free,
            };
            match next {
                Some(at) if Some(at) == free => {
                    self.marks.take(at)?;
                    self.untouched = self.untouched.wrapping_sub(1);
                    self.pass(at);
                    return Ok(Some(at));
                }
                Some(at) => self.fresh = at,
                None => self.pass(self.last),
            }
        }
        Ok(None)
    }

    fn pass(&mut self, at: u64) {
        if at < self.last {
            self.fresh = at + 1;
        } else {
            self.fresh = self.last.saturating_add(1);
            self.dry = true;
            self.queued_ahead = None;
        }
    }

    #[inline]
    fn is_fresh(&self, at: u64) -> bool {
        at >= self.fresh && !self.dry
    }

    /// Calls `each` for the offsets of `first..=last`, all of them free, that are in the line.
    fn queued(&self, first: u64, last: u64, mut each: impl FnMut(u64)) {
        let mut at = first;
        while at <= last {
            if !self.is_fresh(at) {
                each(at);
            } else if let Some(ahead) = &self.queued_ahead
                && let Some(found) = ahead.first_taken(at, last)
            {
                each(found);
                at = found;
            } else {
                return;
            }
            match at.checked_add(1) {
                Some(next) => at = next,
                None => return,
            }
        }
    }

    /// Removes the stale entries.
    fn sweep(&mut self) {
        let stale = &mut self.stale;
        self.line.retain(|at| !stale.drop_first(at));
        self.stale.clear();
    }

    /// Gives back an offset that the rule has not come to yet.
    #[cold]
    fn give_ahead(&mut self, at: u64) -> Result<bool, IdError> {
        if self.marks.is_free(at) {
            return Ok(false);
        }
        self.line.reserve()?;
        let last = self.last;
        let ahead = self.queued_ahead.get_or_insert_with(|| Map::new(last));
        ahead.take(at)?;
        self.marks.give(at)?;
        self.line.push(at);
        Ok(true)
    }
}

impl Order for FifoOrder {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        if !self.dry
            && let Some(at) = self.take_fresh()?
        {
            return Ok(Some(at));
        }
        while let Some(at) = self.line.front() {
            if self.stale.drop_first(at) {
                self.line.pop();
                continue;
            }
            self.marks.take(at)?;
            self.line.pop();
            if self.stale.len() == 0 {
                self.line.open();
            }
            return Ok(Some(at));
        }
        Ok(None)
    }

    /// 18 instructions.
    #[inline(always)]
    fn take_quickly(&mut self) -> Option<u64> {
        let at = self.line.front_quickly()?;
        if !self.marks.take_quickly(at) {
            return None;
        }
        self.line.pop_quickly();
        Some(at)
    }

    /// 20 instructions.
    #[inline(always)]
    fn give_quickly(&mut self, at: u64) -> bool {
        // What is beyond the range is never below `fresh`.
        if at >= self.fresh || !self.line.push_quickly(at) {
            return false;
        }
        if !self.marks.give_quickly(at) {
            // Freed already; or in a wide range, where no mark can be had quickly.
            cold_path();
            self.line.unpush();
            return false;
        }
        true
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        if self.is_fresh(at) {
            return self.give_ahead(at);
        }
        self.line.reserve()?;
        let was = self.marks.give(at)?;
        if was {
            self.line.push(at);
        }
        Ok(was)
    }

    fn take_back(&mut self, at: u64) -> Result<(), IdError> {
        self.marks.take(at)?;
        self.line.pop_back();
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

    /// Takes `first..=last`, all of which are free. What they have in the line is stale from now on.
    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        let mut count = 0;
        self.queued(first, last, |_| count += 1);
        self.stale.reserve(count)?;
        self.marks.take_span(first, last)?;
        let mut stale = core::mem::take(&mut self.stale);
        self.queued(first, last, |at| stale.add(at));
        self.stale = stale;
        if count != 0 {
            self.line.bar();
        }
        let untouched = last - first + 1 - count as u64;
        self.untouched = self.untouched.wrapping_sub(untouched);
        if self.stale.is_much(self.line.len()) {
            self.sweep();
        }
        Ok(())
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        self.marks.next_free(from)
    }

    fn taken(&self) -> u64 {
        let waiting = (self.line.len() - self.stale.len()) as u64;
        let all = self.last.wrapping_add(1);
        all.wrapping_sub(waiting).wrapping_sub(self.untouched)
    }

    fn bytes(&self) -> usize {
        let ahead = self.queued_ahead.as_ref();
        self.marks.bytes() + self.line.bytes() + self.stale.bytes() + ahead.map_or(0, Map::bytes)
    }
}
