//! CAR: ARC's two lists and ghosts with clocks, so that a hit only sets a bit.

use super::capacity::capacity;
use super::ghosts::Ghosts;
use super::lists::Lists;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};

/// The clocks and the ghosts of each: seen once, seen again.
const ONCE: usize = 0;
const AGAIN: usize = 1;

/// The reference bit.
const USED: u8 = 1;
/// Read ahead and not used, in the first clock.
const UNUSED: u8 = 2;
/// The list of the ghost that an unused one had, plus one, from this bit on.
const GHOST_SHIFT: u8 = 2;

/// CAR, with as many ghosts as frames. 9 bytes a frame and 2 for its ghosts; a hit is a load, a comparison and, the first time, a
/// store. It has no constants.
///
/// ```
/// use larder_policy::{Car, replay::Replay};
/// let mut cache = Replay::new(Car::new(4)?)?;
/// for block in [1, 1, 2, 2] {
///     cache.access(block, 0);
/// }
/// assert!((10..20).all(|block| !cache.access(block, 0)));
/// assert!(cache.access(1, 0) && cache.access(2, 0));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Car {
    clocks: Lists<2>,
    ghosts: Ghosts<2>,
    /// p: how long the first clock should be.
    target: f64,
    capacity: usize,
}

impl Car {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            clocks: Lists::new(frames)?,
            ghosts: Ghosts::new(frames)?,
            target: 0.0,
        })
    }

    /// A ghost of a list came back; it is taken out already.
    fn learn(&mut self, list: usize) {
        let once = (self.ghosts.len(ONCE) + usize::from(list == ONCE)) as f64;
        let again = (self.ghosts.len(AGAIN) + usize::from(list == AGAIN)) as f64;
        self.target = if list == ONCE {
            (self.target + (again / once).max(1.0)).min(self.capacity as f64)
        } else {
            (self.target - (once / again).max(1.0)).max(0.0)
        };
    }

    /// Keeps |T1| + |B1| within the capacity, and the ghosts, too.
    #[inline]
    fn trim(&mut self) {
        let most = self.capacity.saturating_sub(self.clocks.len(ONCE));
        self.ghosts.keep(ONCE, most);
        while self.ghosts.total() > self.capacity {
            let list = if self.ghosts.len(AGAIN) > 0 {
                AGAIN
            } else {
                ONCE
            };
            self.ghosts.forget_oldest(list);
        }
    }
}

impl Policy for Car {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.clocks.total()
    }

    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, _: Reason) -> Admission {
        Admission(self.ghosts.take(shadow).map_or(0, |list| list as u64 + 1))
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let ghost = arrival.admission.0 as u8;
        if arrival.reason == Reason::Readahead {
            let bits = UNUSED | ghost << GHOST_SHIFT;
            self.clocks.push(frame, ONCE, bits);
        } else if ghost == 0 {
            self.clocks.push(frame, ONCE, 0);
        } else {
            self.learn(usize::from(ghost - 1));
            self.clocks.push(frame, AGAIN, 0);
        }
        self.trim();
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        let bits = self.clocks.bits(frame);
        if bits == 0 {
            self.clocks.set_bits(frame, USED);
        } else if bits == UNUSED {
            self.clocks.set_bits(frame, 0);
        } else if bits != USED {
            self.learn(usize::from((bits >> GHOST_SHIFT) - 1));
            self.clocks.move_to(frame, AGAIN, 0);
        }
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        let mut gone = 0;
        while gone < wanted {
            let from_once = self.clocks.len(ONCE) as f64 >= self.target.max(1.0);
            let first = if from_once { ONCE } else { AGAIN };
            let Some(frame) = self.clocks.unpinned_of(first, 1 - first, frames) else {
                break;
            };
            if self.clocks.bits(frame) == USED {
                self.clocks.move_to(frame, AGAIN, 0);
                continue;
            }
            let shadow = self.ghosts.add(self.clocks.list_of(frame));
            self.clocks.remove(frame);
            self.trim();
            frames.evicted(frame, Some(shadow));
            gone += 1;
        }
        gone
    }

    fn remove(&mut self, frame: Frame) {
        self.clocks.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.clocks.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.clocks.unpark(frame);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.clocks.grow(capacity(frames)?)?;
        self.ghosts.grow(frames)?;
        self.capacity = frames;
        self.target = self.target.min(frames as f64);
        self.trim();
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.ghosts.check()?;
        self.clocks
            .check("car", |list, bits| list == ONCE || bits <= USED)?;
        let target = 0.0..=self.capacity as f64;
        if self.ghosts.total() > self.capacity || !target.contains(&self.target) {
            let ghosts = self.ghosts.total();
            return Err(format!("car: {ghosts} ghosts, target {}", self.target));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.clocks.bytes() + self.ghosts.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("once", self.clocks.len(ONCE) as f64),
            ("again", self.clocks.len(AGAIN) as f64),
            ("target of once", self.target),
        ]
    }
}
