//! SIEVE: a queue in which no block moves, and a hand that sifts it from the old end to the new.

use super::capacity::capacity;
use super::{Arrival, Frame, FrameState, Frames, Policy, PolicyError, Reason, Touch};
use larder_base::list::{Linked, Links, List, NONE};
use larder_base::table::{grow, table};

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
    links: Links,
    used: Vec<u8>,
    list: List,
    /// Where it goes on; none: at the oldest.
    hand: u32,
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
            links: Links::new(frames)?,
            used: table(frames, UNUSED)?,
            list: List::new(),
            hand: NONE,
        })
    }
}

impl Policy for Sieve {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        self.used[frame as usize] = match arrival.reason {
            Reason::Readahead => UNUSED,
            Reason::Demand | Reason::Write => FRESH,
        };
        self.list.push_newest(&mut self.links, frame);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        let used = &mut self.used[frame as usize];
        if *used != USED {
            *used += 1;
        }
    }

    #[inline]
    fn settled(&self, frame: Frame) -> bool {
        self.used[frame as usize] == USED
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        let (mut gone, mut barren) = (0, 0);
        while gone < wanted && barren < self.list.len() {
            let at = match self.hand {
                NONE => self.list.oldest(),
                at => at,
            };
            self.hand = self.links.newer(at);
            if frames.state(at) == FrameState::Pinned {
                barren += 1;
            } else if self.used[at as usize] == USED {
                self.used[at as usize] = FRESH;
                barren = 0;
            } else {
                self.list.unlink(&mut self.links, at);
                frames.evicted(at, None);
                gone += 1;
                barren = 0;
            }
        }
        gone
    }

    fn remove(&mut self, frame: Frame) {
        if self.hand == frame {
            self.hand = self.links.newer(frame);
        }
        self.list.unlink(&mut self.links, frame);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(capacity(frames)?)?;
        grow(&mut self.used, frames, UNUSED)?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.list.check(&self.links, "sieve")?;
        if self.hand != NONE && !self.list.iter(&self.links).any(|frame| frame == self.hand) {
            return Err(format!(
                "sieve: the hand is at {}, not in the list",
                self.hand
            ));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.used.capacity()
    }
}
