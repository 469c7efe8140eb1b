//! The rules that take what a bitmap has next: the lowest free one, the next one after the last, or whichever is at hand.

use core::hint::cold_path;

use super::{Order, Rule, Shape};
use crate::ids::IdError;
use crate::ids::map::WordCache;

/// The lowest free identifier is next, as POSIX wants it of descriptors. Keeps the ones in use dense.
///
/// A freed identifier may come back at the very next allocation. At most four levels of words are looked at, and mostly
/// none: the lowest word with free identifiers is loaded already.
///
/// ```
/// use larder::ids::{Ids, rule::Lowest};
///
/// let mut fds = Ids::new(0u32..1024, Lowest)?;
/// fds.reserve(0u32..=2)?;
/// assert_eq!(fds.alloc()?, 3);
/// assert_eq!(fds.alloc()?, 4);
/// fds.free(3)?;
/// assert_eq!(fds.alloc()?, 3);
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lowest;

/// The next free identifier after the last one handed out is next, and after the largest the smallest: what Linux does
/// for process identifiers and in `idr_alloc_cyclic`.
///
/// While few are in use, a freed identifier comes back after about as many allocations as the range is wide; near full
/// that can be none at all, when the cursor is just before it. A caller that needs a promise takes
/// [`Rested`](super::Rested), [`Epochs`](super::Epochs) or [`Fifo`](super::Fifo). At most four levels of words are
/// looked at. [`Ids::alloc_at`](crate::ids::Ids::alloc_at) and its like leave the cursor where it is.
///
/// ```
/// use larder::ids::{Ids, rule::Cyclic};
///
/// let mut pids = Ids::new(1u32..=3, Cyclic)?;
/// assert_eq!((pids.alloc()?, pids.alloc()?), (1, 2));
/// pids.free(1)?;
/// assert_eq!((pids.alloc()?, pids.alloc()?), (3, 1));
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cyclic;

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

const LOWEST: u8 = 0;
const CYCLIC: u8 = 1;
const ANY: u8 = 2;

macro_rules! rules {
    ($($rule:ident: $number:ident, $shape:ident;)*) => {$(
        impl Rule for $rule {
            type Order = WordOrder<$number>;
            const SHAPE: Shape = Shape::$shape;

            fn order(&self, last: u64) -> Result<WordOrder<$number>, IdError> {
                Ok(WordOrder {
                    cache: WordCache::new(last),
                    latest: u64::MAX,
                    last,
                })
            }
        }
    )*};
}

rules! {
    Lowest: LOWEST, Exact;
    Cyclic: CYCLIC, InPlace;
    Any: ANY, Near;
}

/// What keeps [`Lowest`], [`Cyclic`] and [`Any`].
///
/// [`Order`] shows what it can do.
#[derive(Debug)]
pub struct WordOrder<const RULE: u8> {
    /// Under `LOWEST` no offset is free below the word that is loaded, or that was loaded before.
    cache: WordCache,
    /// Under `CYCLIC` the offset handed out last, at first the one before 0. Of the word that is loaded, the free offsets above
    /// it are loaded and those below are in the map.
    latest: u64,
    last: u64,
}

impl<const RULE: u8> WordOrder<RULE> {
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        self.cache.pop().map(|at| self.passed(at))
    }

    #[inline(always)]
    fn passed(&mut self, at: u64) -> u64 {
        if RULE == CYCLIC {
            self.latest = at;
        }
        at
    }

    #[inline]
    fn refill(&mut self) -> Result<bool, IdError> {
        let found = if self.cache.is_loaded() {
            self.cache.load_next()?
        } else {
            self.cache.load(match RULE {
                LOWEST => self.cache.base(),
                CYCLIC => self.latest.wrapping_add(1),
                _ => 0,
            })?
        };
        Ok(found || (RULE != LOWEST && self.cache.load(0)?))
    }

    /// Whether one of the word that is loaded goes there, since it comes later in the order.
    #[inline]
    fn is_ahead(&self, at: u64) -> bool {
        RULE != CYCLIC || at > self.latest
    }

    /// Gives back one of the word that is loaded, under `CYCLIC`.
    #[inline(never)]
    fn give_here(&mut self, at: u64) -> bool {
        if self.is_ahead(at) {
            self.cache.add(at)
        } else {
            self.cache.map().give_quickly(at)
        }
    }
}

impl<const RULE: u8> Order for WordOrder<RULE> {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        let mut at = self.pop();
        if at.is_none() && self.refill()? {
            at = self.pop();
        }
        Ok(at)
    }

    #[inline(always)]
    fn take_quickly(&mut self) -> Option<u64> {
        match self.pop() {
            None if self.cache.load_next_quickly() => {
                let at = self.cache.pop_loaded();
                Some(self.passed(at))
            }
            at => at,
        }
    }

    #[inline(always)]
    fn give_quickly(&mut self, at: u64) -> bool {
        if at > self.last {
            cold_path();
            return false;
        }
        if self.cache.has(at) {
            if RULE == CYCLIC {
                cold_path();
                return self.give_here(at);
            }
            return self.cache.add(at);
        }
        if RULE == LOWEST && self.cache.is_before(at) {
            cold_path();
            return false;
        }
        self.cache.map().give_quickly(at)
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        if self.cache.has(at) && self.is_ahead(at) {
            return Ok(self.cache.add(at));
        }
        if RULE == LOWEST && at < self.cache.base() {
            // It is taken, and so is the rest of its word.
            self.cache.load_only(at)?;
            return Ok(true);
        }
        self.cache.map().give(at)
    }

    fn give_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        let given = self.cache.give_all(first, last)?;
        if RULE == LOWEST && given.is_ok() && first < self.cache.base() {
            self.cache.begin_at(first);
        }
        Ok(given)
    }

    #[inline]
    fn is_taken(&self, at: u64) -> bool {
        !self.cache.is_free(at)
    }

    fn last(&self) -> u64 {
        self.last
    }

    fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        self.cache.first_taken(first, last)
    }

    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.cache.put_back()?.take_span(first, last)
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        self.cache.next_free(from)
    }

    fn cursor(&self) -> Option<u64> {
        (self.latest != u64::MAX).then_some(self.latest)
    }

    fn set_cursor(&mut self, at: u64) -> Result<(), IdError> {
        if RULE == CYCLIC {
            self.cache.put_back()?;
            self.latest = at;
        }
        Ok(())
    }

    fn taken(&self) -> u64 {
        self.cache.taken()
    }

    fn bytes(&self) -> usize {
        self.cache.bytes()
    }
}
