//! The pages of the reservation: which are here, which are backed, which are zero. Pure bookkeeping under one lock: a thread
//! that calls the kernel takes pages out first, releases the lock, and brings the pages back afterwards.

use core::ops::Range;
use std::sync::Arc;

use larder_base::bitmap::Bitmap;

use super::block::{ALL, BLOCK_PAGES, Block, bits, find_run};
use crate::os::{MetaSlice, OsError, System};

#[path = "idle.rs"]
mod idle;

pub(super) use idle::Age;

/// Blocks that are looked into for a short run before fresh pages are taken instead.
const RUN_SEARCH: usize = 256;

/// Blocks of the longest runs for which the space knows where to begin a search. A search for a longer one may pass runs of so many
/// blocks, 4 MiB each, that are too short.
const LONG: usize = 16;

/// A set of block numbers, whose words lie outside of the pages.
type BlockSet = Bitmap<MetaSlice<u64>>;

/// Neighbouring pages that were taken out, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    /// Their numbers.
    pub(super) pages: Range<usize>,
    /// All are known to be zero.
    pub(super) zero: bool,
    /// All are backed.
    pub(super) resident: bool,
}

/// The blocks that a range of pages touches in part, with the masks of its pages there, and those that it fills.
fn parts(pages: &Range<usize>) -> ([Option<(usize, u64)>; 2], Range<usize>) {
    let full = pages.start.div_ceil(BLOCK_PAGES)..pages.end / BLOCK_PAGES;
    // What the range has of the block that holds `page`, up to `end`.
    let edge = |page: usize, end: usize| {
        let n = end - page;
        (n > 0).then(|| (page / BLOCK_PAGES, bits(page % BLOCK_PAGES, n)))
    };
    if full.start > full.end {
        return ([edge(pages.start, pages.end), None], 0..0);
    }
    let head = edge(pages.start, full.start * BLOCK_PAGES);
    let tail = edge(full.end * BLOCK_PAGES, pages.end);
    ([head, tail], full)
}

/// The pages that a run may begin at: `first`, and every `step` pages from there. `step` is a power of two, and `first` is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) first: usize,
    pub(super) step: usize,
}

impl Grid {
    /// Every page.
    pub(super) const ALL: Self = Self { first: 0, step: 1 };

    /// The first of its pages from `page` on.
    fn from(self, page: usize) -> usize {
        self.first + page.saturating_sub(self.first).next_multiple_of(self.step)
    }
}

/// The first of the lowest `blocks` members of a set that follow one another; all members are below `end`. The search goes on where the
/// last one for so many ended.
fn next_blocks(
    set: &BlockSet,
    below: &mut [u32; LONG + 1],
    blocks: usize,
    end: usize,
) -> Option<usize> {
    let below = &mut below[blocks.min(LONG)];
    let first = set.next_run(*below as usize, blocks);
    if blocks <= LONG {
        *below = first.unwrap_or(end) as u32;
    }
    first
}

/// Why there is no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRun {
    /// Nowhere are so many neighbours free.
    Place,
    /// More pages would have to be backed than there is room for.
    Room,
}

/// All pages of a pool that are not in stock or in use, and the numbers of those that are.
#[derive(Debug)]
pub(super) struct Space {
    blocks: MetaSlice<Block>,
    /// Blocks with pages that are ready, but not all of them here.
    partial: BlockSet,
    /// Blocks that are here as a whole, with pages that are ready.
    whole: BlockSet,
    /// Blocks with pages here that are not backed.
    cold: BlockSet,
    /// Blocks that are here as a whole, ready or cold, for runs of several.
    here: BlockSet,
    /// The pages that were backed ahead last. A search looks at some blocks only, and these may lie behind them.
    ahead: Range<usize>,
    /// The first of the backed pages that came back last, and when that was.
    last: (usize, u64),
    /// For each number of pages: no block below has so many neighbours that are ready, but for blocks that are whole.
    no_run_below: [u32; BLOCK_PAGES + 1],
    /// For each number of blocks: no run of so many begins below, of blocks that are here and of those that are also ready.
    no_blocks_below: [[u32; LONG + 1]; 2],
    /// The first page that was never taken. Pages from here on are neither here nor out.
    frontier: usize,
    pages: usize,
    /// Pages that are backed, or about to be.
    resident: usize,
    /// Pages below the frontier that are not here.
    out: usize,
}

impl Space {
    /// Most pages that can be kept account of.
    pub(super) const MOST_PAGES: usize = BlockSet::MOST * BLOCK_PAGES;

    /// Account of `pages` pages, a multiple of 64, none of them taken.
    pub(super) fn new(system: &Arc<dyn System>, pages: usize) -> Result<Self, OsError> {
        let blocks = pages / BLOCK_PAGES;
        let set = || {
            let words = MetaSlice::new(system.clone(), BlockSet::words(blocks))?;
            Ok::<_, OsError>(BlockSet::new(words, blocks))
        };
        Ok(Self {
            blocks: MetaSlice::new(system.clone(), blocks)?,
            partial: set()?,
            whole: set()?,
            cold: set()?,
            here: set()?,
            ahead: 0..0,
            last: (0, 0),
            no_run_below: [0; BLOCK_PAGES + 1],
            no_blocks_below: [[0; LONG + 1]; 2],
            frontier: 0,
            pages: blocks * BLOCK_PAGES,
            resident: 0,
            out: 0,
        })
    }

    /// Pages that are backed, or about to be.
    pub(super) fn resident(&self) -> usize {
        self.resident
    }

    /// Pages that are in stock, in use or being worked on.
    pub(super) fn out(&self) -> usize {
        self.out
    }

    /// Takes pages that are ready: from the fullest used blocks (lowest address first), so that others become whole.
    /// Calls `take` with each page's number and whether it is known to be zero.
    pub(super) fn take_ready(&mut self, most: usize, take: &mut dyn FnMut(usize, bool)) -> usize {
        let mut n = 0;
        while n < most && self.frontier > 0 {
            let Some(b) = self.partial.first().or_else(|| self.whole.first()) else {
                break;
            };
            n += self.take_from(b, most - n, take);
        }
        n
    }

    /// Takes up to `most` pages that are ready from whole blocks, in which no page is in use. Says how many.
    pub(super) fn take_unused(&mut self, most: usize, take: &mut dyn FnMut(usize, bool)) -> usize {
        let mut n = 0;
        while n < most {
            let Some(b) = self.whole.first() else { break };
            n += self.take_from(b, most - n, take);
        }
        n
    }

    /// Number of pages that are ready, counted up to `enough`.
    pub(super) fn ready_up_to(&self, enough: usize) -> usize {
        let mut n = 0;
        for set in [&self.whole, &self.partial] {
            let mut from = 0;
            while let Some(b) = set.next(from).filter(|_| n < enough) {
                n += self.blocks[b].ready().count_ones() as usize;
                from = b + 1;
            }
        }
        n.min(enough)
    }

    /// Takes up to `most` neighbouring pages that have to be backed: given back earlier, or never used. At least `least`
    /// of them, at most 64, unless the reservation ends: pages that were never used go before runs that are shorter.
    pub(super) fn take_cold_run(&mut self, least: usize, most: usize) -> Option<Taken> {
        let Some(start) = self.find_short_in(&self.cold, Block::cold, least) else {
            return self.take_frontier(most.min(self.pages - self.frontier));
        };
        let mut end = start;
        // Blocks follow one another as long as the run of cold pages reaches the end of each.
        while end - start < most && end < self.frontier {
            let (b, at) = (end / BLOCK_PAGES, end % BLOCK_PAGES);
            let run =
                ((self.blocks[b].cold() >> at).trailing_ones() as usize).min(most - (end - start));
            if run == 0 {
                break;
            }
            end += run;
            if at + run < BLOCK_PAGES {
                break;
            }
        }
        Some(self.take_range(start..end))
    }

    /// Takes `n` neighbouring pages from one of a grid's on, ready ones if it can, of which at most `room` are not backed.
    pub(super) fn take_run(&mut self, n: usize, grid: Grid, room: usize) -> Result<Taken, NoRun> {
        let found = if grid == Grid::ALL {
            self.find_any_run(n)
        } else {
            self.find_run_on(n, grid)
        };
        if let Some(start) = found {
            let pages = start..start + n;
            return match n > room && self.count_cold(pages.clone()) > room {
                true => Err(NoRun::Room),
                false => Ok(self.take_range(pages)),
            };
        }
        let before = grid.from(self.frontier) - self.frontier;
        if (self.pages - self.frontier).saturating_sub(before) < n {
            return Err(NoRun::Place);
        }
        if n > room {
            return Err(NoRun::Room);
        }
        if let Some(skipped) = self.take_frontier(before) {
            self.put_cold(skipped.pages, true, self.last.1);
        }
        self.take_frontier(n).ok_or(NoRun::Place)
    }

    fn find_any_run(&mut self, n: usize) -> Option<usize> {
        match n <= BLOCK_PAGES {
            true => self.find_short_run(n),
            false => self.find_long_run(n),
        }
    }

    /// A run on a grid: where pages came back last, where a block begins on it, or within a run that is longer by a step.
    fn find_run_on(&mut self, n: usize, grid: Grid) -> Option<usize> {
        if self.frontier == 0 {
            return None;
        }
        let is_here = |at: usize| at + n <= self.frontier && self.are_home(at..at + n);
        let (last, _) = self.last;
        if grid.from(last) == last && is_here(last) {
            return Some(last);
        }
        if grid.step >= BLOCK_PAGES {
            let sets: &[&BlockSet] = match n < BLOCK_PAGES {
                true => &[&self.partial, &self.whole, &self.cold],
                false => &[&self.here],
            };
            for set in sets {
                let mut from = grid.first / BLOCK_PAGES;
                for _ in 0..RUN_SEARCH {
                    let Some(b) = set.next(from) else { break };
                    let at = grid.from(b * BLOCK_PAGES);
                    from = at / BLOCK_PAGES;
                    if from > b {
                        continue;
                    }
                    if is_here(at) {
                        return Some(at);
                    }
                    from += 1;
                }
            }
        }
        let wide = n.checked_add(grid.step - 1)?;
        self.find_any_run(wide).map(|start| grid.from(start))
    }

    /// Takes the `n` pages from page `at` on, if all of them are here and at most `room` are not backed.
    pub(super) fn take_at(&mut self, at: usize, n: usize, room: usize) -> Option<Taken> {
        let end = at.checked_add(n).filter(|&end| end <= self.pages)?;
        // Pages that were never taken follow one another: a range may end among them, but not begin beyond the first.
        let fresh = end.saturating_sub(self.frontier);
        let known = at..end - fresh;
        if at > self.frontier || !self.are_home(known.clone()) {
            return None;
        }
        if self.count_cold(known.clone()) + fresh > room {
            return None;
        }
        let mut taken = self.take_range(known);
        if fresh > 0 {
            let more = self.take_frontier(fresh)?;
            taken.zero &= more.zero;
            taken.resident &= more.resident;
            taken.pages.end = more.pages.end;
        }
        Some(taken)
    }

    /// Whether all pages of a range are here.
    fn are_home(&self, pages: Range<usize>) -> bool {
        let (edges, full) = parts(&pages);
        let mut edges = edges.into_iter().flatten();
        edges.all(|(b, mask)| self.blocks[b].home & mask == mask)
            && self.blocks[full].iter().all(|block| block.is_whole())
    }

    /// Takes `n` neighbouring pages of one block, at most 64, that are all ready.
    pub(super) fn take_ready_run(&mut self, n: usize) -> Option<Taken> {
        let start = self.find_ready_run(n)?;
        Some(self.take_range(start..start + n))
    }

    /// Whether there are `n` neighbouring pages of one block, at most 64, that are all ready.
    pub(super) fn has_ready_run(&mut self, n: usize) -> bool {
        self.find_ready_run(n).is_some()
    }

    /// Whether there are blocks for `n` pages beside each other that are here as a whole, with pages that are ready.
    pub(super) fn has_long_run(&mut self, n: usize) -> bool {
        let (blocks, end) = (n.div_ceil(BLOCK_PAGES), self.frontier / BLOCK_PAGES);
        let [_, ready] = &mut self.no_blocks_below;
        next_blocks(&self.whole, ready, blocks, end).is_some()
    }

    fn find_ready_run(&mut self, n: usize) -> Option<usize> {
        self.find_in_partial(n)
            .or_else(|| self.find_ahead(n))
            .or_else(|| self.find_short_in(&self.whole, Block::ready, n))
    }

    /// A run of pages that are ready in a block that is not whole. A search goes on where the last one ended: however many blocks have
    /// too few pages, each costs time once.
    fn find_in_partial(&mut self, n: usize) -> Option<usize> {
        if self.frontier == 0 {
            return None;
        }
        for _ in 0..RUN_SEARCH {
            let b = self.partial.next(self.no_run_below[n] as usize)?;
            if let Some(at) = find_run(self.blocks[b].ready(), n) {
                return Some(b * BLOCK_PAGES + at);
            }
            self.no_run_below[n] = b as u32 + 1;
        }
        None
    }

    fn find_ahead(&self, n: usize) -> Option<usize> {
        let blocks = self.ahead.start / BLOCK_PAGES..self.ahead.end.div_ceil(BLOCK_PAGES);
        blocks.into_iter().find_map(|b| {
            let at = find_run(self.blocks[b].ready(), n)?;
            Some(b * BLOCK_PAGES + at)
        })
    }

    /// Brings pages back that are backed ahead.
    pub(super) fn put_ahead(&mut self, pages: Range<usize>, zero: bool, now: u64) {
        self.ahead = pages.clone();
        self.put(pages, zero, now);
    }

    /// Brings pages back that are backed.
    pub(super) fn put(&mut self, pages: Range<usize>, zero: bool, now: u64) {
        self.last = (pages.start, now);
        self.bring(pages, zero, now, |block, mask| block.resident |= mask);
    }

    /// Brings pages back that are not backed any more, or never were.
    pub(super) fn put_cold(&mut self, pages: Range<usize>, zero: bool, now: u64) {
        self.resident -= pages.len();
        self.bring(pages, zero, now, |block, mask| block.resident &= !mask);
    }

    /// Brings pages back, known to be zero or not; `backed` records which are backed.
    fn bring(
        &mut self,
        pages: Range<usize>,
        zero: bool,
        now: u64,
        mut backed: impl FnMut(&mut Block, u64),
    ) {
        let (edges, full) = parts(&pages);
        for (b, mask) in edges.into_iter().flatten() {
            let known = self.known(b);
            self.change(b, |block| {
                backed(block, mask);
                block.home |= mask;
                block.zero = if zero {
                    block.zero | mask
                } else {
                    block.zero & !mask
                };
                if block.home == known {
                    block.whole_since = now;
                }
            });
        }
        // Blocks of which no page was here: they are in no set.
        let mut backs = (ALL, 0);
        for block in &mut self.blocks[full.clone()] {
            debug_assert_eq!(block.home, 0, "bringing pages that are here");
            backed(block, ALL);
            block.home = ALL;
            block.zero = if zero { ALL } else { 0 };
            block.whole_since = now;
            backs = (backs.0 & block.resident, backs.1 | block.resident);
        }
        self.out -= full.len() * BLOCK_PAGES;
        self.here.set_range(full.clone(), true);
        if !full.is_empty() {
            self.lengthen(full.clone());
        }
        match backs {
            (ALL, _) => self.whole.set_range(full, true),
            (_, 0) => self.cold.set_range(full, true),
            _ => {
                for b in full {
                    self.whole.set(b, self.blocks[b].ready() != 0);
                    self.cold.set(b, self.blocks[b].cold() != 0);
                }
            }
        }
    }

    /// Pages of block `b` below the frontier.
    fn known(&self, b: usize) -> u64 {
        match self.frontier.saturating_sub(b * BLOCK_PAGES) {
            0 => 0,
            n => bits(0, n.min(BLOCK_PAGES)),
        }
    }

    /// Number of pages of a range, all of them here, that are not backed.
    fn count_cold(&self, pages: Range<usize>) -> usize {
        let (edges, full) = parts(&pages);
        let cold = |block: &Block, mask: u64| (mask & !block.resident).count_ones() as usize;
        let edges = edges.into_iter().flatten();
        let of_edges: usize = edges.map(|(b, mask)| cold(&self.blocks[b], mask)).sum();
        of_edges
            + self.blocks[full]
                .iter()
                .map(|block| cold(block, ALL))
                .sum::<usize>()
    }

    /// Takes up to `most` pages that are ready from a block that has some.
    fn take_from(&mut self, b: usize, most: usize, take: &mut dyn FnMut(usize, bool)) -> usize {
        let block = self.blocks[b];
        let mut ready = block.ready();
        let mut taken = 0_u64;
        while ready != 0 && (taken.count_ones() as usize) < most {
            let bit = ready & ready.wrapping_neg();
            take(
                b * BLOCK_PAGES + bit.trailing_zeros() as usize,
                block.zero & bit != 0,
            );
            taken |= bit;
            ready ^= bit;
        }
        self.change(b, |block| block.home &= !taken);
        taken.count_ones() as usize
    }

    fn find_short_run(&mut self, n: usize) -> Option<usize> {
        self.find_in_partial(n)
            .or_else(|| self.find_short_in(&self.whole, |b| b.home, n))
            .or_else(|| self.find_short_in(&self.cold, |b| b.home, n))
    }

    fn find_short_in(&self, set: &BlockSet, pages: fn(Block) -> u64, n: usize) -> Option<usize> {
        if self.frontier == 0 {
            // Not even the sets were touched yet.
            return None;
        }
        let mut from = 0;
        for _ in 0..RUN_SEARCH {
            let b = set.next(from)?;
            if let Some(at) = find_run(pages(self.blocks[b]), n) {
                return Some(b * BLOCK_PAGES + at);
            }
            from = b + 1;
        }
        None
    }

    fn find_long_run(&mut self, n: usize) -> Option<usize> {
        let (blocks, end) = (n.div_ceil(BLOCK_PAGES), self.frontier / BLOCK_PAGES);
        let [here, _] = &mut self.no_blocks_below;
        let first = next_blocks(&self.here, here, blocks, end)?;
        Some(first * BLOCK_PAGES)
    }

    /// These blocks are here as a whole from now on. Runs with one of them are new: they are no longer than all that follow one
    /// another there, and those of up to [`LONG`] blocks begin fewer than that before the first of these.
    fn lengthen(&mut self, blocks: Range<usize>) {
        let Range { mut start, mut end } = blocks;
        let least = start.saturating_sub(LONG - 1);
        while start > least && self.here.contains(start - 1) {
            start -= 1;
        }
        while end - start < LONG && end < self.blocks.len() && self.here.contains(end) {
            end += 1;
        }
        let n = (end - start).min(LONG);
        for lengths in &mut self.no_blocks_below {
            for below in &mut lengths[..=n] {
                *below = (*below).min(start as u32);
            }
        }
    }

    fn take_frontier(&mut self, n: usize) -> Option<Taken> {
        if n == 0 {
            return None;
        }
        let pages = self.frontier..self.frontier + n;
        self.frontier = pages.end;
        self.out += n;
        self.resident += n;
        Some(Taken {
            pages,
            zero: true,
            resident: false,
        })
    }

    /// Takes pages that are all here. Those that are not backed are about to be.
    fn take_range(&mut self, pages: Range<usize>) -> Taken {
        let mut taken = Taken {
            pages: pages.clone(),
            zero: true,
            resident: true,
        };
        let mut cold = 0;
        let mut look = |before: Block, mask: u64| {
            debug_assert_eq!(before.home & mask, mask, "taking pages that are not here");
            taken.zero &= before.zero & mask == mask;
            taken.resident &= before.resident & mask == mask;
            if before.resident & mask != mask {
                cold += (mask & !before.resident).count_ones() as usize;
            }
        };
        let (edges, full) = parts(&pages);
        for (b, mask) in edges.into_iter().flatten() {
            look(self.blocks[b], mask);
            self.change(b, |block| {
                block.home &= !mask;
                block.resident |= mask;
            });
        }
        for block in &mut self.blocks[full.clone()] {
            look(*block, ALL);
            block.home = 0;
            block.resident = ALL;
            block.idle = 0;
        }
        self.resident += cold;
        self.leave(full, cold > 0);
        taken
    }

    /// All pages of these blocks, which were here as a whole, were taken; `cold` when some may have been cold.
    fn leave(&mut self, blocks: Range<usize>, cold: bool) {
        self.out += blocks.len() * BLOCK_PAGES;
        if cold {
            self.cold.set_range(blocks.clone(), false);
        }
        self.whole.set_range(blocks.clone(), false);
        self.here.set_range(blocks, false);
    }

    /// Changes a block and what follows from it: the three sets and the number of pages out.
    fn change(&mut self, b: usize, f: impl FnOnce(&mut Block)) {
        let block = &mut self.blocks[b];
        let before = *block;
        f(block);
        // A page that was taken is not idle, even if it is back before the next look.
        block.idle &= block.ready();
        let now = *block;
        self.out = self.out + before.home.count_ones() as usize - now.home.count_ones() as usize;
        let ready = now.ready() != 0;
        // A page that became ready makes a run longer; so does one that is taken from a whole block, which is in this set from now on.
        if now.ready() & !before.ready() != 0 || before.is_whole() {
            for below in &mut self.no_run_below {
                *below = (*below).min(b as u32);
            }
        }
        self.partial.set(b, ready && !now.is_whole());
        self.whole.set(b, ready && now.is_whole());
        self.here.set(b, now.is_whole());
        self.cold.set(b, now.cold() != 0);
        if now.is_whole() && !before.is_whole() {
            self.lengthen(b..b + 1);
        }
    }

    /// Checks everything that can be derived against what it is derived from.
    #[cfg(all(test, not(loom)))]
    pub(super) fn check(&self) {
        let mut out = 0;
        for (b, block) in self.blocks.iter().enumerate() {
            let below = self
                .frontier
                .saturating_sub(b * BLOCK_PAGES)
                .min(BLOCK_PAGES);
            let known = if below == 0 { 0 } else { bits(0, below) };
            assert_eq!(
                block.home & !known,
                0,
                "block {b} has pages beyond the frontier"
            );
            out += (known & !block.home).count_ones() as usize;
            assert_eq!(
                self.partial.contains(b),
                block.ready() != 0 && !block.is_whole(),
                "block {b}"
            );
            assert_eq!(
                self.whole.contains(b),
                block.ready() != 0 && block.is_whole(),
                "block {b}"
            );
            assert_eq!(self.cold.contains(b), block.cold() != 0, "block {b}");
            assert_eq!(self.here.contains(b), block.is_whole(), "block {b}");
            for n in 1..=BLOCK_PAGES {
                let missed = self.partial.contains(b) && b < self.no_run_below[n] as usize;
                assert!(
                    !missed || find_run(block.ready(), n).is_none(),
                    "block {b}, {n}"
                );
            }
        }
        let sets = [&self.here, &self.whole];
        for (set, below) in sets.into_iter().zip(&self.no_blocks_below) {
            for (n, &below) in below.iter().enumerate().skip(2) {
                let first = set.next_run(0, n);
                assert!(
                    first.is_none_or(|first| first >= below as usize),
                    "{n} blocks from {first:?} on"
                );
            }
        }
        assert_eq!(self.out, out);
        let cold: usize = self
            .blocks
            .iter()
            .map(|b| b.cold().count_ones() as usize)
            .sum();
        assert_eq!(self.resident, self.frontier - cold);
    }
}

#[cfg(all(test, not(loom)))]
#[path = "space_tests.rs"]
mod tests;
