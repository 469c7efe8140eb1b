//! The lowest free one first.

use core::hint::cold_path;

use super::{Order, Rule};
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

impl Rule for Lowest {
    type Order = LowestOrder;

    fn order(&self, last: u64) -> Result<LowestOrder, IdError> {
        Ok(LowestOrder {
            cache: WordCache::new(last),
            floor: 0,
            last,
        })
    }
}

/// What keeps [`Lowest`].
///
/// [`Order`] shows what it can do.
#[derive(Debug)]
pub struct LowestOrder {
    cache: WordCache,
    /// No offset below is free. While a word is loaded, this is where it begins.
    floor: u64,
    last: u64,
}

impl LowestOrder {
    #[inline]
    fn refill(&mut self) -> Result<bool, IdError> {
        let found = if self.cache.is_loaded() {
            self.cache.load_next()?
        } else {
            self.cache.load(self.floor)?
        };
        if !found {
            return Ok(false);
        }
        self.floor = self.cache.base();
        Ok(true)
    }
}

impl Order for LowestOrder {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        if let Some(at) = self.cache.pop() {
            return Ok(Some(at));
        }
        Ok(if self.refill()? {
            self.cache.pop()
        } else {
            None
        })
    }

    #[inline]
    fn take_quickly(&mut self) -> Option<u64> {
        if let Some(at) = self.cache.pop() {
            return Some(at);
        }
        if !self.cache.load_next_quickly() {
            return None;
        }
        self.floor = self.cache.base();
        self.cache.pop()
    }

    #[inline]
    fn give_quickly(&mut self, at: u64) -> bool {
        if at > self.last {
            cold_path();
            return false;
        }
        if self.cache.has(at) {
            return self.cache.add(at);
        }
        at >= self.floor && self.cache.map().give_quickly(at)
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        if self.cache.has(at) {
            // All free offsets of this word are loaded, none is in the map.
            Ok(self.cache.add(at))
        } else if at >= self.floor {
            self.cache.map().give(at)
        } else {
            // It is taken, and so is the rest of its word.
            self.cache.load_only(at)?;
            self.floor = at & !63;
            Ok(true)
        }
    }

    fn give_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        let given = self.cache.give_all(first, last)?;
        if given.is_ok() {
            self.floor = self.floor.min(first & !63);
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

    fn taken(&self) -> u64 {
        self.cache.taken()
    }

    fn bytes(&self) -> usize {
        self.cache.bytes()
    }
}
