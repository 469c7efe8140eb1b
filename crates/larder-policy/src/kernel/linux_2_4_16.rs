//! Linux 2.4.10 to 2.4.16: A. Arcangeli's memory management, with the promotion at the second use that Linux still has.

use super::super::capacity::capacity;
use super::super::lists::Lists;
use super::super::{Arrival, Frame, FrameState, Frames, Policy, PolicyError, Reason, Touch};
use super::SWAP_CLUSTER_MAX;

/// Reclaim begins with this priority: a sixth of the inactive list (`DEF_PRIORITY`).
const DEF_PRIORITY: usize = 6;

/// The lists.
const ACTIVE: usize = 0;
const INACTIVE: usize = 1;

/// A page's bit.
const REFERENCED: u8 = 1;

/// Linux 2.4.16. Ages and the third list are gone. A block comes in at the head of the inactive list; the call that brought it
/// sets its Referenced bit; a use of a referenced inactive block makes it active and clears the bit (`mark_page_accessed`).
/// Reclaim wants 32 pages at a time: it first moves pages from the active tail, unless referenced, so that the active list is
/// two thirds of all, each with its Referenced bit *set*, so that one use brings it back; then it takes clean pages from the
/// inactive tail, 1/6 of the list, 1/5 of the list and so on until it has them. It looks at no bit there.
///
/// Deviations: a written block counts as used once (`generic_file_write` sets Referenced and never activates; a touch here
/// does not say whether it writes). A reclaim of 32 pages is spread over the evictions that use them.
///
/// Source: `mm/vmscan.c` (shrink_caches, refill_inactive, shrink_cache), `mm/filemap.c` (mark_page_accessed) of 2.4.16.
/// 9 bytes a frame; a hit is one store, a promotion moves a node.
///
/// ```
/// use larder_policy::{Linux2416, replay::Replay};
/// let mut cache = Replay::new(Linux2416::new(100)?)?;
/// for round in 0..2 {
///     (0..10).for_each(|block| drop(cache.access(block, round)));
/// }
/// (1_000..1_100).for_each(|block| drop(cache.access(block, 2))); // once
/// assert!((0..10).all(|block| cache.access(block, 3)));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Linux2416 {
    lists: Lists<2>,
    capacity: usize,
    /// What is left of the reclaim that is under way: pages wanted, priority, pages to scan at it.
    wanted: usize,
    priority: usize,
    scans: usize,
    promotions: u64,
}

impl Linux2416 {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            lists: Lists::new(frames)?,
            wanted: 0,
            priority: DEF_PRIORITY,
            scans: 0,
            promotions: 0,
        })
    }

    /// `refill_inactive` and the head of `shrink_cache`, as `shrink_caches` calls them.
    fn begin(&mut self) {
        let ratio = self.wanted * self.lists.len(ACTIVE) / ((self.lists.len(INACTIVE) + 1) * 2);
        self.refill_inactive(ratio);
        self.scans = self.lists.len(INACTIVE) / self.priority;
    }

    fn refill_inactive(&mut self, mut pages: usize) {
        let mut entry = self.lists.oldest(ACTIVE);
        while pages > 0
            && let Some(page) = entry
        {
            entry = self.lists.newer(page); // none at the head, even if the page moves there again
            if self.lists.bits(page) == REFERENCED {
                self.lists.move_to(page, ACTIVE, 0);
            } else {
                pages -= 1;
                self.lists.move_to(page, INACTIVE, REFERENCED);
            }
        }
    }

    /// `shrink_cache`, up to the next page that it frees.
    fn shrink_cache<F: Frames>(&mut self, frames: &mut F) -> Option<Frame> {
        while self.scans > 0 {
            self.scans -= 1;
            let page = self.lists.oldest(INACTIVE)?;
            match frames.state(page) {
                FrameState::Clean => return Some(page),
                FrameState::Dirty => frames.write_back(page),
                FrameState::Pinned => {}
            }
            self.lists.renew(page, INACTIVE);
        }
        None
    }

    /// `try_to_free_pages` for the next page.
    fn free_page<F: Frames>(&mut self, frames: &mut F) -> bool {
        let mut fresh = false;
        loop {
            if self.wanted == 0 {
                if fresh {
                    return self.last_resort(frames); // a whole reclaim in this call, and nothing came
                }
                fresh = true;
                (self.wanted, self.priority) = (SWAP_CLUSTER_MAX, DEF_PRIORITY);
                self.begin();
            }
            if let Some(page) = self.shrink_cache(frames) {
                self.wanted -= 1;
                self.let_go(frames, page);
                return true;
            }
            self.priority -= 1;
            if self.priority == 0 {
                self.wanted = 0;
            } else {
                self.begin();
            }
        }
    }

    fn let_go<F: Frames>(&mut self, frames: &mut F, page: Frame) {
        self.remove(page);
        frames.evicted(page, None);
    }

    fn last_resort<F: Frames>(&mut self, frames: &mut F) -> bool {
        let page = self.lists.clean_else_dirty([INACTIVE, ACTIVE], frames);
        if let Some(page) = page {
            self.let_go(frames, page);
        }
        page.is_some()
    }
}

impl Policy for Linux2416 {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.lists.total()
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let bits = match arrival.reason {
            Reason::Readahead => 0,
            Reason::Demand | Reason::Write => REFERENCED,
        };
        self.lists.push(frame, INACTIVE, bits);
    }

    /// `mark_page_accessed`.
    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        if self.lists.bits(frame) == 0 {
            self.lists.set_bits(frame, REFERENCED);
        } else if self.lists.list_of(frame) == INACTIVE {
            self.lists.move_to(frame, ACTIVE, 0);
            self.promotions += 1;
        }
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        (0..wanted).take_while(|_| self.free_page(frames)).count()
    }

    fn remove(&mut self, frame: Frame) {
        self.lists.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.lists.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.lists.unpark(frame);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.lists.grow(capacity(frames)?)?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.lists
            .check("linux-2.4.16", |_, bits| bits <= REFERENCED)
    }

    fn bytes(&self) -> usize {
        self.lists.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("active", self.lists.len(ACTIVE) as f64),
            ("inactive", self.lists.len(INACTIVE) as f64),
            ("promoted at the second use", self.promotions as f64),
        ]
    }
}
