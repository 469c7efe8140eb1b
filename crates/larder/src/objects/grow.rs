//! How a cache gets slabs.

use core::sync::atomic::Ordering;

use super::cache::Cache;
use super::error::ObjectError;
use super::map::MARK_LINE;
use super::slabs::slab_bytes;
use crate::os::page_size;

/// Objects that are taken from slabs at a time at most, and bytes of them. Less than a magazine holds, since what is taken
/// may never be used. Up to the end of a line of marks more are taken (see [`Batch`](super::slabs::Batch)).
const FETCH_ROUNDS: usize = 64;
const FETCH_BYTES: usize = 16 << 10;
/// Bytes of the largest objects whose slabs are populated, and more pages with them. Small ones a program writes soon and as a whole; of
/// a larger one it may never touch the end, and to populate that takes memory that no other allocator takes.
const MOST_POPULATED: usize = 8 << 10;
/// Of how many bytes of slabs one is taken at a time, and the fewest that are: two takers of a size of which there is little
/// share a slab, and not more of it lies in magazines than is in use.
const FETCH_SHARE: usize = 8;
const LEAST_FETCH_BYTES: usize = 1 << 10;

impl Cache {
    /// Objects that are enough for a fetch from slabs. The end of a line of marks comes half a line later, on average.
    pub(super) fn fetch_enough(&self) -> usize {
        let bytes = self.held.load(Ordering::Relaxed) / FETCH_SHARE;
        let bytes = bytes.clamp(LEAST_FETCH_BYTES, FETCH_BYTES);
        let rounds = (bytes / self.shape.stride).clamp(1, FETCH_ROUNDS);
        rounds - rounds.min(MARK_LINE / self.shape.stride) / 2
    }

    /// Makes a slab.
    pub(super) fn grow(&self) -> Result<(), ObjectError> {
        let pool = &self.inner().pool;
        let take = |pages| {
            let run = if self.shape.stride > MOST_POPULATED {
                pool.take_large(pages, page_size())
            } else {
                pool.take_span(pages)
            };
            Ok(Some(run?))
        };
        self.grow_from(take).map(|_| ())
    }

    /// Makes a slab of pages that are backed already; false where there are none, and memory would have to grow.
    pub(super) fn grow_ready(&self) -> Result<bool, ObjectError> {
        let take = |pages| Some((self.inner().pool.take_ready_span(pages)?, false));
        self.grow_from(|pages| Ok(take(pages)))
    }

    /// Makes a slab of pages that `take` finds, if it does: their address, and whether all of them are zero. Says whether there is one.
    fn grow_from(
        &self,
        take: impl FnOnce(usize) -> Result<Option<(usize, bool)>, ObjectError>,
    ) -> Result<bool, ObjectError> {
        let (bytes, limit) = (self.shape.bytes(), self.config.limit_bytes);
        self.held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|&held| held <= limit)
            })
            .map_err(|_| ObjectError::Limit { bytes, limit })?;
        let made = self.make_slab(take);
        if !matches!(made, Ok(true)) {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        made
    }

    fn make_slab(
        &self,
        take: impl FnOnce(usize) -> Result<Option<(usize, bool)>, ObjectError>,
    ) -> Result<bool, ObjectError> {
        let (inner, ground) = (self.inner(), self.ground());
        let number = inner.meta.take(slab_bytes(ground))?;
        let (addr, zero) = match take(self.shape.pages) {
            Ok(Some(found)) => found,
            none => {
                // SAFETY: taken above, and not used.
                unsafe { inner.meta.put(number, slab_bytes(ground)) };
                return none.map(|_| false);
            }
        };
        let page = inner.map.page(addr);
        if let Err(error) = inner.map.back_marks(page, self.shape.pages) {
            let pages = core::iter::once((addr, self.shape.pages));
            inner.pool.put_spans(pages, crate::os::coarse_now());
            // SAFETY: as above.
            unsafe { inner.meta.put(number, slab_bytes(ground)) };
            return Err(error.into());
        }
        let colour = if self.config.colour {
            self.shape
                .colour(self.slabs_made.fetch_add(1, Ordering::Relaxed))
        } else {
            0
        };
        // SAFETY: the block was taken for a slab of this cache, and no other thread knows it.
        unsafe { ground.set_up(number, page, colour, zero) };
        inner
            .map
            .set(page, self.shape.shown_pages(), self.number.get(), number);
        self.slabs().add(ground, number);
        Ok(true)
    }
}
