//! ARC: a list of blocks seen once and one of blocks seen again, whose sizes follow the ghosts that come back.

use super::capacity::capacity;
use super::ghosts::Ghosts;
use super::lists::Lists;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};

/// The lists of residents and of ghosts: seen once, seen again.
const ONCE: usize = 0;
const AGAIN: usize = 1;

/// Bits of a frame in the first list: it was read ahead and is not used.
const UNUSED: u8 = 1;
/// The same, and it had a ghost; plus the list of that.
const UNUSED_BACK: u8 = 2;

/// The adaptive replacement cache, with as many ghosts as frames. 9 bytes a frame and 12 for its ghost; a hit is a move in a
/// list. It has no constants.
///
/// ```
/// use larder_policy::{Arc, replay::Replay};
/// let mut cache = Replay::new(Arc::new(4)?)?;
/// for block in [1, 1, 2, 2] {
///     cache.access(block, 0); // 1 and 2 are seen again
/// }
/// assert!((10..20).all(|block| !cache.access(block, 0)));
/// assert!(cache.access(1, 0) && cache.access(2, 0));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Arc {
    lists: Lists<2>,
    ghosts: Ghosts<2>,
    /// p: how long the list of those seen once should be.
    target: f64,
    /// The last miss was of a ghost of the second list: a tie goes to it.
    from_again: bool,
    capacity: usize,
}

impl Arc {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            lists: Lists::new(frames)?,
            ghosts: Ghosts::new(frames)?,
            target: 0.0,
            from_again: false,
        })
    }

    /// A ghost of a list came back; the sizes are those with it.
    fn learn(&mut self, list: usize, once: usize, again: usize) {
        let (once, again) = (once as f64, again as f64);
        self.target = if list == ONCE {
            (self.target + (again / once).max(1.0)).min(self.capacity as f64)
        } else {
            (self.target - (once / again).max(1.0)).max(0.0)
        };
    }

    /// Ghosts of the first list count against the capacity together with its residents.
    #[inline]
    fn trim(&mut self) {
        while self.lists.len(ONCE) + self.ghosts.len(ONCE) > self.capacity
            && self.ghosts.len(ONCE) > 0
        {
            self.ghosts.forget_oldest(ONCE);
        }
    }

    /// Makes room for one more ghost.
    #[inline]
    fn trim_for_one(&mut self, most: usize) {
        while self.ghosts.total() >= most {
            let first_is_full = self.lists.len(ONCE) + self.ghosts.len(ONCE) >= self.capacity;
            let list =
                if (first_is_full && self.ghosts.len(ONCE) > 0) || self.ghosts.len(AGAIN) == 0 {
                    ONCE
                } else {
                    AGAIN
                };
            self.ghosts.forget_oldest(list);
        }
    }
}

impl Policy for Arc {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.lists.total()
    }

    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let (once, again) = (self.ghosts.len(ONCE), self.ghosts.len(AGAIN));
        let list = self.ghosts.take(shadow);
        let used = reason != Reason::Readahead;
        self.from_again = used && list == Some(AGAIN);
        if let (Some(list), true) = (list, used) {
            self.learn(list, once, again);
        }
        Admission(list.map_or(0, |list| list as u64 + 1))
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let list = arrival.admission.0 as u8;
        let (list, bits) = match (arrival.reason, list) {
            (Reason::Readahead, 0) => (ONCE, UNUSED),
            (Reason::Readahead, list) => (ONCE, UNUSED_BACK + list - 1),
            (_, 0) => (ONCE, 0),
            _ => (AGAIN, 0),
        };
        self.lists.push(frame, list, bits);
        self.from_again = false;
        self.trim();
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        if self.lists.list_of(frame) == AGAIN {
            self.lists.renew(frame, AGAIN);
            return;
        }
        let bits = self.lists.bits(frame);
        if bits >= UNUSED_BACK {
            let list = usize::from(bits - UNUSED_BACK);
            let (once, again) = (self.ghosts.len(ONCE), self.ghosts.len(AGAIN));
            self.learn(
                list,
                once + usize::from(list == ONCE),
                again + usize::from(list == AGAIN),
            );
        }
        let list = if bits == UNUSED { ONCE } else { AGAIN };
        self.lists.move_to(frame, list, 0);
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let once = self.lists.len(ONCE) as f64;
            let from_once =
                once >= 1.0 && (once > self.target || (self.from_again && once == self.target));
            let first = if from_once { ONCE } else { AGAIN };
            let Some(frame) = self.lists.unpinned_of(first, 1 - first, frames) else {
                return gone;
            };
            self.trim_for_one(self.capacity);
            let shadow = self.ghosts.add(self.lists.list_of(frame));
            self.remove(frame);
            frames.evicted(frame, Some(shadow));
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
        let again = self.lists.list_of(frame) == AGAIN;
        self.remove(frame);
        again.then(|| {
            self.trim_for_one(self.capacity);
            self.ghosts.add(AGAIN)
        })
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.lists.grow(capacity(frames)?)?;
        self.ghosts.grow(frames)?;
        self.capacity = frames;
        self.target = self.target.min(frames as f64);
        self.trim();
        self.trim_for_one(frames + 1);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.ghosts.check()?;
        self.lists
            .check("arc", |list, bits| list == ONCE || bits == 0)?;
        if self.ghosts.total() > self.capacity
            || !(0.0..=self.capacity as f64).contains(&self.target)
        {
            return Err(format!(
                "arc: {} ghosts, target {}",
                self.ghosts.total(),
                self.target
            ));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.lists.bytes() + self.ghosts.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("once", self.lists.len(ONCE) as f64),
            ("again", self.lists.len(AGAIN) as f64),
            ("target of once", self.target),
        ]
    }
}
