//! The pages of the reservation: which are here, which are backed, which are zero. Pure bookkeeping under one lock;
//! whoever calls the kernel takes pages out first, lets go of the lock, and brings them back.

use core::ops::Range;
use std::sync::Arc;

use super::block::{BLOCK_PAGES, Block, bits, find_run};
use super::block_set::BlockSet;
use crate::os::{MetaSlice, OsError, System};

/// Blocks that are looked into for a short run before fresh pages are taken instead.
const RUN_SEARCH: usize = 256;

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
    /// The first page that was never taken. Pages from here on are neither home nor out.
    frontier: usize,
    pages: usize,
    /// Pages that are backed, or about to be.
    resident: usize,
    /// Pages below the frontier that are not home.
    out: usize,
}

impl Space {
    /// Most pages that can be kept account of.
    pub(super) const MOST_PAGES: usize = BlockSet::MOST * BLOCK_PAGES;

    /// Account of `pages` pages, a multiple of 64, none of them taken.
    pub(super) fn new(system: &Arc<dyn System>, pages: usize) -> Result<Self, OsError> {
        let blocks = pages / BLOCK_PAGES;
        let set = || BlockSet::new(system.clone(), blocks);
        Ok(Self {
            blocks: MetaSlice::new(system.clone(), blocks)?,
            partial: set()?,
            whole: set()?,
            cold: set()?,
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
    pub(super) fn take_ready(&mut self, most: usize, mut take: impl FnMut(usize, bool)) -> usize {
        let mut n = 0;
        while n < most {
            let Some(b) = self.partial.first().or_else(|| self.whole.first()) else {
                break;
            };
            let block = self.blocks[b];
            let mut ready = block.ready();
            let mut taken = 0;
            while ready != 0 && n < most {
                let bit = ready & ready.wrapping_neg();
                take(
                    b * BLOCK_PAGES + bit.trailing_zeros() as usize,
                    block.zero & bit != 0,
                );
                taken |= bit;
                ready ^= bit;
                n += 1;
            }
            self.change(b, |block| block.home &= !taken);
        }
        n
    }

    /// Takes up to `most` pages that are ready and not known to be zero, from whole blocks: the ones that nobody used
    /// for longest. Says how many.
    pub(super) fn take_dirty(&mut self, most: usize, mut take: impl FnMut(usize)) -> usize {
        let mut n = 0;
        let mut from = 0;
        while n < most {
            let Some(b) = self.whole.next(from) else {
                break;
            };
            from = b + 1;
            let block = self.blocks[b];
            let mut dirty = block.ready() & !block.zero;
            let mut taken = 0;
            while dirty != 0 && n < most {
                let bit = dirty & dirty.wrapping_neg();
                take(b * BLOCK_PAGES + bit.trailing_zeros() as usize);
                taken |= bit;
                dirty ^= bit;
                n += 1;
            }
            self.change(b, |block| block.home &= !taken);
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

    /// Takes up to `most` neighbouring pages that have to be backed: given back earlier, or never used.
    pub(super) fn take_cold(&mut self, most: usize) -> Option<Taken> {
        let Some(b) = self.cold.first() else {
            return self.take_frontier(most.min(self.pages - self.frontier));
        };
        let first = self.blocks[b].cold().trailing_zeros() as usize;
        let start = b * BLOCK_PAGES + first;
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

    /// Takes `n` neighbouring pages, ready ones if it can, of which at most `room` are not backed.
    pub(super) fn take_run(&mut self, n: usize, room: usize) -> Result<Taken, NoRun> {
        let found = if n <= BLOCK_PAGES {
            self.find_short_run(n)
        } else {
            self.find_long_run(n)
        };
        match found {
            Some(start) if self.count_cold(start..start + n) > room => Err(NoRun::Room),
            Some(start) => Ok(self.take_range(start..start + n)),
            None if self.pages - self.frontier < n => Err(NoRun::Place),
            None if n > room => Err(NoRun::Room),
            None => self.take_frontier(n).ok_or(NoRun::Place),
        }
    }

    /// Brings pages back that are backed.
    pub(super) fn put(&mut self, pages: Range<usize>, zero: bool, now: u64) {
        self.for_blocks(pages, |space, b, mask| {
            let known = space.known(b);
            space.change(b, |block| {
                block.home |= mask;
                block.resident |= mask;
                block.zero = if zero {
                    block.zero | mask
                } else {
                    block.zero & !mask
                };
                if block.home == known {
                    block.whole_since = now;
                }
            });
        });
    }

    /// Brings pages back that are not backed any more, or never were.
    pub(super) fn put_cold(&mut self, pages: Range<usize>, zero: bool) {
        self.resident -= pages.len();
        self.for_blocks(pages, |space, b, mask| {
            space.change(b, |block| {
                block.home |= mask;
                block.resident &= !mask;
                block.zero = if zero {
                    block.zero | mask
                } else {
                    block.zero & !mask
                };
            });
        });
    }

    /// Takes a unit of `blocks` neighbouring blocks (a power of two, aligned) that have all been whole since before
    /// `before`, to give it back. Looks from block `from` on; the second value is where to look next. Pages beyond the
    /// frontier are nobody's, so a unit that the frontier crosses ends there.
    pub(super) fn take_idle(
        &mut self,
        blocks: usize,
        before: u64,
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
                    block.home == known && (block.resident == 0 || block.whole_since <= before)
                })
            };
            if unit.clone().all(idle) {
                let pages = unit.start * BLOCK_PAGES..self.frontier.min(unit.end * BLOCK_PAGES);
                // Pages of the unit that are cold already count as backed from here on, as `put_cold` expects.
                return (Some(self.take_range(pages).pages), from);
            }
        }
        (None, from)
    }

    /// Pages of block `b` below the frontier.
    fn known(&self, b: usize) -> u64 {
        match self.frontier.saturating_sub(b * BLOCK_PAGES) {
            0 => 0,
            n => bits(0, n.min(BLOCK_PAGES)),
        }
    }

    /// Number of pages of a range, all of them home, that are not backed.
    fn count_cold(&mut self, pages: Range<usize>) -> usize {
        let mut n = 0;
        self.for_blocks(pages, |space, b, mask| {
            n += (mask & !space.blocks[b].resident).count_ones() as usize;
        });
        n
    }

    fn find_short_run(&self, n: usize) -> Option<usize> {
        let look = |set: &BlockSet, pages: fn(Block) -> u64| {
            let mut from = 0;
            for _ in 0..RUN_SEARCH {
                let b = set.next(from)?;
                if let Some(at) = find_run(pages(self.blocks[b]), n) {
                    return Some(b * BLOCK_PAGES + at);
                }
                from = b + 1;
            }
            None
        };
        look(&self.partial, Block::ready)
            .or_else(|| look(&self.whole, |b| b.home))
            .or_else(|| look(&self.cold, |b| b.home))
    }

    fn find_long_run(&self, n: usize) -> Option<usize> {
        let need = n.div_ceil(BLOCK_PAGES);
        let mut from = 0;
        loop {
            // A block that is here as a whole is in one of the two sets.
            let start = [&self.whole, &self.cold]
                .into_iter()
                .filter_map(|set| set.next(from))
                .min()?;
            let length = (start..self.blocks.len())
                .take(need)
                .take_while(|&b| self.blocks[b].is_whole())
                .count();
            if length == need {
                return Some(start * BLOCK_PAGES);
            }
            from = start + length.max(1);
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

    /// Takes pages that are all home. Those that are not backed are about to be.
    fn take_range(&mut self, pages: Range<usize>) -> Taken {
        let mut taken = Taken {
            pages: pages.clone(),
            zero: true,
            resident: true,
        };
        self.for_blocks(pages, |space, b, mask| {
            let before = space.blocks[b];
            debug_assert_eq!(before.home & mask, mask, "taking pages that are not here");
            taken.zero &= before.zero & mask == mask;
            taken.resident &= before.resident & mask == mask;
            space.resident += (mask & !before.resident).count_ones() as usize;
            space.change(b, |block| {
                block.home &= !mask;
                block.resident |= mask;
            });
        });
        taken
    }

    /// Calls `f` for every block that the pages touch, with the mask of its pages.
    fn for_blocks(&mut self, pages: Range<usize>, mut f: impl FnMut(&mut Self, usize, u64)) {
        let mut at = pages.start;
        while at < pages.end {
            let (b, first) = (at / BLOCK_PAGES, at % BLOCK_PAGES);
            let n = (BLOCK_PAGES - first).min(pages.end - at);
            f(self, b, bits(first, n));
            at += n;
        }
    }

    /// Changes a block and what follows from it: the three sets and the number of pages out.
    fn change(&mut self, b: usize, f: impl FnOnce(&mut Block)) {
        let block = &mut self.blocks[b];
        let before = *block;
        f(block);
        let now = *block;
        self.out = self.out + before.home.count_ones() as usize - now.home.count_ones() as usize;
        let ready = now.ready() != 0;
        self.partial.set(b, ready && !now.is_whole());
        self.whole.set(b, ready && now.is_whole());
        self.cold.set(b, now.cold() != 0);
    }

    /// Checks everything that can be derived against what it is derived from.
    #[cfg(test)]
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
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::os::Linux;

    fn space(blocks: usize) -> Space {
        let system: Arc<dyn System> = Arc::new(Linux);
        Space::new(&system, blocks * BLOCK_PAGES).unwrap()
    }

    #[derive(Debug, Clone)]
    enum Op {
        Ready(usize),
        Dirty(usize),
        Cold(usize),
        Run(usize),
        Put { nth: usize, zero: bool },
        PutCold { nth: usize },
        Idle { blocks: usize, age: u64 },
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (1_usize..80).prop_map(Op::Ready),
            (1_usize..80).prop_map(Op::Dirty),
            (1_usize..200).prop_map(Op::Cold),
            (1_usize..200).prop_map(Op::Run),
            (any::<usize>(), any::<bool>()).prop_map(|(nth, zero)| Op::Put { nth, zero }),
            (any::<usize>(), any::<bool>()).prop_map(|(nth, zero)| Op::Put { nth, zero }),
            any::<usize>().prop_map(|nth| Op::PutCold { nth }),
            (0_u32..3, 0_u64..20).prop_map(|(e, age)| Op::Idle {
                blocks: 1 << e,
                age
            }),
        ]
    }

    proptest! {
        /// Against a model that knows of every page whether it is out, and whether it may be called zero.
        #[test]
        fn no_page_is_taken_twice_and_zero_is_never_wrong(ops in proptest::collection::vec(op(), 1..120)) {
            let mut space = space(16);
            let mut out: Vec<Range<usize>> = Vec::new();
            let mut is_out = BTreeSet::new();
            let mut zero: BTreeMap<usize, bool> = BTreeMap::new();
            let mut resident: BTreeSet<usize> = BTreeSet::new();
            for (now, op) in ops.into_iter().enumerate() {
                let now = now as u64;
                match op {
                    Op::Ready(n) => {
                        let mut got = Vec::new();
                        let taken = space.take_ready(n, |page, z| got.push((page, z)));
                        prop_assert_eq!(taken, got.len());
                        for (page, z) in got {
                            prop_assert!(is_out.insert(page));
                            prop_assert!(resident.contains(&page), "page {} is not ready", page);
                            prop_assert!(!z || zero[&page]);
                            out.push(page..page + 1);
                        }
                    }
                    Op::Dirty(n) => {
                        let mut got = Vec::new();
                        space.take_dirty(n, |page| got.push(page));
                        prop_assert!(got.len() <= n);
                        for page in got {
                            prop_assert!(is_out.insert(page));
                            prop_assert!(!zero[&page]);
                            out.push(page..page + 1);
                        }
                    }
                    Op::Cold(n) | Op::Run(n) => {
                        let taken = if matches!(op, Op::Cold(_)) { space.take_cold(n) } else { space.take_run(n, usize::MAX).ok() };
                        if let Some(taken) = taken {
                            prop_assert!(!taken.pages.is_empty() && taken.pages.len() <= n);
                            if matches!(op, Op::Run(_)) { prop_assert_eq!(taken.pages.len(), n); }
                            for page in taken.pages.clone() {
                                prop_assert!(is_out.insert(page));
                                prop_assert!(!taken.zero || zero.get(&page).copied().unwrap_or(true));
                                prop_assert!(!taken.resident || resident.contains(&page));
                                resident.insert(page);
                            }
                            out.push(taken.pages);
                        }
                    }
                    Op::Put { nth, zero: z } if !out.is_empty() => {
                        let pages = out.swap_remove(nth % out.len());
                        for page in pages.clone() {
                            is_out.remove(&page);
                            zero.insert(page, z);
                        }
                        space.put(pages, z, now);
                    }
                    Op::PutCold { nth } if !out.is_empty() => {
                        let pages = out.swap_remove(nth % out.len());
                        for page in pages.clone() {
                            is_out.remove(&page);
                            zero.insert(page, true);
                            resident.remove(&page);
                        }
                        space.put_cold(pages, true);
                    }
                    Op::Idle { blocks, age } => {
                        let mut from = 0;
                        while let (Some(pages), next) = space.take_idle(blocks, now.saturating_sub(age), from) {
                            prop_assert_eq!(pages.start % (blocks * BLOCK_PAGES), 0);
                            prop_assert_eq!(pages.len(), (blocks * BLOCK_PAGES).min(space.frontier - pages.start));
                            for page in pages.clone() {
                                prop_assert!(is_out.insert(page));
                                resident.insert(page);
                            }
                            out.push(pages);
                            from = next;
                        }
                    }
                    _ => {}
                }
                space.check();
                prop_assert_eq!(space.out(), is_out.len());
                prop_assert_eq!(space.resident(), resident.len());
            }
        }
    }

    #[test]
    fn used_blocks_are_filled_before_whole_ones() {
        let mut space = space(4);
        let all = space.take_cold(128).unwrap();
        assert_eq!(
            all,
            Taken {
                pages: 0..128,
                zero: true,
                resident: false
            }
        );
        space.put(0..64, false, 0);
        space.put(100..110, false, 0);
        let mut got = Vec::new();
        space.take_ready(12, |page, _| got.push(page));
        assert_eq!(got, (100..110).chain(0..2).collect::<Vec<_>>());
    }

    #[test]
    fn cold_pages_come_back_before_fresh_ones_and_across_blocks() {
        let mut space = space(8);
        space.take_cold(256).unwrap();
        space.put_cold(60..200, true);
        assert_eq!(space.take_cold(100).unwrap().pages, 60..160);
        assert_eq!(space.take_cold(100).unwrap().pages, 160..200);
        assert_eq!(space.take_cold(100).unwrap().pages, 256..356);
    }

    #[test]
    fn a_full_reservation_has_no_more() {
        let mut space = space(1);
        assert_eq!(space.take_cold(100).unwrap().pages, 0..64);
        assert_eq!(space.take_cold(1), None);
        assert_eq!(space.take_run(1, 1), Err(NoRun::Place));
        space.put(10..20, false, 0);
        assert_eq!(space.take_run(10, 0).unwrap().pages, 10..20);
    }

    #[test]
    fn long_runs_use_whole_neighbours() {
        let mut space = space(8);
        space.take_cold(512).unwrap();
        space.put(64..128, false, 0);
        space.put(192..384, true, 0);
        let run = space.take_run(130, 0).unwrap();
        assert_eq!(
            run,
            Taken {
                pages: 192..322,
                zero: true,
                resident: true
            }
        );
        assert_eq!(space.take_run(130, 130), Err(NoRun::Place));
    }

    #[test]
    fn a_run_without_room_changes_nothing() {
        let mut space = space(8);
        space.take_cold(128).unwrap();
        space.put_cold(0..64, true);
        space.put(64..128, false, 0);
        let before = (space.resident(), space.out());
        assert_eq!(space.take_run(128, 63), Err(NoRun::Room));
        assert_eq!(
            space.take_run(129, 128),
            Err(NoRun::Room),
            "from the frontier"
        );
        assert_eq!((space.resident(), space.out()), before);
        assert_eq!(space.take_run(128, 64).unwrap().pages, 0..128);
    }

    #[test]
    fn the_block_that_the_frontier_crosses_is_idle_too() {
        let mut space = space(8);
        space.take_cold(150).unwrap();
        space.put(0..150, false, 5);
        assert_eq!(space.take_idle(4, 4, 0), (None, 4), "too young");
        assert_eq!(space.take_idle(4, 5, 0), (Some(0..150), 4));
        space.put_cold(0..150, true);
        assert_eq!(space.take_idle(4, 5, 0).0, None, "nothing is backed");
        assert_eq!(space.take_cold(500).unwrap().pages, 0..150);
    }
}
