//! A rule under which freed identifiers rest.

use alloc::collections::VecDeque;
#[cfg(feature = "std")]
use core::time::Duration;

use super::clock::{Clock, Ticks};
use super::stale::Stale;
use super::{Order, Rule};
use crate::ids::IdError;
use crate::ids::map::{Map, lower};

/// What happens when nothing but resting identifiers is left.
///
/// ```
/// use larder::ids::{IdError, Ids, rule::{Lowest, NearFull, Rested}};
/// let again = |near_full| {
///     let mut one = Ids::new(0u8..1, Rested::allocations(Lowest, 1, near_full))?;
///     one.alloc()?;
///     one.free(0)?;
///     one.alloc()
/// };
/// assert_eq!(again(NearFull::Fail), Err(IdError::Resting { resting: 1 }));
/// assert_eq!(again(NearFull::Relax), Ok(0));
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NearFull {
    /// [`IdError::Resting`]: the rest is a promise.
    Fail,
    /// The one that rested longest is handed out; [`RestedOrder::shortest`] says how long that was.
    Relax,
}

/// Another rule, to which a freed identifier is given back only when it has rested: for so many allocations, or for so
/// long. So a user of the old number does not meet its new owner.
///
/// An identifier that rests is not allocated: freeing it is [`IdError::NotAllocated`], and
/// [`Ids::alloc_at`](crate::ids::Ids::alloc_at) and [`reserve`](crate::ids::Ids::reserve) of it are
/// [`IdError::Resting`] under [`NearFull::Fail`] and end its rest under [`NearFull::Relax`].
/// [`alloc_range`](crate::ids::Ids::alloc_range) goes around it. 16 bytes, and a bit in chunks, for each that rests.
/// Constant time besides the other rule's: each identifier joins the queue once and leaves it once.
///
/// ```
/// use larder::ids::{IdError, Ids, rule::{Lowest, NearFull, Rested}};
///
/// let mut tags = Ids::new(0u8..4, Rested::allocations(Lowest, 2, NearFull::Fail))?;
/// let tag = tags.alloc()?;
/// tags.free(tag)?;
/// assert_eq!((tags.alloc()?, tags.alloc()?), (1, 2));
/// assert_eq!(tags.alloc()?, tag);
/// tags.free(1)?;
/// assert_eq!(tags.alloc()?, 3);
/// assert_eq!(tags.alloc(), Err(IdError::Resting { resting: 1 }));
/// assert_eq!(tags.order().due(), Some(1));
/// # Ok::<(), IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rested<R, C = Ticks> {
    rule: R,
    rest: u64,
    near_full: NearFull,
    clock: C,
}

impl<R: Rule> Rested<R> {
    /// Between a free and the reuse at least `rest` other identifiers are handed out.
    ///
    /// ```
    /// # use larder::ids::{Ids, rule::{Lowest, NearFull, Rested}};
    /// let mut tags = Ids::new(0u8..10, Rested::allocations(Lowest, 2, NearFull::Fail))?;
    /// tags.alloc()?;
    /// tags.free(0)?;
    /// assert_eq!([tags.alloc()?, tags.alloc()?, tags.alloc()?], [1, 2, 0]);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn allocations(rule: R, rest: u64, near_full: NearFull) -> Self {
        Self::by_clock(rule, rest, near_full, Ticks::Allocations)
    }

    /// Between a free and the reuse passes at least this time. Each call reads the clock.
    ///
    /// ```
    /// use core::time::Duration;
    /// use larder::ids::{IdError, Ids, rule::{Lowest, NearFull, Rested}};
    ///
    /// // As long as a packet with the old number may still be on its way.
    /// let rule = Rested::time(Lowest, Duration::from_secs(120), NearFull::Fail);
    /// let mut ports = Ids::new(0u16..2, rule)?;
    /// let port = ports.alloc()?;
    /// ports.free(port)?;
    /// assert_eq!(ports.alloc()?, 1, "0 rests");
    /// assert_eq!(ports.alloc(), Err(IdError::Resting { resting: 1 }));
    /// assert!(ports.order().due() <= Some(120_000_000_000), "nanoseconds until then");
    /// # Ok::<(), IdError>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn time(rule: R, rest: Duration, near_full: NearFull) -> Self {
        let rest = u64::try_from(rest.as_nanos()).unwrap_or(u64::MAX);
        Self::by_clock(rule, rest, near_full, Ticks::nanoseconds())
    }
}

impl<R: Rule, C: Clock> Rested<R, C> {
    /// Between a free and the reuse pass at least so many ticks of a clock. See [`Clock`] for one.
    pub fn by_clock(rule: R, rest: u64, near_full: NearFull, clock: C) -> Self {
        Self {
            rule,
            rest,
            near_full,
            clock,
        }
    }
}

/// A rest is a promise to the tick, so nothing lies in batches: they would be chosen before their time.
impl<R: Rule, C: Clock> Rule for Rested<R, C> {
    type Order = RestedOrder<R::Order, C>;

    fn order(&self, last: u64) -> Result<Self::Order, IdError> {
        Ok(RestedOrder {
            order: self.rule.order(last)?,
            queue: VecDeque::new(),
            stale: Stale::default(),
            resting: Map::new(last),
            rest: self.rest,
            near_full: self.near_full,
            clock: self.clock.clone(),
            allocations: 0,
            shortest: None,
            last,
        })
    }
}

/// What keeps [`Rested`].
///
/// ```
/// use larder::ids::{Ids, rule::{Lowest, NearFull, Order, Rested}};
/// let mut tags = Ids::new(0u8..3, Rested::allocations(Lowest, 5, NearFull::Relax))?;
/// assert_eq!((tags.alloc()?, tags.alloc()?), (0, 1));
/// tags.free(0)?;
/// assert_eq!((tags.order().resting(), tags.order().due()), (1, Some(5)));
/// assert!(tags.order().inner().is_taken(0), "to the other rule it is in use");
/// assert_eq!((tags.alloc()?, tags.alloc()?), (2, 0), "nothing else was left");
/// assert_eq!(tags.order().shortest(), Some(1), "of the five that it should have had");
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug)]
pub struct RestedOrder<O, C> {
    /// To this one the offsets that rest are taken.
    order: O,
    /// Offsets that rest and when they were freed, the first at the front; and stale entries, but never at the front.
    queue: VecDeque<(u64, u64)>,
    stale: Stale,
    /// Those that rest are taken here.
    resting: Map,
    rest: u64,
    near_full: NearFull,
    clock: C,
    allocations: u64,
    shortest: Option<u64>,
    last: u64,
}

impl<O: Order, C: Clock> RestedOrder<O, C> {
    /// How many rest, or have rested and were not yet asked for.
    pub fn resting(&self) -> u64 {
        self.resting.taken()
    }

    /// In how many ticks the first of those that rest is due, 0 if it is; `None` when none rests.
    pub fn due(&self) -> Option<u64> {
        let &(_, freed) = self.queue.front()?;
        let passed = self.clock.now(self.allocations).saturating_sub(freed);
        Some(self.rest.saturating_sub(passed))
    }

    /// The shortest rest in ticks that [`NearFull::Relax`] gave to an identifier; `None` while all had theirs.
    pub fn shortest(&self) -> Option<u64> {
        self.shortest
    }

    /// The structure of the other rule.
    pub fn inner(&self) -> &O {
        &self.order
    }

    /// Drops the entry of the one that rests longest.
    #[inline]
    fn pop(&mut self) {
        self.queue.pop_front();
        self.trim();
    }

    /// Drops the stale entries at the front.
    #[inline]
    fn trim(&mut self) {
        while let Some(&(at, _)) = self.queue.front()
            && self.stale.drop_first(at)
        {
            self.queue.pop_front();
        }
    }

    /// Gives those that have rested to the other rule.
    #[inline]
    fn release(&mut self) -> Result<(), IdError> {
        if self.queue.is_empty() {
            return Ok(());
        }
        let now = self.clock.now(self.allocations);
        while let Some(&(at, freed)) = self.queue.front()
            && now.saturating_sub(freed) >= self.rest
        {
            self.resting.give(at)?;
            if let Err(error) = self.order.give(at) {
                self.resting.take(at)?;
                return Err(error);
            }
            self.pop();
        }
        Ok(())
    }

    /// Ends the rest of one, by name. It stays taken to the other rule.
    fn end_rest(&mut self, at: u64) -> Result<(), IdError> {
        self.stale.reserve(1)?;
        self.resting.give(at)?;
        self.stale.add(at);
        self.trim();
        if self.stale.is_much(self.queue.len()) {
            let stale = &mut self.stale;
            self.queue.retain(|&(at, _)| !stale.drop_first(at));
            self.stale.clear();
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> Result<(), IdError> {
        self.queue.try_reserve(64).map_err(|_| IdError::OutOfMemory)
    }

    fn refuse(&self) -> IdError {
        IdError::Resting {
            resting: self.resting(),
        }
    }
}

impl<O: Order, C: Clock> Order for RestedOrder<O, C> {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        self.release()?;
        if let Some(at) = self.order.take()? {
            self.allocations += 1;
            return Ok(Some(at));
        }
        let Some(&(at, freed)) = self.queue.front() else {
            return Ok(None);
        };
        if self.near_full == NearFull::Fail {
            return Err(self.refuse());
        }
        self.resting.give(at)?;
        self.pop();
        let rested = self.clock.now(self.allocations).saturating_sub(freed);
        self.shortest = Some(self.shortest.map_or(rested, |least| least.min(rested)));
        self.allocations += 1;
        Ok(Some(at))
    }

    fn take_at(&mut self, at: u64) -> Result<bool, IdError> {
        self.release()?;
        let was = if self.resting.is_free(at) {
            self.order.take_at(at)?
        } else if self.near_full == NearFull::Fail {
            return Err(self.refuse());
        } else {
            self.end_rest(at)?;
            true
        };
        self.allocations += u64::from(was);
        Ok(was)
    }

    fn take_run(&mut self, count: u64, align: u64, phase: u64) -> Result<Option<u64>, IdError> {
        self.release()?;
        let found = self.order.take_run(count, align, phase)?;
        if found.is_some() {
            self.allocations = self.allocations.saturating_add(count);
        }
        Ok(found)
    }

    /// After [`IdError::OutOfMemory`] some may have ended their rest.
    fn take_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        self.release()?;
        if let Some(at) = self.next_taken(first).filter(|&at| at <= last) {
            return Ok(Err(at));
        }
        while let Some(at) = self.resting.first_taken(first, last) {
            if self.near_full == NearFull::Fail {
                return Err(self.refuse());
            }
            self.end_rest(at)?;
            self.order.give(at)?;
        }
        let done = self.order.take_all(first, last)?;
        self.allocations = self
            .allocations
            .saturating_add((last - first).saturating_add(1));
        Ok(done)
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        if !self.is_taken(at) {
            return Ok(false);
        }
        if self.queue.len() == self.queue.capacity() {
            self.grow()?;
        }
        self.resting.take(at)?;
        self.queue.push_back((at, self.clock.now(self.allocations)));
        Ok(true)
    }

    fn take_back(&mut self, at: u64) -> Result<(), IdError> {
        self.resting.give(at)?;
        self.queue.pop_back();
        Ok(())
    }

    #[inline]
    fn is_taken(&self, at: u64) -> bool {
        self.order.is_taken(at) && self.resting.is_free(at)
    }

    fn last(&self) -> u64 {
        self.last
    }

    fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        let mut at = self.order.first_taken(first, last)?;
        while !self.resting.is_free(at) {
            let next = self.resting.next_free(at).filter(|&next| next <= last)?;
            at = self.order.first_taken(next, last)?;
        }
        Some(at)
    }

    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.order.take_span(first, last)
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        lower(
            self.order.next_free(from),
            self.resting.first_taken(from, self.last),
        )
    }

    fn cursor(&self) -> Option<u64> {
        self.order.cursor()
    }

    fn set_cursor(&mut self, at: u64) -> Result<(), IdError> {
        self.order.set_cursor(at)
    }

    fn taken(&self) -> u64 {
        self.order.taken() - self.resting.taken()
    }

    fn bytes(&self) -> usize {
        self.order.bytes()
            + self.queue.capacity() * size_of::<(u64, u64)>()
            + self.stale.bytes()
            + self.resting.bytes()
    }
}
