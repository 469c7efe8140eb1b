//! Linux 6.x: two lists, and shadows of what was evicted.

use super::super::capacity::capacity;
use super::super::lists::Lists;
use super::super::{
    Admission, Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow,
    Touch,
};
use super::SWAP_CLUSTER_MAX;
use super::laundry::rotate_written;
use larder_base::table::{grow, table};

/// Pages of 4 KiB in a GiB, as a power of two.
const PAGES_OF_A_GIB: u32 = 18;

/// The lists; the kernel has its dirty pages that reclaim has met elsewhere, see [`laundry`](super::laundry).
const ACTIVE: usize = 0;
const INACTIVE: usize = 1;
const LAUNDRY: usize = 2;

/// A page's bits.
const REFERENCED: u8 = 1;
const WORKINGSET: u8 = 2;

/// Admission: the refault makes it active, and it was in the working set.
const ACTIVATE: u64 = 1;
const RESTORE: u64 = 2;

/// Linux 6.x without generations. A block comes in at the head of the inactive list; its first use sets Referenced, a second one
/// makes it active (`folio_mark_accessed`). An eviction leaves the *nonresident age* of the moment in its shadow, a counter
/// that goes on with every eviction and activation. When the block comes back, the difference is how much longer the inactive
/// list would have had to be; if that is no more than the active list has, the block starts active (`workingset_refault`).
/// Blocks that are written whole refault without that: caching what will be overwritten is no reason to evict others.
///
/// Reclaim deactivates from the active tail while the inactive list is shorter than the active one (below 1 GiB; above, by the
/// square root of ten times its GiB), and once more when refaults have activated since; a Referenced bit saves no page there,
/// and stays set. Dirty pages at the inactive tail go out of the way until they are written.
///
/// Touches of one request count once: the kernel does not mark a page twice when one open file stays on it (`pos_same_folio`).
///
/// Deviations: a reclaim takes 32 pages; it is spread over the evictions that use them, and its scan of the active list is one
/// batch, not a share by priority.
///
/// Source: `mm/swap.c`, `mm/workingset.c`, `mm/filemap.c`, `mm/vmscan.c` of Linux 6.x.
/// 13 bytes a frame; a hit is one compare and one store, a promotion moves a node.
///
/// ```
/// use larder_policy::{TwoList, replay::Replay};
/// let mut cache = Replay::new(TwoList::new(100)?)?;
/// for round in 0..4 {
///     (0..60).for_each(|block| drop(cache.access(block, round)));
/// }
/// (1_000..1_200).for_each(|block| drop(cache.access(block, 9)));
/// // A scan does not flush what is active, but for one batch that was deactivated to keep half of all inactive.
/// assert!((32..60).all(|block| cache.access(block, 10)));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct TwoList {
    lists: Lists<3>,
    /// The request of the last marking use.
    last: Vec<u32>,
    capacity: usize,
    nonresident_age: u64,
    /// Pages that the reclaim under way still wants.
    wanted: usize,
    /// Refaults have activated since the last reclaim.
    refaulted: bool,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    promoted: u64,
    refaults: u64,
    activated: u64,
}

impl TwoList {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            lists: Lists::new(frames)?,
            last: table(frames, 0)?,
            nonresident_age: 0,
            wanted: 0,
            refaulted: false,
            counts: Counts::default(),
        })
    }

    /// Active pages, as the kernel counts them: those that wait for their write are among them.
    fn active_pages(&self) -> usize {
        self.lists.len(ACTIVE) + self.lists.len(LAUNDRY)
    }

    /// `inactive_is_low`.
    fn inactive_is_low(&self) -> bool {
        let (inactive, active) = (self.lists.len(INACTIVE), self.active_pages());
        let gib = (inactive + active) >> PAGES_OF_A_GIB;
        let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
        inactive * ratio < active
    }

    /// `shrink_active_list`: up to a batch from the tail.
    fn shrink_active(&mut self) {
        for _ in 0..SWAP_CLUSTER_MAX {
            let Some(page) = self.lists.oldest(ACTIVE) else {
                break;
            };
            let bits = self.lists.bits(page) | WORKINGSET;
            self.lists.move_to(page, INACTIVE, bits);
        }
    }

    /// `prepare_scan_control` and the scan of the active list.
    fn begin(&mut self) {
        self.wanted = SWAP_CLUSTER_MAX;
        if self.refaulted {
            self.refaulted = false;
            self.shrink_active();
        }
        while self.inactive_is_low() && self.lists.oldest(ACTIVE).is_some() {
            self.shrink_active();
        }
    }

    fn free_page<F: Frames>(&mut self, frames: &mut F) -> bool {
        rotate_written(&mut self.lists, LAUNDRY, INACTIVE, frames);
        if self.wanted == 0 {
            self.begin();
        }
        for _ in 0..self.lists.len(INACTIVE) {
            let Some(page) = self.lists.oldest(INACTIVE) else {
                break;
            };
            let bits = self.lists.bits(page);
            match frames.state(page) {
                FrameState::Clean => {
                    self.wanted -= 1;
                    self.let_go(frames, page);
                    return true;
                }
                FrameState::Dirty => {
                    self.lists.move_to(page, LAUNDRY, bits);
                    frames.write_back(page);
                }
                FrameState::Pinned => {
                    // folio_check_references
                    self.lists.move_to(page, INACTIVE, bits & !REFERENCED);
                }
            }
        }
        self.wanted = 0;
        self.last_resort(frames)
    }

    /// Both lists at the highest priority, then a write that is waited for.
    fn last_resort<F: Frames>(&mut self, frames: &mut F) -> bool {
        let lists = [INACTIVE, ACTIVE, LAUNDRY];
        let page = self.lists.clean_else_dirty(lists, frames);
        if let Some(page) = page {
            self.let_go(frames, page);
        }
        page.is_some()
    }

    /// `workingset_eviction`.
    fn let_go<F: Frames>(&mut self, frames: &mut F, page: Frame) {
        let workingset = self.lists.bits(page) & WORKINGSET != 0;
        let shadow = Shadow::new(self.nonresident_age << 1 | u64::from(workingset));
        self.nonresident_age += 1;
        self.remove(page);
        frames.evicted(page, Some(shadow));
    }

    /// `folio_mark_accessed`.
    fn mark_accessed(&mut self, page: Frame) {
        let bits = self.lists.bits(page);
        if bits & REFERENCED == 0 {
            self.lists.set_bits(page, bits | REFERENCED);
        } else if self.lists.list_of(page) == INACTIVE {
            self.lists.move_to(page, ACTIVE, bits & WORKINGSET);
            self.nonresident_age += 1; // workingset_activation
            self.counts.promoted += 1;
        }
    }
}

impl Policy for TwoList {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.lists.total()
    }

    /// `workingset_refault`.
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let Some(shadow) = shadow else {
            return Admission::default();
        };
        if reason == Reason::Write {
            return Admission::default(); // filemap_add_folio, __GFP_WRITE
        }
        self.counts.refaults += 1;
        let distance = self.nonresident_age.wrapping_sub(shadow.get() >> 1);
        if distance > self.active_pages() as u64 {
            return Admission::default();
        }
        self.nonresident_age += 1;
        self.refaulted = true;
        self.counts.activated += 1;
        Admission(ACTIVATE | if shadow.get() & 1 != 0 { RESTORE } else { 0 })
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let Admission(refault) = arrival.admission;
        let activate = refault & ACTIVATE != 0;
        let restore = refault & RESTORE != 0;
        let list = if activate { ACTIVE } else { INACTIVE };
        self.lists
            .push(frame, list, if restore { WORKINGSET } else { 0 });
        if arrival.reason == Reason::Readahead {
            self.last[frame as usize] = arrival.request.wrapping_sub(1);
        } else {
            self.last[frame as usize] = arrival.request;
            self.mark_accessed(frame);
        }
    }

    #[inline]
    fn touch(&mut self, frame: Frame, touch: Touch) {
        if self.last[frame as usize] != touch.request {
            self.last[frame as usize] = touch.request;
            self.mark_accessed(frame);
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
        grow(&mut self.last, frames, 0)?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.lists
            .check("linux-two-list", |_, bits| bits <= REFERENCED | WORKINGSET)
    }

    fn bytes(&self) -> usize {
        self.lists.bytes() + self.last.capacity() * size_of::<u32>()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("active", self.lists.len(ACTIVE) as f64),
            ("inactive", self.lists.len(INACTIVE) as f64),
            ("waiting for a write", self.lists.len(LAUNDRY) as f64),
            ("promoted at the second use", self.counts.promoted as f64),
            ("refaults", self.counts.refaults as f64),
            ("refaults that activated", self.counts.activated as f64),
        ]
    }
}
