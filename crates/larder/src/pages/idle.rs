//! Pages that have been here for so long that they go back to the system.
//!
//! A block that is here as a whole carries the time at which it became so. For a block in use, each look records the pages
//! that are ready. Those that no thread has taken by a later look have been idle all the time in between. So nothing is
//! recorded when a page comes back, and a look at a block is a few operations on words.

use core::ops::Range;

use super::{BLOCK_PAGES, Space, bits, find_run, parts};

/// How long pages must have been here to go.
#[derive(Debug, Clone, Copy)]
pub(in crate::pages) struct Age {
    now: u64,
    /// Nanoseconds; `None` is any age.
    ns: Option<u64>,
}

impl Age {
    /// However young.
    pub(in crate::pages) fn any(now: u64) -> Self {
        Self { now, ns: None }
    }

    /// At least so many nanoseconds.
    pub(in crate::pages) fn of(ns: u64, now: u64) -> Self {
        Self { now, ns: Some(ns) }
    }

    /// A time further ahead than the age is one before the clock jumped back, and as good as any. Less far ahead are pages that came
    /// after `now` was read.
    fn is_reached(self, since: u64) -> bool {
        self.ns.is_none_or(|ns| match self.now.checked_sub(since) {
            Some(age) => age >= ns,
            None => since - self.now > ns,
        })
    }
}

impl Space {
    /// Takes a unit of `blocks` neighbouring blocks (a power of two, aligned) that have all been whole for so long, to give
    /// it back. Looks from block `from` on; the second value is where to look next. Pages beyond the
    /// frontier were never taken, so a unit that the frontier crosses ends there. What was taken comes back by
    /// [`put_released`](Self::put_released) or [`put_kept`](Self::put_kept).
    pub(in crate::pages) fn take_idle(
        &mut self,
        blocks: usize,
        age: Age,
        mut from: usize,
    ) -> (Option<Range<usize>>, usize) {
        let last = self.frontier / BLOCK_PAGES;
        // The block that the frontier crosses is never in the set of whole ones.
        let tail =
            |from: usize| (from <= last && self.blocks.get(last)?.ready() != 0).then_some(last);
        while let Some(b) = self.whole.next(from).or_else(|| tail(from)) {
            let unit = b / blocks * blocks..(b / blocks + 1) * blocks;
            from = unit.end;
            let idle = |b: usize| {
                let known = self.known(b);
                self.blocks.get(b).is_none_or(|block| {
                    block.home == known
                        && (block.resident == 0 || age.is_reached(block.whole_since))
                })
            };
            if unit.clone().all(idle) {
                let pages = unit.start * BLOCK_PAGES..self.frontier.min(unit.end * BLOCK_PAGES);
                let (edges, full) = parts(&pages);
                for (b, mask) in edges.into_iter().flatten() {
                    self.lend(b, mask);
                }
                for block in &mut self.blocks[full.clone()] {
                    (block.home, block.idle) = (0, 0);
                }
                self.leave(full, true);
                return (Some(pages), from);
            }
        }
        (None, from)
    }

    /// The first block from `from` on with pages that are ready.
    pub(in crate::pages) fn next_ready(&self, from: usize) -> Option<usize> {
        [&self.partial, &self.whole]
            .into_iter()
            .filter_map(|set| set.next(from))
            .min()
    }

    /// Takes the runs of at least `least` pages out of block `b` that have been ready for so long, at most 32, and remembers
    /// which pages are ready now. They come back by [`put_released`](Self::put_released) or [`put_kept`](Self::put_kept).
    pub(in crate::pages) fn take_fragments(
        &mut self,
        b: usize,
        least: usize,
        age: Age,
        mut take: impl FnMut(Range<usize>),
    ) {
        let mut idle = self.idle_pages(b, age);
        let mut gone = 0;
        // A single page between two others: 32 runs in 64 pages.
        while let Some(at) = find_run(idle, least) {
            let n = (idle >> at).trailing_ones() as usize;
            let start = b * BLOCK_PAGES + at;
            take(start..start + n);
            idle &= !bits(at, n);
            gone |= bits(at, n);
        }
        self.lend(b, gone);
        self.change(b, |block| {
            if block.idle == 0 || age.is_reached(block.idle_since) {
                block.idle = block.ready();
                block.idle_since = age.now;
            }
        });
    }

    /// Pages of a block that have been ready for so long.
    fn idle_pages(&self, b: usize, age: Age) -> u64 {
        let block = self.blocks[b];
        let (ready, since) = if age.ns.is_none() {
            (block.ready(), 0)
        } else if block.home == self.known(b) {
            (block.ready(), block.whole_since)
        } else {
            (block.idle, block.idle_since)
        };
        if age.is_reached(since) { ready } else { 0 }
    }

    /// Takes pages out that are here. Those that are not backed are not marked as backed.
    fn lend(&mut self, b: usize, mask: u64) {
        self.change(b, |block| block.home &= !mask);
    }

    /// Brings pages back that were given to the system; `zero` when they read as zero from now on. Says how many of them
    /// had been backed.
    pub(in crate::pages) fn put_released(
        &mut self,
        pages: Range<usize>,
        zero: bool,
        now: u64,
    ) -> usize {
        let mut released = 0;
        self.bring(pages, zero, now, |block, mask| {
            released += (block.resident & mask).count_ones() as usize;
            block.resident &= !mask;
        });
        self.resident -= released;
        released
    }

    /// Brings pages back that the system did not take. Some may be gone nevertheless. They count as backed as before, and as
    /// dirty, since a mistake in that does no harm.
    pub(in crate::pages) fn put_kept(&mut self, pages: Range<usize>, now: u64) {
        self.bring(pages, false, now, |_, _| {});
    }
}
