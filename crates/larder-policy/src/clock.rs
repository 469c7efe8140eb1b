//! CLOCK and GCLOCK: a hand goes round the frames and takes the first that was not used since it last came by.

use super::capacity::capacity;
use super::{Arrival, Frame, FrameState, Frames, Policy, PolicyError, Reason, Touch};
use larder_base::table::{grow, table};

/// The frame has no block.
const ABSENT: u8 = 0;
/// It has one that was read ahead and never used.
const UNUSED: u8 = 1;
/// It has one whose count is the byte less this.
const COUNT: u8 = 2;
/// It is parked.
const PARKED: u8 = 1 << 7;

/// CLOCK: a hand over counters, of one bit that is clear at the insertion. In general a use adds one up to `MOST`, the hand takes one off, and takes the block where nothing is left. The
/// insertion counts as `FIRST`. 1 byte a frame and no links: the ring is the frames in the order of their numbers. A hit is a
/// load, a comparison and, below `MOST`, a store.
///
/// A block goes into the frame that the hand has just emptied, so this is the ring of the textbooks as long as frames are
/// refilled in the order in which they are emptied.
///
/// ```
/// use larder_policy::{Clock, replay::Replay};
/// let mut cache = Replay::new(Clock::new(2)?)?;
/// let hits: Vec<bool> = [1, 2, 1, 3, 1, 2].map(|block| cache.access(block, 0)).into();
/// assert_eq!(hits, [false, false, true, false, true, false]);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Clock<const FIRST: u8 = 0, const MOST: u8 = 1> {
    counts: Vec<u8>,
    hand: usize,
    capacity: usize,
    len: usize,
    parked: usize,
}

impl Clock {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Self::counting(frames)
    }
}

impl Clock<1, 5> {
    /// GCLOCK with the constants of PostgreSQL's buffers: counts up to 5, 1 at the insertion.
    ///
    /// ```
    /// use larder_policy::{Clock, replay::Replay};
    /// let mut cache = Replay::new(Clock::gclock(2)?)?;
    /// let hits: Vec<bool> = [1, 2, 1, 3, 1, 2].map(|block| cache.access(block, 0)).into();
    /// assert_eq!(hits, [false, false, true, false, true, false]);
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Clock::new).
    pub fn gclock(frames: usize) -> Result<Self, PolicyError> {
        Self::counting(frames)
    }
}

impl<const FIRST: u8, const MOST: u8> Clock<FIRST, MOST> {
    /// A rule with these counts.
    ///
    /// ```
    /// use larder_policy::{Clock, replay::Replay};
    /// let mut cache = Replay::new(Clock::<0, 3>::counting(2)?)?; // two bits
    /// for (request, block) in [0, 0, 0, 1, 2, 3].into_iter().enumerate() {
    ///     cache.access(block, request as u32);
    /// }
    /// assert!(cache.holds(0)); // used twice more, so the hand has passed it twice
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Clock::new).
    pub fn counting(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            counts: table(frames, ABSENT)?,
            hand: 0,
            len: 0,
            parked: 0,
        })
    }
}

impl<const FIRST: u8, const MOST: u8> Policy for Clock<FIRST, MOST> {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        self.counts[frame as usize] = match arrival.reason {
            Reason::Readahead => UNUSED,
            Reason::Demand | Reason::Write => COUNT + FIRST,
        };
        self.len += 1;
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        let count = &mut self.counts[frame as usize];
        if *count < COUNT + MOST {
            *count = if *count == UNUSED {
                COUNT + FIRST
            } else {
                *count + 1
            };
        }
    }

    #[inline]
    fn settled(&self, frame: Frame) -> bool {
        self.counts[frame as usize] == COUNT + MOST
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        let (mut gone, mut barren) = (0, 0);
        while gone < wanted && barren < self.counts.len() && self.len > self.parked {
            let at = self.hand;
            self.hand = if at + 1 < self.counts.len() {
                at + 1
            } else {
                0
            };
            let count = self.counts[at];
            if count == ABSENT
                || count & PARKED != 0
                || frames.state(at as Frame) == FrameState::Pinned
            {
                barren += 1;
                continue;
            }
            barren = 0;
            if count > COUNT {
                self.counts[at] = count - 1;
            } else {
                self.remove(at as Frame);
                frames.evicted(at as Frame, None);
                gone += 1;
            }
        }
        gone
    }

    fn remove(&mut self, frame: Frame) {
        self.counts[frame as usize] = ABSENT;
        self.len -= 1;
    }

    fn park(&mut self, frame: Frame) {
        self.counts[frame as usize] |= PARKED;
        self.parked += 1;
    }

    fn unpark(&mut self, frame: Frame) {
        self.counts[frame as usize] &= !PARKED;
        self.parked -= 1;
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        grow(&mut self.counts, capacity(frames)?, ABSENT)?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let present = self.counts.iter().filter(|&&count| count != ABSENT);
        if present.count() != self.len || self.hand >= self.counts.len() {
            return Err(format!(
                "clock: not {} blocks, hand {}",
                self.len, self.hand
            ));
        }
        let parked = self.counts.iter().filter(|&&count| count & PARKED != 0);
        if parked.count() != self.parked {
            return Err(format!("clock: not {} are parked", self.parked));
        }
        let most = |count: u8| (count & !PARKED) > COUNT + MOST;
        match self.counts.iter().position(|&count| most(count)) {
            Some(frame) => Err(format!(
                "clock: frame {frame} counts {}",
                self.counts[frame]
            )),
            None => Ok(()),
        }
    }

    fn bytes(&self) -> usize {
        self.counts.capacity()
    }
}
