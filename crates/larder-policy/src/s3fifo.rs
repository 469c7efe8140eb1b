//! S3-FIFO and Clock2Q+: a small FIFO for new blocks, a main FIFO with second chances, and ghosts.

use super::capacity::capacity;
use super::ghosts::Ghosts;
use super::lists::Lists;
use super::{
    Admission, Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow,
    Touch,
};
use larder_base::table::{grow, table};

/// The small FIFO is a tenth of the cache.
const SMALL_SHARE: usize = 10;

/// The lists.
const SMALL: usize = 0;
const MAIN: usize = 1;

/// Of a frame's bits, the uses that count.
const COUNT: u8 = 3;
/// It was read ahead and is not used; it is in the small FIFO.
const UNUSED: u8 = 4;
/// The same, and it had a ghost.
const UNUSED_BACK: u8 = 8;

/// S3-FIFO: three queues. Uses are counted up to `MOST`; a block of the small FIFO with `NEEDED` of them goes on to the main FIFO, where
/// each second chance costs one. The ghosts are those of the last departures from the small FIFO, as many as the main FIFO has
/// frames. With `WINDOW`, uses do not count in the newer half of the small FIFO.
///
/// 9 bytes a frame, 13 with a window, none for ghosts. A hit is a load, a comparison and at most a store.
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
#[derive(Debug)]
pub struct S3Fifo<const MOST: u8 = 3, const NEEDED: u8 = 2, const WINDOW: bool = false> {
    lists: Lists<2>,
    /// With a window: how many had come into the small FIFO when this one did.
    since: Vec<u32>,
    came: u32,
    ghosts: Ghosts<1>,
    ghost_share: usize,
    small_share: usize,
    window: u32,
    capacity: usize,
}

impl S3Fifo {
    /// S3-FIFO as published: two bits, and two uses to leave the small FIFO for the main one.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Self::with_constants(frames)
    }
}

impl S3Fifo<1, 1, false> {
    /// S3-FIFO with one bit, which its author found better for blocks: one use is enough.
    ///
    /// ```
    /// use larder_policy::{S3Fifo, replay::Replay};
    /// let mut cache = Replay::new(S3Fifo::one_bit(10)?)?;
    /// for block in [1, 1, 2] {
    ///     cache.access(block, 0);
    /// }
    /// assert!((10..30).all(|block| !cache.access(block, 0)));
    /// assert!(cache.access(1, 0) && !cache.access(2, 0));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](S3Fifo::new).
    pub fn one_bit(frames: usize) -> Result<Self, PolicyError> {
        Self::with_constants(frames)
    }
}

impl S3Fifo<1, 1, true> {
    /// Clock2Q+: one bit, and a correlation window: uses soon after the arrival belong to it and do not count.
    ///
    /// ```
    /// use larder_policy::{S3Fifo, replay::Replay};
    /// let mut cache = Replay::new(S3Fifo::clock2q_plus(40)?)?; // the small FIFO has 4, the window 2
    /// for block in [1, 1, 2, 3, 2, 4, 2] {
    ///     cache.access(block, 0); // 1 was used at once again, 2 later too
    /// }
    /// assert!((10..100).all(|block| !cache.access(block, 0)));
    /// assert!(!cache.access(1, 0) && cache.access(2, 0));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](S3Fifo::new).
    pub fn clock2q_plus(frames: usize) -> Result<Self, PolicyError> {
        Self::with_constants(frames)
    }
}

impl<const MOST: u8, const NEEDED: u8, const WINDOW: bool> S3Fifo<MOST, NEEDED, WINDOW> {
    /// A rule with these constants.
    ///
    /// ```
    /// use larder_policy::{S3Fifo, replay::Replay};
    /// let mut cache = Replay::new(S3Fifo::<2, 1, false>::with_constants(100)?)?;
    /// for at in 0..3000 {
    ///     cache.access(if at % 3 == 0 { 1000 + at } else { at / 6 % 40 }, at);
    /// }
    /// assert!((0..40).all(|block| cache.holds(block))); // what comes once does not drive them out
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](S3Fifo::new).
    pub fn with_constants(frames: usize) -> Result<Self, PolicyError> {
        let mut rule = Self {
            capacity: capacity(frames)?,
            lists: Lists::new(frames)?,
            since: table(if WINDOW { frames } else { 0 }, 0)?,
            came: 0,
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
    fn correlated(&self, frame: Frame) -> bool {
        WINDOW
            && self.lists.list_of(frame) == SMALL
            && self.came.wrapping_sub(self.since[frame as usize]) < self.window
    }

    /// One victim of the small FIFO, after those that have earned it went on.
    #[inline]
    fn evict_small<F: Frames>(&mut self, frames: &mut F) -> bool {
        let mut next = self.lists.oldest(SMALL);
        while let Some(at) = next {
            next = self.lists.newer(at);
            if frames.state(at) != FrameState::Pinned {
                if self.lists.bits(at) & COUNT < NEEDED {
                    self.lists.remove(at);
                    self.ghosts.keep(0, self.ghost_share - 1);
                    frames.evicted(at, Some(self.ghosts.add(0)));
                    return true;
                }
                self.lists.move_to(at, MAIN, 0);
            }
        }
        false
    }

    /// One victim of the main FIFO; those with uses left go round.
    #[inline]
    fn evict_main<F: Frames>(&mut self, frames: &mut F) -> bool {
        let mut next = self.lists.oldest(MAIN);
        while let Some(at) = next {
            next = self.lists.newer(at);
            if frames.state(at) != FrameState::Pinned {
                let count = self.lists.bits(at);
                if count == 0 {
                    self.lists.remove(at);
                    frames.evicted(at, None);
                    return true;
                }
                self.lists.move_to(at, MAIN, count - 1);
                next = next.or(Some(at));
            }
        }
        false
    }
}

impl<const MOST: u8, const NEEDED: u8, const WINDOW: bool> Policy for S3Fifo<MOST, NEEDED, WINDOW> {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.lists.total()
    }

    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, _: Reason) -> Admission {
        Admission(u64::from(self.ghosts.take(shadow).is_some()))
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let back = arrival.admission.0 != 0;
        let (list, bits) = match (arrival.reason, back) {
            (Reason::Readahead, false) => (SMALL, UNUSED),
            (Reason::Readahead, true) => (SMALL, UNUSED_BACK),
            (_, false) => (SMALL, 0),
            (_, true) => (MAIN, 0),
        };
        if WINDOW && list == SMALL {
            self.came = self.came.wrapping_add(1);
            self.since[frame as usize] = self.came;
        }
        self.lists.push(frame, list, bits);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        match self.lists.bits(frame) {
            UNUSED => self.lists.set_bits(frame, 0),
            UNUSED_BACK => self.lists.move_to(frame, MAIN, 0),
            count if count < MOST && !self.correlated(frame) => {
                self.lists.set_bits(frame, count + 1);
            }
            _ => {}
        }
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let left = if self.lists.len(SMALL) >= self.small_share {
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
        self.lists.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.lists.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.lists.unpark(frame);
    }

    fn invalidate(&mut self, frame: Frame) -> Option<Shadow> {
        let earned = self.lists.bits(frame) & COUNT >= NEEDED;
        let main = self.lists.list_of(frame) == MAIN || earned;
        self.lists.remove(frame);
        main.then(|| {
            self.ghosts.keep(0, self.ghost_share - 1);
            self.ghosts.add(0)
        })
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.lists.grow(capacity(frames)?)?;
        self.ghosts.grow(frames)?;
        grow(&mut self.since, if WINDOW { frames } else { 0 }, 0)?;
        self.share(frames);
        self.ghosts.keep(0, self.ghost_share);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.lists.check("s3-fifo", |list, bits| {
            bits <= MOST || list == SMALL && [UNUSED, UNUSED_BACK].contains(&bits)
        })
    }

    fn bytes(&self) -> usize {
        self.lists.bytes() + self.since.capacity() * size_of::<u32>() + self.ghosts.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("small", self.lists.len(SMALL) as f64),
            ("main", self.lists.len(MAIN) as f64),
        ]
    }
}
