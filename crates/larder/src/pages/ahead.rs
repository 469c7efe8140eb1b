//! What the helper does ahead of need.

use super::{Clusters, Counters, Moving, Space};
use crate::os::coarse_now;
use crate::pages::PoolError;

impl Clusters {
    /// Backs up to `most` neighbouring pages that nobody asked for yet, so that they are ready when somebody does. Runs of
    /// fewer than `least` pages, at most 64, are left to those who need no more.
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

    /// Number of pages that are ready, counted up to `enough`.
    pub(in crate::pages) fn ready_up_to(&self, enough: usize) -> usize {
        self.state.lock().space.ready_up_to(enough)
    }

    /// Takes pages that nobody used for long, for the helper to zero.
    pub(in crate::pages) fn take_unused(&self, rounds: &mut [usize]) -> usize {
        self.take_rounds(&mut self.state.lock(), rounds, Space::take_unused)
    }
}
