//! Quantum caches of one owner: magazines behind `&mut`, no lock, no restartable section, no thread-local.

use core::fmt;

use super::arena::Arena;
use super::error::{ArenaError, MOST_CACHES};
use super::quantum::lend;
use crate::magazine::StockHandle;

/// A magazine for each size that it was asked for, over the caches of an [`Arena`]. It can move between threads, and
/// what it took may be freed by others, and the other way round.
///
/// Segments in its magazines are out of reach of [`Arena::trim`]; dropping the handle gives them to the caches.
///
/// ```
/// # use larder::arena::Arena;
/// let ids = Arena::builder("ids").quantum_max(4).build()?;
/// ids.add(0, 1000)?;
/// let mut mine = ids.handle();
/// let id = mine.alloc(1)?;
/// mine.free(id, 1)?;
/// assert_eq!(mine.alloc(1)?, id, "the last one freed is the next one taken");
/// ids.free(id, 1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ArenaHandle<'a> {
    arena: &'a Arena,
    own: [Option<StockHandle<'a>>; MOST_CACHES as usize],
}

impl Arena {
    /// A handle without magazines; it gets two for each size when that is first used.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").quantum_max(1).build()?;
    /// ids.add(0, 1000)?;
    /// let mut mine = ids.handle();
    /// assert_eq!(ids.stats().allocated, 0);
    /// mine.alloc(1)?;
    /// assert!(ids.stats().allocated > 1, "its magazines have come");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn handle(&self) -> ArenaHandle<'_> {
        ArenaHandle {
            arena: self,
            own: [const { None }; MOST_CACHES as usize],
        }
    }
}

impl<'a> ArenaHandle<'a> {
    /// As [`Arena::alloc`]. Warm: a magazine's top, the segment's tag, and a store.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// # let ids = Arena::builder("ids").quantum_max(4).build()?;
    /// # ids.add(0, 1000)?;
    /// let mut mine = ids.handle();
    /// assert_ne!(mine.alloc(1)?, mine.alloc(1)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Arena::alloc`].
    #[inline]
    pub fn alloc(&mut self, size: u64) -> Result<u64, ArenaError> {
        let arena = self.arena;
        if let Some((handle, cache)) = self.magazines(size)
            && let Ok(round) = handle.get(&arena.quanta[cache].supply(&arena.ranges))
        {
            return Ok(lend(&arena.ranges, round));
        }
        arena.alloc(size)
    }

    /// As [`Arena::free`].
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// # let ids = Arena::builder("ids").quantum_max(4).build()?;
    /// # ids.add(0, 1000)?;
    /// let mut mine = ids.handle();
    /// let id = ids.alloc(1)?;                     // the handle takes what others had
    /// mine.free(id, 1)?;
    /// assert!(mine.free(id, 1).is_err(), "and sees a second free as well");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Arena::free`].
    #[inline]
    pub fn free(&mut self, addr: u64, size: u64) -> Result<(), ArenaError> {
        let arena = self.arena;
        if let Some((handle, cache)) = self.magazines(size)
            && let Some(tag) = arena.quanta[cache].glimpse_back(&arena.ranges, addr)
        {
            handle.put(tag as usize, &arena.quanta[cache].supply(&arena.ranges));
            return Ok(());
        }
        arena.free(addr, size)
    }

    /// The magazines for a size, and the number of its cache.
    #[inline]
    fn magazines(&mut self, size: u64) -> Option<(&mut StockHandle<'a>, usize)> {
        let cache = self.arena.quantum_number(size)?;
        let own = self.own.get_mut(cache)?;
        if own.is_none() {
            // Without memory for magazines the arena's own will do.
            *own = StockHandle::new(&self.arena.quanta[cache].stock).ok();
        }
        own.as_mut().map(|own| (own, cache))
    }
}

impl fmt::Debug for ArenaHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArenaHandle")
            .field("arena", &self.arena.name())
            .finish_non_exhaustive()
    }
}
