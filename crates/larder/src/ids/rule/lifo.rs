//! The one that was freed last.

use alloc::vec::Vec;

use hashbrown::HashSet;

use super::{Order, Rule, find_run};
use crate::ids::IdError;
use crate::ids::map::Marks;

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
        Ok(LifoOrder {
            marks: Marks::new(last),
            stack: Stack::new(last),
            fresh: Some(0),
            named: 0,
            taken: 0,
            last,
        })
    }
}

/// What keeps [`Lifo`].
#[derive(Debug)]
pub struct LifoOrder {
    marks: Marks,
    /// For each free offset that was in use before an entry, and stale ones below it: when an offset is free its
    /// topmost entry counts, and when one is taken none does.
    stack: Stack,
    /// No offset at or above was ever handed out by the rule, unless it was in the stack; `None` is beyond the end.
    fresh: Option<u64>,
    /// How many offsets were taken by name since the last sweep: no more entries than that are stale.
    named: u64,
    taken: u64,
    last: u64,
}

impl LifoOrder {
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
        self.taken += 1;
        self.fresh = (at < self.last).then(|| at + 1);
        Ok(Some(at))
    }

    fn take_named(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.marks.take_span(first, last)?;
        self.taken += last - first + 1;
        self.named = self.named.saturating_add(last - first + 1);
        if self.named > 64 && self.named > self.stack.len() as u64 / 2 {
            self.sweep();
        }
        Ok(())
    }

    /// Removes the stale entries; without memory they stay.
    fn sweep(&mut self) {
        let mut seen = HashSet::new();
        if seen.try_reserve(self.stack.len()).is_err() {
            return;
        }
        let marks = &self.marks;
        self.stack
            .retain_topmost(|at| marks.is_free(at) && seen.insert(at));
        self.named = 0;
    }
}

impl Order for LifoOrder {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        while let Some(at) = self.stack.top() {
            let was = self.marks.take(at)?;
            self.stack.pop();
            if was {
                self.taken += 1;
                return Ok(Some(at));
            }
        }
        self.take_fresh()
    }

    fn take_at(&mut self, at: u64) -> Result<bool, IdError> {
        let was = self.marks.is_free(at);
        if was {
            self.take_named(at, at)?;
        }
        Ok(was)
    }

    fn take_run(&mut self, count: u64, align: u64, phase: u64) -> Result<Option<u64>, IdError> {
        let marks = &self.marks;
        let found = find_run(
            self.last,
            [count, align, phase],
            |from| marks.next_free(from),
            |first, last| marks.first_taken(first, last),
        );
        if let Some(first) = found {
            self.take_named(first, first + (count - 1))?;
        }
        Ok(found)
    }

    fn take_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        if let Some(at) = self.marks.first_taken(first, last) {
            return Ok(Err(at));
        }
        self.take_named(first, last).map(Ok)
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        self.stack.reserve()?;
        let was = self.marks.give(at)?;
        if was {
            self.stack.push(at);
            self.taken -= 1;
        }
        Ok(was)
    }

    fn take_back(&mut self, at: u64) -> Result<(), IdError> {
        self.marks.take(at)?;
        self.taken += 1;
        self.stack.pop();
        Ok(())
    }

    #[inline]
    fn is_taken(&self, at: u64) -> bool {
        !self.marks.is_free(at)
    }

    fn next_taken(&self, from: u64) -> Option<u64> {
        self.marks.first_taken(from, self.last)
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        self.marks.next_free(from)
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn bytes(&self) -> usize {
        self.marks.bytes() + self.stack.bytes()
    }
}

/// A stack of offsets: 4 bytes each in ranges of at most 2^32, else 8.
#[derive(Debug)]
enum Stack {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

macro_rules! each {
    ($self:expr, $stack:ident => $call:expr) => {
        match $self {
            Stack::Narrow($stack) => $call,
            Stack::Wide($stack) => $call,
        }
    };
}

impl Stack {
    fn new(last: u64) -> Self {
        if u32::try_from(last).is_ok() {
            Self::Narrow(Vec::new())
        } else {
            Self::Wide(Vec::new())
        }
    }

    fn len(&self) -> usize {
        each!(self, stack => stack.len())
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Narrow(stack) => stack.capacity() * 4,
            Self::Wide(stack) => stack.capacity() * 8,
        }
    }

    /// Makes room for one more.
    #[inline]
    fn reserve(&mut self) -> Result<(), IdError> {
        each!(self, stack => stack.try_reserve(1)).map_err(|_| IdError::OutOfMemory)
    }

    #[inline]
    fn push(&mut self, at: u64) {
        match self {
            Self::Narrow(stack) => stack.push(at as u32),
            Self::Wide(stack) => stack.push(at),
        }
    }

    #[inline]
    fn top(&self) -> Option<u64> {
        match self {
            Self::Narrow(stack) => stack.last().map(|&at| u64::from(at)),
            Self::Wide(stack) => stack.last().copied(),
        }
    }

    #[inline]
    fn pop(&mut self) {
        each!(self, stack => stack.truncate(stack.len().saturating_sub(1)));
    }

    /// Keeps the entries that `keep` wants, asked from the top down.
    fn retain_topmost(&mut self, mut keep: impl FnMut(u64) -> bool) {
        fn topmost<T>(stack: &mut Vec<T>, keep: impl FnMut(&T) -> bool) {
            stack.reverse();
            stack.retain(keep);
            stack.reverse();
        }
        match self {
            Self::Narrow(stack) => topmost(stack, |&at| keep(u64::from(at))),
            Self::Wide(stack) => topmost(stack, |&at| keep(at)),
        }
    }
}
