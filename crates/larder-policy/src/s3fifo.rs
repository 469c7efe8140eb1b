//! S3-FIFO and Clock2Q+: a small FIFO for new blocks, a main FIFO with second chances, and ghosts.

use super::capacity::capacity;
use super::ghosts::Ghosts;
use super::{
    Admission, Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow,
    Touch,
};
use larder_base::list::{Linked, Links, List, NONE};
use larder_base::table::{grow, table};

/// The small FIFO is a tenth of the cache.
const SMALL_SHARE: usize = 10;

/// The uses that count, in the low bits of a frame's byte.
const COUNT: u8 = 3;
/// It is in the main FIFO.
const MAIN: u8 = 4;
/// It was read ahead and is not used; it is in the small FIFO.
const UNUSED: u8 = 8;
/// The same, and it had a ghost.
const UNUSED_BACK: u8 = 16;

/// Three queues: uses are counted up to `MOST`; a block of the small FIFO with `NEEDED` of them goes on to the main FIFO, where
/// each second chance costs one. The ghosts are those of the last departures from the small FIFO, as many as the main FIFO has
/// frames. With `WINDOW`, uses do not count in the newer half of the small FIFO.
///
/// 9 bytes a frame, 13 with a window, none for ghosts. A hit is a load, a comparison and at most a store.
///
/// ```
/// use larder_policy::{ThreeQueues, replay::Replay};
/// let mut cache = Replay::new(ThreeQueues::<3, 2, false>::new(100)?)?; // S3-FIFO with two bits
/// for at in 0..3000 {
///     cache.access(if at % 3 == 0 { 1000 + at } else { at / 6 % 40 }, at);
/// }
/// assert!((0..40).all(|block| cache.holds(block))); // what comes once does not drive them out
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct ThreeQueues<const MOST: u8, const NEEDED: u8, const WINDOW: bool> {
    links: Links,
    states: Vec<u8>,
    /// With a window: how many had come into the small FIFO when this one did.
    since: Vec<u32>,
    came: u32,
    small: List,
    main: List,
    ghosts: Ghosts<1>,
    ghost_share: usize,
    small_share: usize,
    window: u32,
    capacity: usize,
}

/// S3-FIFO as published: two bits, and two uses to leave the small FIFO for the main one.
///
/// ```
/// use larder_policy::{S3Fifo, replay::Replay};
/// let mut cache = Replay::new(S3Fifo::new(10)?)?;
/// for block in [1, 1, 1, 2] {
///     cache.access(block, 0);
/// }
/// assert!((10..30).all(|block| !cache.access(block, 0)));
/// assert!(cache.access(1, 0) && !cache.access(2, 0));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
pub type S3Fifo = ThreeQueues<3, 2, false>;

/// S3-FIFO with one bit, which its author found better for blocks: one use is enough.
///
/// ```
/// use larder_policy::{S3FifoOneBit, replay::Replay};
/// let mut cache = Replay::new(S3FifoOneBit::new(10)?)?;
/// for block in [1, 1, 2] {
///     cache.access(block, 0);
/// }
/// assert!((10..30).all(|block| !cache.access(block, 0)));
/// assert!(cache.access(1, 0) && !cache.access(2, 0));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
pub type S3FifoOneBit = ThreeQueues<1, 1, false>;

/// Clock2Q+: one bit, and a correlation window: uses soon after the arrival belong to it and do not count.
///
/// ```
/// use larder_policy::{Clock2QPlus, replay::Replay};
/// let mut cache = Replay::new(Clock2QPlus::new(40)?)?; // the small FIFO has 4, the window 2
/// for block in [1, 1, 2, 3, 2, 4, 2] {
///     cache.access(block, 0); // 1 was used at once again, 2 later too
/// }
/// assert!((10..100).all(|block| !cache.access(block, 0)));
/// assert!(!cache.access(1, 0) && cache.access(2, 0));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
pub type Clock2QPlus = ThreeQueues<1, 1, true>;

impl<const MOST: u8, const NEEDED: u8, const WINDOW: bool> ThreeQueues<MOST, NEEDED, WINDOW> {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        let mut rule = Self {
            capacity: capacity(frames)?,
            links: Links::new(frames)?,
            states: table(frames, 0)?,
            since: table(if WINDOW { frames } else { 0 }, 0)?,
            came: 0,
            small: List::new(),
            main: List::new(),
            ghosts: Ghosts::new(frames)?,
            ghost_share: 0,
            small_share: 0,
            window: 0,
        };
        rule.share(frames);
        Ok(rule)
    }

    fn share(&mut self, frames: usize) {
        self.capacity = frames;
        self.small_share = (frames / SMALL_SHARE).max(1);
        self.window = (self.small_share / 2) as u32;
        self.ghost_share = (frames - self.small_share).max(1);
    }

    #[inline]
    fn place(&mut self, frame: Frame, state: u8) {
        self.states[frame as usize] = state;
        if state & MAIN != 0 {
            self.main.push_newest(&mut self.links, frame);
        } else {
            if WINDOW {
                self.came = self.came.wrapping_add(1);
                self.since[frame as usize] = self.came;
            }
            self.small.push_newest(&mut self.links, frame);
        }
    }

    #[inline]
    fn correlated(&self, frame: Frame, state: u8) -> bool {
        WINDOW
            && state & MAIN == 0
            && self.came.wrapping_sub(self.since[frame as usize]) < self.window
    }

    /// One victim of the small FIFO, after those that have earned it went on.
    #[inline]
    fn evict_small<F: Frames>(&mut self, frames: &mut F) -> bool {
        let mut at = self.small.oldest();
        while at != NONE {
            let next = self.links.newer(at);
            if frames.state(at) != FrameState::Pinned {
                self.small.unlink(&mut self.links, at);
                if self.states[at as usize] & COUNT < NEEDED {
                    self.ghosts.keep(0, self.ghost_share - 1);
                    frames.evicted(at, Some(self.ghosts.add(0)));
                    return true;
                }
                self.place(at, MAIN);
            }
            at = next;
        }
        false
    }

    /// One victim of the main FIFO; those with uses left go round.
    #[inline]
    fn evict_main<F: Frames>(&mut self, frames: &mut F) -> bool {
        let mut at = self.main.oldest();
        while at != NONE {
            let next = self.links.newer(at);
            if frames.state(at) != FrameState::Pinned {
                let state = self.states[at as usize];
                self.main.unlink(&mut self.links, at);
                if state & COUNT == 0 {
                    frames.evicted(at, None);
                    return true;
                }
                self.place(at, state - 1);
                at = if next == NONE { at } else { next };
                continue;
            }
            at = next;
        }
        false
    }
}

impl<const MOST: u8, const NEEDED: u8, const WINDOW: bool> Policy
    for ThreeQueues<MOST, NEEDED, WINDOW>
{
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }

    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, _: Reason) -> Admission {
        Admission(u64::from(self.ghosts.take(shadow).is_some()))
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let back = arrival.admission.0 != 0;
        let state = match (arrival.reason, back) {
            (Reason::Readahead, false) => UNUSED,
            (Reason::Readahead, true) => UNUSED_BACK,
            (_, false) => 0,
            (_, true) => MAIN,
        };
        self.place(frame, state);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        let state = self.states[frame as usize];
        if state >= UNUSED {
            if state == UNUSED {
                self.states[frame as usize] = 0;
            } else {
                self.small.unlink(&mut self.links, frame);
                self.place(frame, MAIN);
            }
        } else if state & COUNT < MOST && !self.correlated(frame, state) {
            self.states[frame as usize] = state + 1;
        }
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let left = if self.small.len() >= self.small_share {
                self.evict_small(frames) || self.evict_main(frames)
            } else {
                self.evict_main(frames) || self.evict_small(frames) || self.evict_main(frames)
            };
            if !left {
                return gone;
            }
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        if self.states[frame as usize] & MAIN != 0 {
            self.main.unlink(&mut self.links, frame);
        } else {
            self.small.unlink(&mut self.links, frame);
        }
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(capacity(frames)?)?;
        grow(&mut self.states, frames, 0)?;
        self.ghosts.grow(frames)?;
        grow(&mut self.since, if WINDOW { frames } else { 0 }, 0)?;
        self.share(frames);
        self.ghosts.keep(0, self.ghost_share);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.small.check(&self.links, "small")?;
        self.main.check(&self.links, "main")?;
        let state = |frame: u32| self.states[frame as usize];
        let wrong = |frame: &u32| state(*frame) & COUNT > MOST;
        let small = self
            .small
            .iter(&self.links)
            .find(|frame| state(*frame) & MAIN != 0 || wrong(frame));
        let main = self
            .main
            .iter(&self.links)
            .find(|frame| state(*frame) & MAIN == 0 || state(*frame) >= UNUSED || wrong(frame));
        match (small, main) {
            (None, None) => Ok(()),
            wrong => Err(format!("s3-fifo: frames with a wrong state: {wrong:?}")),
        }
    }

    fn bytes(&self) -> usize {
        self.links.bytes()
            + self.states.capacity()
            + self.since.capacity() * size_of::<u32>()
            + self.ghosts.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("small", self.small.len() as f64),
            ("main", self.main.len() as f64),
        ]
    }
}
