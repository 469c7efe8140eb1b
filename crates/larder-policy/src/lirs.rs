//! LIRS: blocks are ranked by the distance between their last two uses, not by the time since the last one.

use super::capacity::capacity;
use super::frames::oldest_loose;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};
use larder_base::list::{Links, List, NONE};
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
    links: Links,
    /// By frame: the last use; of a block read ahead and not used, that of its last life, or 0.
    last: Vec<u64>,
    states: Vec<u8>,
    /// By recency.
    lir: List,
    /// By arrival.
    hir: List,
    now: u64,
    /// Most LIR blocks.
    lir_share: usize,
    capacity: usize,
}

const HIR: u8 = 0;
const LIR: u8 = 1;

impl Lirs {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            links: Links::new(frames)?,
            last: table(frames, 0)?,
            states: table(frames, HIR)?,
            lir: List::new(),
            hir: List::new(),
            now: 0,
            lir_share: Self::share_of(frames),
        })
    }

    /// Is a use at this time in the stack?
    #[inline]
    fn in_stack(&self, last: u64) -> bool {
        match self.lir.oldest() {
            NONE => false,
            bottom => last > self.last[bottom as usize],
        }
    }

    #[inline]
    fn unlink(&mut self, frame: Frame) {
        match self.states[frame as usize] {
            LIR => self.lir.unlink(&mut self.links, frame),
            _ => self.hir.unlink(&mut self.links, frame),
        }
    }

    /// A use of a block that is in no list, whose last use was at `last`.
    #[inline]
    fn place(&mut self, frame: Frame, last: u64) {
        self.now += 1;
        let near = self.in_stack(last) || self.lir.len() < self.lir_share;
        self.last[frame as usize] = self.now;
        if near {
            self.states[frame as usize] = LIR;
            self.lir.push_newest(&mut self.links, frame);
            self.demote();
        } else {
            self.states[frame as usize] = HIR;
            self.hir.push_newest(&mut self.links, frame);
        }
    }

    /// LIR blocks above their share become HIR.
    #[inline]
    fn demote(&mut self) {
        while self.lir.len() > self.lir_share {
            let bottom = self.lir.oldest();
            self.lir.unlink(&mut self.links, bottom);
            self.states[bottom as usize] = HIR;
            self.hir.push_newest(&mut self.links, bottom);
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
        self.lir.len() + self.hir.len()
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
            self.states[frame as usize] = HIR;
            self.hir.push_newest(&mut self.links, frame);
        } else {
            self.place(frame, last);
        }
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        if self.states[frame as usize] == LIR {
            self.now += 1;
            self.last[frame as usize] = self.now;
            self.lir.renew(&mut self.links, frame);
        } else {
            self.hir.unlink(&mut self.links, frame);
            self.place(frame, self.last[frame as usize]);
        }
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let mut frame = oldest_loose(&self.hir, &self.links, frames);
            if frame == NONE {
                frame = oldest_loose(&self.lir, &self.links, frames);
            }
            if frame == NONE {
                return gone;
            }
            self.unlink(frame);
            let last = self.last[frame as usize];
            frames.evicted(frame, self.in_stack(last).then(|| Shadow::new(last)));
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        self.unlink(frame);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(capacity(frames)?)?;
        grow(&mut self.last, frames, 0)?;
        grow(&mut self.states, frames, HIR)?;
        self.capacity = frames;
        self.lir_share = Self::share_of(frames);
        self.demote();
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.lir.check(&self.links, "lir")?;
        self.hir.check(&self.links, "hir")?;
        let state = |frame: u32| self.states[frame as usize];
        if self.hir.iter(&self.links).any(|frame| state(frame) != HIR) {
            return Err("lirs: an LIR block is in the queue".to_owned());
        }
        let mut before = 0;
        for frame in self.lir.iter(&self.links) {
            if state(frame) != LIR || self.last[frame as usize] <= before {
                return Err(format!(
                    "lirs: frame {frame} is no LIR block or out of order"
                ));
            }
            before = self.last[frame as usize];
        }
        if self.lir.len() > self.lir_share {
            return Err(format!("lirs: {} LIR blocks", self.lir.len()));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.last.capacity() * size_of::<u64>() + self.states.capacity()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("lir", self.lir.len() as f64),
            ("hir", self.hir.len() as f64),
        ]
    }
}
