//! SIEVE: a queue in which no block moves, and a hand that sifts it from the old end to the new.

use super::capacity::capacity;
use super::lists::Lists;
use super::{Arrival, Frame, FrameState, Frames, Policy, PolicyError, Reason, Touch};

const UNUSED: u8 = 0;
const FRESH: u8 = 1;
const USED: u8 = 2;

/// SIEVE. 9 bytes a frame; a hit is a load, a comparison and, the first time, a store. It has no constants, and no scan
/// resistance: it is made for the Web.
///
/// ```
/// use larder_policy::{Sieve, replay::Replay};
/// let mut cache = Replay::new(Sieve::new(2)?)?;
/// let hits: Vec<bool> = [1, 2, 1, 3, 1, 2].map(|block| cache.access(block, 0)).into();
/// assert_eq!(hits, [false, false, true, false, true, false]);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Sieve {
    list: Lists<1>,
    /// Where it goes on; none: at the oldest.
    hand: Option<Frame>,
    capacity: usize,
}

impl Sieve {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            list: Lists::new(frames)?,
            hand: None,
        })
    }
}

impl Policy for Sieve {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.list.total()
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let bits = match arrival.reason {
            Reason::Readahead => UNUSED,
            Reason::Demand | Reason::Write => FRESH,
        };
        self.list.push(frame, 0, bits);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        let bits = self.list.bits(frame);
        if bits != USED {
            self.list.set_bits(frame, bits + 1);
        }
    }

    #[inline]
    fn settled(&self, frame: Frame) -> bool {
        self.list.bits(frame) == USED
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        let (mut gone, mut barren) = (0, 0);
        while gone < wanted
            && barren < self.list.unparked()
            && let Some(at) = self.hand.or_else(|| self.list.oldest(0))
        {
            self.hand = self.list.newer(at);
            if frames.state(at) == FrameState::Pinned {
                barren += 1;
            } else if self.list.bits(at) == USED {
                self.list.set_bits(at, FRESH);
                barren = 0;
            } else {
                self.list.remove(at);
                frames.evicted(at, None);
                gone += 1;
                barren = 0;
            }
        }
        gone
    }

    fn remove(&mut self, frame: Frame) {
        if self.hand == Some(frame) {
            self.hand = self.list.newer(frame);
        }
        self.list.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        if self.hand == Some(frame) {
            self.hand = self.list.newer(frame);
        }
        self.list.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.list.unpark(frame);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.list.grow(capacity(frames)?)?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.list.check("sieve", |_, bits| bits <= USED)?;
        match self.hand {
            Some(hand) if !self.list.iter(0).any(|frame| frame == hand) => {
                Err(format!("sieve: the hand is at {hand}, not in the list"))
            }
            _ => Ok(()),
        }
    }

    fn bytes(&self) -> usize {
        self.list.bytes()
    }
}
