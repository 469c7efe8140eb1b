//! The next free one after the last.

use core::hint::cold_path;

use super::{Order, Rule};
use crate::ids::IdError;
use crate::ids::map::WordCache;

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

impl Rule for Cyclic {
    type Order = CyclicOrder;

    fn order(&self, last: u64) -> Result<CyclicOrder, IdError> {
        Ok(CyclicOrder::new(last))
    }
}

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
    type Order = CyclicOrder<false>;

    fn order(&self, last: u64) -> Result<CyclicOrder<false>, IdError> {
        Ok(CyclicOrder::new(last))
    }
}

/// What keeps [`Cyclic`] and, where it need not be in order, [`Any`].
///
/// [`Order`] shows what it can do.
#[derive(Debug)]
pub struct CyclicOrder<const IN_ORDER: bool = true> {
    cache: WordCache,
    /// The offset handed out last; at first, and without an order always, the one before 0. Of the word that is loaded, the free
    /// offsets above it are loaded and those below are in the map.
    latest: u64,
    last: u64,
}

impl<const IN_ORDER: bool> CyclicOrder<IN_ORDER> {
    fn new(last: u64) -> Self {
        Self {
            cache: WordCache::new(last),
            latest: u64::MAX,
            last,
        }
    }

    #[inline]
    fn refill(&mut self) -> Result<bool, IdError> {
        let found = if self.cache.is_loaded() {
            self.cache.load_next()?
        } else {
            self.cache.load(self.latest.wrapping_add(1))?
        };
        Ok(found || self.cache.load(0)?)
    }

    #[inline]
    fn passed(&mut self, at: u64) {
        if IN_ORDER {
            self.latest = at;
        }
    }

    /// Whether one of the word that is loaded goes there, since it comes later in the order.
    #[inline]
    fn is_ahead(&self, at: u64) -> bool {
        !IN_ORDER || at > self.latest
    }

    /// Gives back one of the word that is loaded.
    #[inline(never)]
    fn give_here(&mut self, at: u64) -> bool {
        if self.is_ahead(at) {
            self.cache.add(at)
        } else {
            self.cache.map().give_quickly(at)
        }
    }
}

impl<const IN_ORDER: bool> Order for CyclicOrder<IN_ORDER> {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        let mut at = self.cache.pop();
        if at.is_none() && self.refill()? {
            at = self.cache.pop();
        }
        if let Some(at) = at {
            self.passed(at);
        }
        Ok(at)
    }

    #[inline]
    fn take_quickly(&mut self) -> Option<u64> {
        let at = match self.cache.pop() {
            None if self.cache.load_next_quickly() => self.cache.pop()?,
            at => at?,
        };
        self.passed(at);
        Some(at)
    }

    #[inline]
    fn give_quickly(&mut self, at: u64) -> bool {
        if at > self.last {
            cold_path();
            return false;
        }
        if self.cache.has(at) {
            if IN_ORDER {
                cold_path();
                return self.give_here(at);
            }
            return self.cache.add(at);
        }
        self.cache.map().give_quickly(at)
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        if self.cache.has(at) && self.is_ahead(at) {
            Ok(self.cache.add(at))
        } else {
            self.cache.map().give(at)
        }
    }

    fn give_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        self.cache.give_all(first, last)
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
        self.cache.put_back()?;
        self.passed(at);
        Ok(())
    }

    fn taken(&self) -> u64 {
        self.cache.taken()
    }

    fn bytes(&self) -> usize {
        self.cache.bytes()
    }
}
