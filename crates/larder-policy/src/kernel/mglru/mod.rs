//! Linux 6.14 to 6.18 with generations (CONFIG_LRU_GEN): the rules for file pages used by read and write.

mod controller;
mod generations;

use super::super::capacity::capacity;
use super::super::{
    Admission, Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow,
    Touch,
};
use super::SWAP_CLUSTER_MAX;
use controller::{Controller, tier};
use generations::{
    FULL, Generations, MAX_NR_GENS, MIN_NR_GENS, REFERENCED, REFS, WORKINGSET, refs,
};
use larder_base::table::{grow, table};

/// A pass of reclaim covers at first so small a share of the pages, as a power of two (`DEF_PRIORITY`).
const DEF_PRIORITY: u32 = 12;
/// Pages that one pass isolates and scans, at most (`MIN_LRU_BATCH`, `MAX_LRU_BATCH`).
const MAX_LRU_BATCH: usize = 64 * 64;

/// Admission: as in a shadow, and that the shadow was recent.
const RECENT: u64 = 1 << 3;

/// Linux's multi-generational LRU, Yu Zhao's, for page cache that is read and written, not mapped. A block comes into the
/// *oldest* generation (second oldest if it was in the working set): file data starts near its eviction, as with use-once. Uses do
/// not move it; they count: Referenced, up to four of them, then Workingset. At the exit, blocks of a *tier* (0 to 1 use, 2, 3
/// to 4, Workingset) that refaults more than tier 0, and those with every bit set, go to the next generation instead, their
/// count cleared; others are evicted, and their shadow says in which generation and how often used. A controller compares,
/// for each tier, refaults with evictions and protections, gains 2 to 3, halved whenever the oldest generation is done.
/// A new generation begins when two are left, or three at a priority above the first.
///
/// A refault within four generations restores Workingset or the count; the kernel's next use then clears that count, since
/// Referenced was not set. This is as in the source.
///
/// Touches of one request count once, see [`TwoList`](super::TwoList). Dirty blocks at the exit are kept aside until written,
/// then are the next to leave; the kernel has them in the next generation meanwhile. Blocks in use go to the second youngest
/// generation (PG_active). A reclaim of 32 pages is spread over the evictions that use them.
///
/// Source: `mm/vmscan.c` (sort_folio, scan_folios, get_tier_idx, inc_min_seq, inc_max_seq), `mm/swap.c` (lru_gen_inc_refs),
/// `mm/workingset.c` (lru_gen_eviction, lru_gen_refault), `include/linux/mm_inline.h` (lru_gen_folio_seq), after "rework
/// workingset protection" (Yu Zhao, December 2024). 13 bytes a frame; a hit is one compare and one or two stores.
///
/// ```
/// use larder_policy::{Mglru, replay::Replay};
/// let mut cache = Replay::new(Mglru::new(100)?)?;
/// for at in 0..10_000 {
///     cache.access(at % 120, at); // a loop that does not fit
/// }
/// println!("{} hits; {:?}", cache.hits(), larder_policy::Policy::explain(cache.rule()));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Mglru {
    pages: Generations,
    controller: Controller,
    /// The request of the last counted use.
    last: Vec<u32>,
    capacity: usize,
    /// Pages that the reclaim under way still wants, and its priority.
    wanted: usize,
    priority: u32,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    protected: u64,
    refaults: u64,
    recent: u64,
}

impl Mglru {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            pages: Generations::new(frames)?,
            last: table(frames, 0)?,
            controller: Controller::default(),
            wanted: 0,
            priority: DEF_PRIORITY,
            counts: Counts::default(),
        })
    }

    /// `set_initial_priority`: small memories begin above the first priority.
    fn initial_priority(pages: usize) -> u32 {
        let fls = |value: usize| usize::BITS - value.leading_zeros();
        let priority = fls(pages).saturating_sub(1 + fls(SWAP_CLUSTER_MAX - 1));
        priority.clamp(DEF_PRIORITY / 2, DEF_PRIORITY)
    }

    /// `should_run_aging` and what `get_nr_to_scan` makes of it.
    fn age(&mut self) {
        let oldest = self.pages.min_seq + MIN_NR_GENS;
        let forced = oldest > self.pages.max_seq;
        let better = oldest == self.pages.max_seq && self.priority != DEF_PRIORITY;
        if forced || better {
            self.inc_max_seq();
        }
    }

    /// `inc_max_seq`: a new youngest generation; the oldest makes room if there are four.
    fn inc_max_seq(&mut self) {
        if self.pages.max_seq - self.pages.min_seq + 1 == MAX_NR_GENS {
            while let Some(page) = self.pages.oldest(self.pages.min_seq) {
                self.protect(page, false);
            }
            self.min_seq_done();
        }
        self.pages.max_seq += 1;
    }

    /// `folio_inc_gen` with the count of `inc_min_seq` or `sort_folio`: to the next generation's `head`, or its tail.
    fn protect(&mut self, page: Frame, head: bool) {
        let flags = self.pages.flags(page);
        if !(refs(flags) == FULL && flags & WORKINGSET != 0) {
            self.controller.protected(tier(refs(flags), flags));
            self.counts.protected += 1;
        }
        self.pages.next_generation(page, head);
    }

    fn min_seq_done(&mut self) {
        self.controller.carry_over();
        self.pages.min_seq += 1;
    }

    /// `try_to_inc_min_seq`.
    fn inc_min_seq(&mut self) {
        let before = self.pages.min_seq;
        while self.pages.min_seq + MIN_NR_GENS <= self.pages.max_seq
            && self.pages.oldest(self.pages.min_seq).is_none()
        {
            self.pages.min_seq += 1;
        }
        if self.pages.min_seq != before {
            self.controller.carry_over();
        }
    }

    /// `scan_folios`, up to the next page that is to leave: `budget` is how many it may look at.
    fn scan<F: Frames>(&mut self, frames: &mut F, budget: &mut usize) -> Option<Frame> {
        if self.pages.max_seq - self.pages.min_seq + 1 == MIN_NR_GENS {
            return None;
        }
        let kept = self.controller.tier_index();
        while *budget > 0 {
            let page = self.pages.oldest(self.pages.min_seq)?;
            *budget -= 1;
            let flags = self.pages.flags(page);
            if tier(refs(flags), flags) > kept || (refs(flags) == FULL && flags & WORKINGSET != 0) {
                self.protect(page, true);
                continue;
            }
            match frames.state(page) {
                FrameState::Clean => return Some(page),
                FrameState::Dirty => self.pages.launder(frames, page),
                FrameState::Pinned => self.pages.reject(page),
            }
        }
        None
    }

    /// `try_to_shrink_lruvec` and `evict_folios` for the next page.
    fn free_page<F: Frames>(&mut self, frames: &mut F) -> bool {
        self.pages.rotate_written(frames);
        if self.wanted == 0 {
            self.wanted = SWAP_CLUSTER_MAX;
            self.priority = Self::initial_priority(self.pages.len());
        }
        loop {
            self.age();
            let mut budget = (self.pages.len() >> self.priority).clamp(1, MAX_LRU_BATCH);
            while budget > 0 {
                let found = self.scan(frames, &mut budget);
                if let Some(page) = found {
                    self.wanted -= 1;
                    self.let_go(frames, page);
                }
                self.inc_min_seq();
                if found.is_some() {
                    return true;
                }
                if self.pages.max_seq < self.pages.min_seq + MIN_NR_GENS {
                    break; // only the youngest two are left: age first
                }
            }
            if self.priority == 0 {
                break;
            }
            self.priority -= 1;
        }
        self.wanted = 0;
        let page = self.pages.any(frames);
        if let Some(page) = page {
            self.let_go(frames, page);
        }
        page.is_some()
    }

    /// `lru_gen_eviction`.
    fn let_go<F: Frames>(&mut self, frames: &mut F, page: Frame) {
        let flags = self.pages.flags(page);
        let refs = refs(flags);
        self.controller.evicted(tier(refs, flags));
        let workingset = u64::from(flags & WORKINGSET != 0);
        let token = self.pages.min_seq << 2 | u64::from(refs.max(1) - 1);
        self.pages.remove(page);
        frames.evicted(page, Some(Shadow::new(token << 1 | workingset)));
    }
}

impl Policy for Mglru {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.pages.len()
    }

    /// `lru_gen_refault`.
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let Some(shadow) = shadow else {
            return Admission::default();
        };
        if reason == Reason::Write {
            return Admission::default(); // filemap_add_folio, __GFP_WRITE
        }
        self.counts.refaults += 1;
        let token = shadow.get() >> 1;
        if self.pages.max_seq.abs_diff(token >> 2) >= MAX_NR_GENS {
            return Admission::default();
        }
        self.counts.recent += 1;
        let workingset = if shadow.get() & 1 != 0 { WORKINGSET } else { 0 };
        let refs = (token & 3) as u8 + 1;
        self.controller.refaulted(tier(refs, workingset));
        Admission(RECENT | (shadow.get() & 7))
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let Admission(refault) = arrival.admission;
        let flags = match refault {
            0 => 0,
            refault if refault & 1 != 0 => WORKINGSET,
            refault => (refault >> 1) as u8 & REFS,
        };
        self.pages.insert(frame, flags);
        if arrival.reason == Reason::Readahead {
            self.last[frame as usize] = arrival.request.wrapping_sub(1);
        } else {
            self.last[frame as usize] = arrival.request;
            self.pages.inc_refs(frame);
        }
    }

    #[inline]
    fn touch(&mut self, frame: Frame, touch: Touch) {
        if self.last[frame as usize] != touch.request {
            self.last[frame as usize] = touch.request;
            self.pages.inc_refs(frame);
        }
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        (0..wanted).take_while(|_| self.free_page(frames)).count()
    }

    fn remove(&mut self, frame: Frame) {
        self.pages.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.pages.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.pages.unpark(frame);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.pages.grow(capacity(frames)?)?;
        grow(&mut self.last, frames, 0)?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.pages.check()
    }

    fn bytes(&self) -> usize {
        self.pages.bytes() + self.last.capacity() * size_of::<u32>()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            (
                "generations",
                (self.pages.max_seq - self.pages.min_seq + 1) as f64,
            ),
            ("youngest generation", self.pages.max_seq as f64),
            (
                "tiers evicted without a look",
                self.controller.tier_index() as f64 + 1.0,
            ),
            ("protected", self.counts.protected as f64),
            ("refaults", self.counts.refaults as f64),
            (
                "refaults within four generations",
                self.counts.recent as f64,
            ),
        ]
    }
}

const _: () = assert!(REFERENCED & REFS == 0);
