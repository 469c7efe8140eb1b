//! The arena as users see it.

use core::fmt;
use core::sync::atomic::AtomicU64;
use std::sync::Arc;

use super::builder::Builder;
use super::error::ArenaError;
use super::fit::Effort;
use super::import::Import;
use super::quantum::Quantum;
use super::request::{Policy, Request, Want, round_up};
use super::segments::{Segments, Shared, State};
use super::tag::{Kind, NONE};
use crate::os::forked::ForkLock;

/// Tags that one operation needs at most: two for a span, two for what is left around a segment.
const TAGS: u32 = 4;

/// Ranges of an integer resource: addresses, page numbers, identifiers, anything that is counted.
///
/// An arena never looks at what it hands out. It may be used from all threads; sizes with a quantum cache take no lock.
/// Made by a [`Builder`].
///
/// The child of a fork goes on with its copy: the lock is taken around the fork. What another thread of the parent was
/// just moving between its magazines, or importing, is lost to the child's copy. Nothing here may be called from a signal
/// handler.
///
/// When an arena is dropped, imported spans in which nothing is allocated go back to the source. Others stay with the
/// callers that hold parts of them.
///
/// ```
/// use larder::arena::{Arena, ArenaError};
/// let ids = Arena::builder("ids").build()?;
/// ids.add(1, 100)?;
/// let id = ids.alloc(1)?;
/// ids.free(id, 1)?;
/// assert!(matches!(ids.free(id, 1), Err(ArenaError::NotAllocated { .. })), "freed once");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Arena {
    pub(super) shared: Shared,
    pub(super) state: ForkLock<State>,
    /// Cache n has segments of n + 1 quanta.
    pub(super) quanta: Vec<Quantum>,
    /// The quantum is two to this power.
    pub(super) shift: u32,
    pub(super) policy: Policy,
    pub(super) source: Option<Arc<dyn Import>>,
    /// Imports are multiples of this.
    pub(super) unit: u64,
    pub(super) limit: AtomicU64,
}

impl Arena {
    /// Begins an arena: quantum 1, no quantum caches, no source, no limit, instant fit.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let pages = Arena::builder("pages").quantum(4096).build()?;
    /// pages.add(1 << 30, 1 << 20)?;
    /// assert_eq!(pages.alloc(1)? % 4096, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: &'static str) -> Builder {
        Builder::new(name)
    }

    /// Takes `size` units, rounded up to a multiple of the quantum, anywhere.
    ///
    /// Constant time: from a quantum cache without a lock; else, under instant fit, a bit scan and at most 32 looks before
    /// a source is asked. Searching to the end happens before it fails, and emptying the quantum caches.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let pages = Arena::builder("pages").quantum(4096).quantum_max(4 * 4096).build()?;
    /// pages.add(1 << 30, 1 << 24)?;
    /// let addr = pages.alloc(5000)?;
    /// assert_eq!(addr % 4096, 0);
    /// pages.free(addr, 5000)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArenaError::Empty`], [`ArenaError::TooLarge`]; [`ArenaError::NoSpace`], [`ArenaError::Limit`],
    /// [`ArenaError::Source`], [`ArenaError::Memory`]. Segments that other threads are just moving between magazines, and
    /// spans that they are importing, may be missed.
    #[inline]
    pub fn alloc(&self, size: u64) -> Result<u64, ArenaError> {
        if let Some(cache) = self.quantum_of(size)
            && let Ok(addr) = self.alloc_cached(cache)
        {
            return Ok(addr);
        }
        self.alloc_slow(size)
    }

    #[cold]
    fn alloc_slow(&self, size: u64) -> Result<u64, ArenaError> {
        round_up(self.name(), size, self.quantum())
            .and_then(|size| self.take_hard(&Want::plain(size, self.quantum())))
            .inspect_err(|_| self.lock().state.counts.fails += 1)
    }

    /// Takes what a [`Request`] describes. Never from a quantum cache.
    ///
    /// Under instant fit constant time when some segment is certainly large enough and there are no bounds; else it looks at
    /// free segments until one fits, at all of them before it fails.
    ///
    /// ```
    /// # use larder::arena::{Arena, Request};
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(1, 100)?;
    /// assert_eq!(ids.xalloc(&Request::new(8).align(16))?, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), and [`ArenaError::Align`], [`ArenaError::Phase`], [`ArenaError::Nocross`],
    /// [`ArenaError::Bounds`].
    pub fn xalloc(&self, request: &Request) -> Result<u64, ArenaError> {
        request
            .check(self.name(), self.quantum())
            .and_then(|want| self.take_hard(&want))
            .inspect_err(|_| self.lock().state.counts.fails += 1)
    }

    /// Gives back what was taken: the address and the size, as asked for or rounded up to the quantum.
    ///
    /// Constant time on average (a hash chain is followed); without a lock where a quantum cache takes it.
    ///
    /// ```
    /// # use larder::arena::{Arena, ArenaError};
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(0, 10)?;
    /// let first = ids.alloc(4)?;
    /// assert!(matches!(ids.free(first, 3), Err(ArenaError::WrongSize { allocated: 4, .. })));
    /// ids.free(first, 4)?;
    /// assert_eq!(ids.stats().free, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArenaError::NotAllocated`] when no allocation begins at `addr`, [`ArenaError::WrongSize`] when it has another size;
    /// [`ArenaError::Empty`] and [`ArenaError::TooLarge`] for sizes that no allocation has. Nothing is freed then.
    #[inline]
    pub fn free(&self, addr: u64, size: u64) -> Result<(), ArenaError> {
        if let Some(cache) = self.quantum_of(size)
            && let Some(tag) = self.glimpse_back(cache, addr)
        {
            cache.stock.put(tag as usize, &cache.supply(self));
            return Ok(());
        }
        self.free_slow(addr, size)
    }

    #[cold]
    fn free_slow(&self, addr: u64, size: u64) -> Result<(), ArenaError> {
        let arena = self.name();
        let rounded = round_up(arena, size, self.quantum())?;
        let not_allocated = ArenaError::NotAllocated { arena, addr, size };
        let mut segments = self.lock();
        let number = self.shared.hash.find(&self.shared.tags, addr);
        let tag = self.shared.tags.get(number);
        if number == NONE || tag.kind() == Kind::Cached {
            return Err(not_allocated);
        }
        let allocated = tag.size();
        if allocated != rounded {
            return Err(ArenaError::WrongSize {
                arena,
                addr,
                size,
                allocated,
            });
        }
        if tag.kind() == Kind::Allocated {
            segments.free(number);
            self.release_idle(segments, false);
            return Ok(());
        }
        // Lent by a quantum cache, but the look without the lock missed it.
        if !self.take_back(tag, addr) {
            return Err(not_allocated);
        }
        drop(segments);
        if let Some(cache) = self.quantum_of(allocated) {
            cache.stock.put(number as usize, &cache.supply(self));
        }
        Ok(())
    }

    /// Whether an address lies in one of the arena's spans, allocated or not. O(log spans).
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(10, 5)?;
    /// assert!(ids.contains(14) && !ids.contains(15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn contains(&self, addr: u64) -> bool {
        self.lock().span_of(addr) != NONE
    }

    /// The name that it was made with; errors begin with it.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// assert_eq!(Arena::builder("ports").build()?.name(), "ports");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.shared.name
    }

    /// What all sizes and addresses are multiples of.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// assert_eq!(Arena::builder("pages").quantum(4096).build()?.quantum(), 4096);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn quantum(&self) -> u64 {
        self.shared.quantum
    }

    #[inline]
    pub(super) fn lock(&self) -> Segments<'_> {
        Segments {
            shared: &self.shared,
            state: self.state.lock(),
        }
    }

    /// Makes sure that there are tags for one operation.
    pub(super) fn reserve(&self, segments: &Segments<'_>) -> Result<(), ArenaError> {
        segments
            .state
            .pool
            .reserve(&self.shared.tags, TAGS)
            .map_err(|cause| ArenaError::Memory {
                arena: self.name(),
                cause,
            })
    }

    pub(super) fn no_space(&self, want: &Want) -> ArenaError {
        ArenaError::NoSpace {
            arena: self.name(),
            request: want.request(),
            free: self.lock().state.counts.free,
        }
    }

    /// Cuts a request from a free segment, or from a new span.
    pub(super) fn take(&self, want: &Want, kind: Kind) -> Result<u32, ArenaError> {
        let bounded = self.source.is_some() && !want.is_bounded();
        let effort = if bounded {
            Effort::Bounded
        } else {
            Effort::Full
        };
        if let Some(tag) = self.take_here(want, kind, effort)? {
            return Ok(tag);
        }
        self.import(want, kind).or_else(|error| {
            // The search may have been cut short.
            match bounded.then(|| self.take_here(want, kind, Effort::Full)) {
                Some(Ok(Some(tag))) => Ok(tag),
                _ => Err(error),
            }
        })
    }

    /// Cuts a request from a free segment.
    fn take_here(
        &self,
        want: &Want,
        kind: Kind,
        effort: Effort,
    ) -> Result<Option<u32>, ArenaError> {
        let policy = want.policy.unwrap_or(self.policy);
        let mut segments = self.lock();
        self.reserve(&segments)?;
        let fit = segments.find(want, policy, effort);
        Ok(fit.map(|(tag, addr)| segments.cut(tag, addr, want.size, kind)))
    }

    /// Cuts as many more of the same from free segments as `out` has places. Says how many there were.
    pub(super) fn take_more(&self, want: &Want, kind: Kind, out: &mut [usize]) -> usize {
        let mut segments = self.lock();
        for (n, slot) in out.iter_mut().enumerate() {
            let fit = self
                .reserve(&segments)
                .ok()
                .and_then(|()| segments.find(want, self.policy, Effort::Bounded));
            let Some((tag, addr)) = fit else { return n };
            *slot = segments.cut(tag, addr, want.size, kind) as usize;
        }
        out.len()
    }

    /// Takes a request for a consumer. Before it fails, it empties the quantum caches, so that their segments are joined, and
    /// returns idle imported spans.
    fn take_hard(&self, want: &Want) -> Result<u64, ArenaError> {
        let take = || self.take(want, Kind::Allocated);
        let taken = take().or_else(|error| {
            // Segments in magazines may be the missing neighbours, and their tags may be needed.
            if self.empty_caches() > 0
                && let Ok(tag) = take()
            {
                return Ok(tag);
            }
            // The source or the limit may have room for one large span instead of several small ones.
            if self.release_idle(self.lock(), true) > 0 {
                return take().map_err(|_| error);
            }
            Err(error)
        })?;
        Ok(self.shared.tags.get(taken).start())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.source.is_some() {
            self.drain();
        }
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("name", &self.name())
            .field("quantum", &self.quantum())
            .field("policy", &self.policy)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
