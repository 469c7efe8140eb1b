//! How memory goes back to the system: whole blocks first, then runs of pages in blocks that are in use.

use core::ops::Range;

use super::{Age, BLOCK_PAGES, Clusters, Counters};
use crate::os::{Decommit, backed_share, coarse_now};

/// Ranges that go back with one call, and pages after which no more are added to it: 64 MiB, some 5 milliseconds in which the
/// process can map nothing.
const BATCH: usize = 64;
const BATCH_PAGES: usize = 16_384;

/// Fewest blocks that are given back as a unit. Up to 33 pages the kernel flushes the TLB page by page
/// (`tlb_single_page_flush_ceiling`); a block has 64.
const RELEASE_BLOCKS: usize = 1;

/// Shortest run of a used block that upkeep gives back. Each run is a range for the kernel now and a call to populate it
/// later, so single pages between others are kept; a trim gives them, too.
const RUN_PAGES: usize = 4;

/// [`make_room`](Clusters::make_room) gives pages back when the free ones exceed one in `SCATTERED` of the backed pages plus
/// `SCATTERED_LEAST` (1 MiB: with less, a small program would pay system calls for less memory than it starts with). The
/// shortest run that goes has `SHORT_RUN` pages.
const SCATTERED: usize = 16;
const SCATTERED_LEAST: usize = 256;
const SHORT_RUN: usize = 2;

/// Fewest pages that are made zero by [`renew`](Clusters::renew): as many are zeroed in 4 microseconds where the cache has them, and in 12
/// where it has not, and to look, to give them back and to touch some again takes 9.
const RENEWED_PAGES: usize = 192;

/// In 100 of their pages fewer have memory. To zero one takes a tenth to a quarter of a fault.
const RENEWED_SHARE: usize = 20;

/// Most runs in a block: every other page.
const RUNS: usize = BLOCK_PAGES / 2;

/// Blocks that are looked into before the lock is let go of: some 20 microseconds.
const LOOKS: usize = 1024;

/// Blocks that one upkeep looks into for runs, 4 GiB; the next one goes on where it ended.
const UPKEEP_LOOKS: usize = 16 * LOOKS;

/// Ranges on their way to the kernel.
struct Batch {
    ranges: [Range<usize>; BATCH],
    n: usize,
    pages: usize,
}

impl Batch {
    const fn new() -> Self {
        Self {
            ranges: [const { 0..0 }; BATCH],
            n: 0,
            pages: 0,
        }
    }

    /// Adds a range; there is room. Neighbours are one range for the kernel.
    fn add(&mut self, range: Range<usize>) {
        self.pages += range.len();
        if let Some(last) = self.ranges[..self.n].last_mut()
            && last.end == range.start
        {
            last.end = range.end;
        } else {
            self.ranges[self.n] = range;
            self.n += 1;
        }
    }

    /// Whether another `ranges` fit.
    fn has_room(&self, ranges: usize) -> bool {
        self.n + ranges <= BATCH && self.pages < BATCH_PAGES
    }
}

impl Clusters {
    /// Gives back to the kernel what has been unused for so long, at most about `most` pages: blocks that have been whole all
    /// the time, and runs of pages in other blocks. Returns how many pages went.
    pub(in crate::pages) fn release_idle(&self, age: Age, most: usize) -> usize {
        let unit = (self.cluster_pages() / BLOCK_PAGES).clamp(RELEASE_BLOCKS, 1 << 14);
        // A cluster that is no power of two is given back in units of the next smaller one.
        let whole = self.release(1 << unit.ilog2(), age, most);
        let from = self.state.lock().looked;
        let (runs, to) =
            self.release_runs(RUN_PAGES, age, most - whole.min(most), from, UPKEEP_LOOKS);
        self.state.lock().looked = to.unwrap_or(0);
        whole + runs
    }

    /// For a caller that is about to have `n` neighbouring pages backed: gives about `n` other pages back to the kernel, if
    /// many backed pages are free but no `n` of them are neighbours.
    pub(in crate::pages) fn make_room(&self, n: usize) {
        let scattered = {
            let space = &mut self.state.lock().space;
            let free = space.resident().saturating_sub(space.out());
            let most = space.resident() / SCATTERED + SCATTERED_LEAST;
            free > most && n <= BLOCK_PAGES && !space.has_ready_run(n)
        };
        if scattered {
            self.release_runs(SHORT_RUN, Age::any(coarse_now()), n, 0, LOOKS);
        }
    }

    /// Gives free pages back to the kernel, however young they are: about `most` of them, all for `usize::MAX`. Returns how many
    /// went.
    pub(in crate::pages) fn release_free(&self, most: usize) -> usize {
        let age = Age::any(coarse_now());
        let whole = self.release(RELEASE_BLOCKS, age, most);
        let least = if most == usize::MAX { 1 } else { RUN_PAGES };
        let rest = most - whole.min(most);
        whole + self.release_runs(least, age, rest, 0, usize::MAX).0
    }

    /// Makes pages zero by giving their memory back, if they are many and few of them have any. A page that the program touches
    /// afterwards costs a fault, which takes some times as long as to zero a page that has memory. Which pages have some says what the
    /// program did with them before: one that touched all has all zeroed in place.
    ///
    /// # Safety
    /// The `n` pages from `addr` on are the caller's, and what they hold is not needed.
    pub(in crate::pages) unsafe fn renew(&self, addr: usize, n: usize) -> bool {
        if n < RENEWED_PAGES || !matches!(self.give_back, Some(Decommit::DontNeed)) {
            return false;
        }
        let first = self.number(addr);
        let span = self.span_of(&(first..first + n));
        // SAFETY: the caller's promise.
        backed_share(span) < RENEWED_SHARE
            && unsafe { self.system.decommit(&[span], Decommit::DontNeed) }.is_ok()
    }

    /// Gives back units of so many blocks.
    fn release(&self, unit: usize, age: Age, most: usize) -> usize {
        let Some(how) = self.give_back.filter(|_| self.is_here()) else {
            return 0;
        };
        let _moving = self.moving();
        let mut released = 0;
        let mut from = 0;
        while released < most {
            let mut batch = Batch::new();
            {
                let mut state = self.state.lock();
                while batch.has_room(1) && released + batch.pages < most {
                    let (found, next) = state.space.take_idle(unit, age, from);
                    from = next;
                    let Some(found) = found else { break };
                    batch.add(found);
                }
            }
            let Some(pages) = self.give(batch, how) else {
                break;
            };
            released += pages;
        }
        released
    }

    /// Gives back runs of at least `least` pages of any block, from block `from` on, and looks into at most `looks` of
    /// them. Returns how many pages went, and where to go on if that was not the end.
    fn release_runs(
        &self,
        least: usize,
        age: Age,
        most: usize,
        mut from: usize,
        looks: usize,
    ) -> (usize, Option<usize>) {
        let may = self.in_part && self.is_here();
        let Some(how) = self.give_back.filter(|_| may) else {
            return (0, None);
        };
        let _moving = self.moving();
        let (mut released, mut looked) = (0, 0);
        loop {
            let mut batch = Batch::new();
            let mut end = false;
            {
                let mut state = self.state.lock();
                for _ in 0..LOOKS {
                    if !batch.has_room(RUNS) || looked >= looks || released + batch.pages >= most {
                        break;
                    }
                    let Some(b) = state.space.next_ready(from) else {
                        end = true;
                        break;
                    };
                    from = b + 1;
                    looked += 1;
                    state
                        .space
                        .take_fragments(b, least, age, |run| batch.add(run));
                }
            }
            let none = batch.n == 0;
            match self.give(batch, how) {
                Some(pages) => released += pages,
                None if none => {}
                None => return (released, Some(from)),
            }
            if end {
                return (released, None);
            }
            if looked >= looks || released >= most {
                return (released, Some(from));
            }
        }
    }

    /// Gives the memory of ranges that were taken out back to the kernel, and returns the ranges to the account. Says how
    /// many of their pages were backed; `None` when there are no ranges, or the kernel refused.
    fn give(&self, batch: Batch, how: Decommit) -> Option<usize> {
        let n = batch.n;
        if n == 0 {
            return None;
        }
        let mut spans = [self.span; BATCH];
        for (span, pages) in spans.iter_mut().zip(&batch.ranges[..n]) {
            *span = self.span_of(pages);
        }
        Counters::add(&self.counters.decommits, 1);
        // SAFETY: the pages are in this thread's hands alone, and their contents are not needed.
        let done = unsafe { self.system.decommit(&spans[..n], how) };
        if let (Ok(()), Some(beside)) = (&done, &self.beside) {
            // SAFETY: as above.
            unsafe { beside.give(&batch.ranges[..n], &mut spans) };
        }
        let now = coarse_now();
        let mut state = self.state.lock();
        let mut released = 0;
        for pages in batch.ranges.into_iter().take(n) {
            match done {
                Ok(()) => {
                    released += state.space.put_released(pages, how != Decommit::Free, now);
                }
                Err(_) => state.space.put_kept(pages, now),
            }
        }
        drop(state);
        Counters::add(&self.counters.released_pages, released);
        done.is_ok().then_some(released)
    }
}
