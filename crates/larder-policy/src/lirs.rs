//! LIRS: blocks are ranked by the distance between their last two uses, not by the time since the last one.

use super::capacity::capacity;
use super::lists::Lists;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};
use larder_base::table::{grow, table};

/// The queue of blocks with a large distance (HIR) has a hundredth of the cache, the rest has a small one (LIR).
const HIR_SHARE: usize = 100;

/// LIRS with its stack unbounded. The paper's stack S holds, by recency, all blocks used since the LIR block that was used longest
/// ago; so a block is in S exactly if its last use is younger than that one's, and no stack is needed: only the LIR blocks by
/// recency, the queue of the HIR blocks, and each block's last use, which shadows carry for those that left.
///
/// 17 bytes a frame, none for ghosts. A hit of an LIR block is a move in a list and a store.
///
/// ```
/// use larder_policy::{Lirs, replay::Replay};
/// let mut cache = Replay::new(Lirs::new(90)?)?;
/// for at in 0..1000 {
///     cache.access(at % 100, at); // a loop that does not fit
/// }
/// assert!(cache.hits() > 700);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Lirs {
    /// The LIR blocks by recency, the HIR blocks by arrival.
    lists: Lists<2>,
    /// By frame: the last use; of a block read ahead and not used, that of its last life, or 0.
    last: Vec<u64>,
    now: u64,
    /// Most LIR blocks.
    lir_share: usize,
    capacity: usize,
}

const HIR: usize = 0;
const LIR: usize = 1;

impl Lirs {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            lists: Lists::new(frames)?,
            last: table(frames, 0)?,
            now: 0,
            lir_share: Self::share_of(frames),
        })
    }

    /// Is a use at this time in the stack?
    #[inline]
    fn in_stack(&self, last: u64) -> bool {
        let bottom = self.lists.oldest(LIR);
        bottom.is_some_and(|bottom| last > self.last[bottom as usize])
    }

    /// A use of a block that is no LIR block and whose last use was at `last`: the list that it belongs to.
    #[inline]
    fn used(&mut self, frame: Frame, last: u64) -> usize {
        self.now += 1;
        let near = self.in_stack(last) || self.lists.len(LIR) < self.lir_share;
        self.last[frame as usize] = self.now;
        if near { LIR } else { HIR }
    }

    /// LIR blocks above their share become HIR.
    #[inline]
    fn demote(&mut self) {
        while self.lists.len(LIR) > self.lir_share
            && let Some(bottom) = self.lists.oldest(LIR)
        {
            self.lists.move_to(bottom, HIR, 0);
        }
    }

    fn share_of(capacity: usize) -> usize {
        capacity - (capacity / HIR_SHARE).max(1)
    }
}

impl Policy for Lirs {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.lists.total()
    }

    /// The last use in its former life.
    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, _: Reason) -> Admission {
        Admission(shadow.map_or(0, Shadow::get))
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let last = arrival.admission.0;
        if arrival.reason == Reason::Readahead {
            self.last[frame as usize] = last;
            self.lists.push(frame, HIR, 0);
        } else {
            let list = self.used(frame, last);
            self.lists.push(frame, list, 0);
            self.demote();
        }
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        if self.lists.list_of(frame) == LIR {
            self.now += 1;
            self.last[frame as usize] = self.now;
            self.lists.renew(frame, LIR);
        } else {
            let list = self.used(frame, self.last[frame as usize]);
            self.lists.move_to(frame, list, 0);
            self.demote();
        }
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let Some(frame) = self.lists.unpinned_of(HIR, LIR, frames) else {
                return gone;
            };
            self.lists.remove(frame);
            let last = self.last[frame as usize];
            frames.evicted(frame, self.in_stack(last).then(|| Shadow::new(last)));
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        self.lists.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.lists.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.lists.unpark(frame);
        if self.lists.list_of(frame) == LIR {
            // It was in use until now, and the LIR blocks are in the order of their last uses.
            self.now += 1;
            self.last[frame as usize] = self.now;
            self.demote();
        }
    }

    fn invalidate(&mut self, frame: Frame) -> Option<Shadow> {
        let last = self.last[frame as usize];
        let near = self.in_stack(last) || self.lists.list_of(frame) == LIR;
        self.lists.remove(frame);
        near.then(|| Shadow::new(last))
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.lists.grow(capacity(frames)?)?;
        grow(&mut self.last, frames, 0)?;
        self.capacity = frames;
        self.lir_share = Self::share_of(frames);
        self.demote();
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.lists.check("lirs", |_, bits| bits == 0)?;
        let last = self.lists.iter(LIR).map(|frame| self.last[frame as usize]);
        if !last.is_sorted_by(|one, next| one < next) {
            return Err("lirs: the LIR blocks are out of order".to_owned());
        }
        if self.lists.len(LIR) > self.lir_share && self.lists.oldest(LIR).is_some() {
            return Err(format!("lirs: {} LIR blocks", self.lists.len(LIR)));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.lists.bytes() + self.last.capacity() * size_of::<u64>()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("lir", self.lists.len(LIR) as f64),
            ("hir", self.lists.len(HIR) as f64),
        ]
    }
}
