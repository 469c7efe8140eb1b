//! Runs of pages for callers that keep their own account of them, such as slabs of objects.

use std::sync::Arc;

use super::{BLOCK_PAGES, Beside, Clusters};
use crate::os::{Span, System};
use crate::pages::PoolError;

/// One page is backed ahead for every `AHEAD` that are backed, but at least `LEAST_AHEAD`: a cluster at once would be most
/// of the memory of a small program, and this way the number of calls grows with the logarithm until clusters are whole.
const AHEAD: usize = 8;
const LEAST_AHEAD: usize = 8;

impl Clusters {
    /// The reservation, and the system that it came from.
    pub(in crate::pages) fn ground(&self) -> (Span, Arc<dyn System>) {
        (self.span, self.system.clone())
    }

    /// What goes back with the pages, if there is something.
    pub(in crate::pages) fn beside(&self) -> Option<Span> {
        self.beside.as_ref().map(Beside::span)
    }

    /// Address of the first of `n` neighbouring pages, and whether all of them are known to be zero. Where none are ready,
    /// more are backed, up to a cluster, and what is left of them stays ready, so that short runs do not cost a system call
    /// each.
    pub(in crate::pages) fn take_span(&self, n: usize) -> Result<(usize, bool), PoolError> {
        let short = (1..=BLOCK_PAGES).contains(&n);
        if self.populate && short {
            if let Some(ready) = self.take_ready_span(n) {
                return Ok((ready, false));
            }
            let backed = self.state.lock().space.resident();
            let ahead = (backed / AHEAD).max(LEAST_AHEAD).min(self.cluster_pages());
            // After a refusal, the slower way below asks for fewer pages and returns the error.
            if let Some(start) = self.fault_span(n, ahead.max(n)) {
                return Ok((self.addr(start), false));
            }
        }
        self.take_backed(n, self.page_size(), short)
    }

    /// Address of the first of `n` neighbouring pages of one block that are backed already; none where there are no such.
    pub(in crate::pages) fn take_ready_span(&self, n: usize) -> Option<usize> {
        if !(1..=BLOCK_PAGES).contains(&n) {
            return None;
        }
        let taken = self.state.lock().space.take_ready_run(n)?;
        Some(self.addr(taken.pages.start))
    }

    /// Whether [`take_ready_span`](Self::take_ready_span) would find pages, or for more than a block's there are whole blocks with some.
    pub(in crate::pages) fn has_span(&self, n: usize) -> bool {
        let mut state = self.state.lock();
        match n {
            0 => false,
            1..=BLOCK_PAGES => state.space.has_ready_run(n),
            _ => state.space.has_long_run(n),
        }
    }

    /// An error where the limit or the reservation has fewer than `n` pages in all.
    pub(in crate::pages) fn could_hold(&self, n: usize) -> Result<(), PoolError> {
        if n > self.span.len / self.page {
            Err(self.exhausted(n))
        } else if n > self.limit_pages() {
            Err(self.limit(n))
        } else {
            Ok(())
        }
    }

    /// Address of the first of `n` neighbouring pages, a multiple of `align`, which is a power of two; and whether all of them are zero.
    /// They are not populated: a program may never touch all of a long run.
    pub(in crate::pages) fn take_large(
        &self,
        n: usize,
        align: usize,
    ) -> Result<(usize, bool), PoolError> {
        self.take_backed(n, align, false)
    }

    fn take_backed(
        &self,
        n: usize,
        align: usize,
        populate: bool,
    ) -> Result<(usize, bool), PoolError> {
        if n == 0 {
            return Err(PoolError::EmptyRun);
        }
        let taken = self.find_run(n, align)?;
        if !taken.resident {
            self.back(&taken, populate)?;
        }
        Ok((self.addr(taken.pages.start), taken.zero))
    }

    /// Takes the `n` pages from an address on that no run has, not populated; false where one of them is in use.
    pub(in crate::pages) fn take_span_at(&self, addr: usize, n: usize) -> bool {
        let taken = {
            let mut state = self.state.lock();
            let room = self.limit_pages().saturating_sub(state.space.resident());
            state.space.take_at(self.number(addr), n, room)
        };
        taken.is_some_and(|taken| taken.resident || self.back(&taken, false).is_ok())
    }

    /// Brings runs back under one lock, unused since `since`.
    pub(in crate::pages) fn put_spans(
        &self,
        spans: impl Iterator<Item = (usize, usize)>,
        since: u64,
    ) {
        let mut state = self.state.lock();
        for (addr, n) in spans {
            let first = self.number(addr);
            self.count_home(&mut state, n);
            state.space.put(first..first + n, false, since);
        }
    }
}
