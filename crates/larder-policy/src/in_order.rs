//! FIFO and LRU: one list, and a use does nothing or moves its block to the end.

use super::capacity::capacity;
use super::{Arrival, Frame, FrameState, Frames, Policy, PolicyError, Touch};
use larder_base::list::{Linked, Links, List, NONE};

/// Least recently used: a hit moves one node of a list (6 writes). Without `RENEW` it does not, and this is a FIFO. 8 bytes a frame.
///
/// ```
/// use larder_policy::{Lru, replay::Replay};
/// let mut cache = Replay::new(Lru::new(2)?)?;
/// let hits: Vec<bool> = [1, 2, 1, 3, 1, 2].map(|block| cache.access(block, 0)).into();
/// assert_eq!(hits, [false, false, true, false, true, false]);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Lru<const RENEW: bool = true> {
    links: Links,
    list: List,
    capacity: usize,
}

impl Lru {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Self::make(frames)
    }
}

impl Lru<false> {
    /// First in, first out: a hit costs nothing.
    ///
    /// ```
    /// use larder_policy::{Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::fifo(2)?)?;
    /// let hits: Vec<bool> = [1, 2, 1, 3, 1, 2].map(|block| cache.access(block, 0)).into();
    /// assert_eq!(hits, [false, false, true, false, false, false]);
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Lru::new).
    pub fn fifo(frames: usize) -> Result<Self, PolicyError> {
        Self::make(frames)
    }
}

impl<const RENEW: bool> Lru<RENEW> {
    fn make(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            links: Links::new(frames)?,
            list: List::new(),
        })
    }
}

impl<const RENEW: bool> Policy for Lru<RENEW> {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    fn insert(&mut self, frame: Frame, _: Arrival) {
        self.list.push_newest(&mut self.links, frame);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        if RENEW {
            self.list.renew(&mut self.links, frame);
        }
    }

    #[inline]
    fn settled(&self, _: Frame) -> bool {
        !RENEW
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        let mut gone = 0;
        let mut at = self.list.oldest();
        while gone < wanted && at != NONE {
            let next = self.links.newer(at);
            if frames.state(at) != FrameState::Pinned {
                self.list.unlink(&mut self.links, at);
                frames.evicted(at, None);
                gone += 1;
            }
            at = next;
        }
        gone
    }

    fn remove(&mut self, frame: Frame) {
        self.list.unlink(&mut self.links, frame);
    }

    fn park(&mut self, frame: Frame) {
        self.list.park(&mut self.links, frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.list.unpark(&mut self.links, frame);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(capacity(frames)?)?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.list
            .check(&self.links, if RENEW { "lru" } else { "fifo" })
    }

    fn bytes(&self) -> usize {
        self.links.bytes()
    }
}
