//! What the helper does ahead of need.

use super::{BLOCK_PAGES, Clusters, Counters, Moving, Space};
use crate::os::coarse_now;
use crate::pages::PoolError;

impl Clusters {
    /// Backs up to `most` neighbouring pages ahead of need, so that they are ready for a later get. Runs of fewer than
    /// `least` pages, at most 64, are left for callers that need no more.
    pub(in crate::pages) fn fault_ahead(
        &self,
        least: usize,
        most: usize,
    ) -> Result<usize, PoolError> {
        let taken = self.take_cold(&mut self.state.lock(), least, most)?;
        let _moving = Moving(self);
        self.back(&taken, true)?;
        let n = taken.pages.len();
        self.state
            .lock()
            .space
            .put(taken.pages, taken.zero, coarse_now());
        Counters::add(&self.counters.fault_ahead_pages, n);
        Ok(n)
    }

    /// The same for a caller that needs `n` of them at once, at most 64: returns the first of the caller's pages, if there
    /// are so many.
    pub(in crate::pages) fn fault_span(&self, n: usize, most: usize) -> Option<usize> {
        let taken = self.take_cold(&mut self.state.lock(), n, most).ok()?;
        let _moving = Moving(self);
        self.back(&taken, true).ok()?;
        let (start, end) = (taken.pages.start, taken.pages.end);
        let block_ends = end.min(start.next_multiple_of(BLOCK_PAGES));
        // Ready pages are searched for block by block. Where no block has `n` of these, a search would not find them again.
        let found_again = n <= (block_ends - start).max(end - block_ends);
        let mine = if found_again || end - start < n { 0 } else { n };
        let mut state = self.state.lock();
        let ready = start + mine..end;
        Counters::add(&self.counters.fault_ahead_pages, ready.len());
        state.space.put_ahead(ready, taken.zero, coarse_now());
        if mine > 0 {
            return Some(start);
        }
        // Ready pages left over from earlier calls may lie beside them.
        Some(state.space.take_ready_run(n)?.pages.start)
    }

    /// Number of pages that are ready, counted up to `enough`.
    pub(in crate::pages) fn ready_up_to(&self, enough: usize) -> usize {
        self.state.lock().space.ready_up_to(enough)
    }

    /// Takes pages of blocks in which no page is in use, for the helper to zero.
    pub(in crate::pages) fn take_unused(&self, rounds: &mut [usize]) -> usize {
        self.take_rounds(&mut self.state.lock(), rounds, Space::take_unused)
    }
}
