//! W-TinyLFU: a small LRU window, and behind it a segmented LRU that takes a block only if it was seen more often than the one
//! that it would evict.

use super::capacity::capacity;
use super::lists::Lists;
use super::sketch::{Key, Sketch};
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};
use larder_base::table::{grow, table};

/// The window is a hundredth of the cache, at first.
const WINDOW_SHARE: usize = 100;
/// Of the rest, this part in percent is for blocks that were used there.
const PROTECTED_PERCENT: usize = 80;
/// The climber looks after this many times the capacity of accesses.
const SAMPLE: u64 = 10;
/// Its first step, and that after a change of the load, as a part of the capacity.
const STEP: f64 = 0.0625;
/// A change of the hit ratio that says that the load has changed.
const RESTART: f64 = 0.05;
/// The share of the step that is left each time.
const DECAY: f64 = 0.98;
/// The largest window, in percent of the cache.
const MOST_WINDOW: usize = 80;

/// The lists.
const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// W-TinyLFU, with a window of 1 %; with `CLIMB` the window grows and shrinks by hill climbing on the hit ratio. 13 bytes a frame and 8 to 16 for the
/// sketch, which is all that is known of blocks that left. A hit is four counters of the sketch and a move in a list; once in ten
/// times the capacity of them all counters are halved.
///
/// ```
/// use larder_policy::{WTinyLfu, replay::Replay};
/// let mut cache = Replay::new(WTinyLfu::new(100)?)?;
/// for at in 0..6000 {
///     cache.access(if at % 2 == 0 { at / 2 % 50 } else { 1000 + at }, at);
/// }
/// assert!(cache.hits() > 2500); // of 3,000 uses of 50 blocks, beside 3,000 that come once
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct WTinyLfu<const CLIMB: bool = false> {
    lists: Lists<3>,
    keys: Vec<Key>,
    sketch: Sketch,
    /// Most blocks of the window.
    window_share: usize,
    hits: u64,
    accesses: u64,
    ratio_before: f64,
    step: f64,
    capacity: usize,
}

impl WTinyLfu {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Self::make(frames)
    }
}

impl WTinyLfu<true> {
    /// W-TinyLFU whose window climbs.
    ///
    /// ```
    /// use larder_policy::{WTinyLfu, replay::Replay};
    /// let mut cache = Replay::new(WTinyLfu::climbing(100)?)?;
    /// for at in 0..10_000 {
    ///     cache.access(at % 110, at);
    /// }
    /// assert!(cache.hits() > 3000);
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](WTinyLfu::new).
    pub fn climbing(frames: usize) -> Result<Self, PolicyError> {
        Self::make(frames)
    }
}

impl<const CLIMB: bool> WTinyLfu<CLIMB> {
    fn make(frames: usize) -> Result<Self, PolicyError> {
        let mut rule = Self {
            capacity: capacity(frames)?,
            lists: Lists::new(frames)?,
            keys: table(frames, Key::default())?,
            sketch: Sketch::new(frames)?,
            window_share: 0,
            hits: 0,
            accesses: 0,
            ratio_before: 0.0,
            step: 0.0,
        };
        rule.share(frames);
        Ok(rule)
    }

    fn main(&self) -> usize {
        self.lists.len(PROBATION) + self.lists.len(PROTECTED)
    }

    /// What the window has too many goes on, as long as there is room behind it.
    #[inline]
    fn overflow(&mut self) {
        while self.lists.len(WINDOW) > self.window_share
            && self.main() < self.capacity - self.window_share
            && let Some(frame) = self.lists.oldest(WINDOW)
        {
            self.lists.move_to(frame, PROBATION, 0);
        }
    }

    fn protected_share(&self) -> usize {
        (self.capacity - self.window_share) * PROTECTED_PERCENT / 100
    }

    fn accessed(&mut self, hit: bool) {
        if !CLIMB {
            return;
        }
        self.hits += u64::from(hit);
        self.accesses += 1;
        if self.accesses >= SAMPLE * self.capacity as u64 {
            self.climb();
        }
    }

    #[cold]
    fn climb(&mut self) {
        let ratio = self.hits as f64 / self.accesses as f64;
        let change = ratio - self.ratio_before;
        let amount = if change >= 0.0 { self.step } else { -self.step };
        self.step = if change.abs() >= RESTART {
            (STEP * self.capacity as f64).copysign(amount)
        } else {
            DECAY * amount
        };
        (self.ratio_before, self.hits, self.accesses) = (ratio, 0, 0);
        let most = (self.capacity * MOST_WINDOW / 100).max(1);
        let share = (self.window_share as f64 + amount).round();
        self.window_share = (share.max(1.0) as usize).min(most);
    }

    fn share(&mut self, frames: usize) {
        self.capacity = frames;
        self.window_share = (frames / WINDOW_SHARE).max(1);
        self.step = -STEP * frames as f64;
    }
}

impl<const CLIMB: bool> Policy for WTinyLfu<CLIMB> {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.lists.total()
    }

    #[inline]
    fn miss(&mut self, block: Block, _: Option<Shadow>, reason: Reason) -> Admission {
        if reason != Reason::Readahead {
            self.sketch.add(Key::of(block));
            self.accessed(false);
        }
        Admission::default()
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        self.keys[frame as usize] = Key::of(arrival.block);
        self.lists.push(frame, WINDOW, 0);
        self.overflow();
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        self.sketch.add(self.keys[frame as usize]);
        self.accessed(true);
        let list = self.lists.list_of(frame);
        if list != PROBATION {
            self.lists.renew(frame, list);
            return;
        }
        self.lists.move_to(frame, PROTECTED, 0);
        while self.lists.len(PROTECTED) > self.protected_share()
            && let Some(oldest) = self.lists.oldest(PROTECTED)
        {
            self.lists.move_to(oldest, PROBATION, 0);
        }
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let mut victim = self.lists.unpinned_of(PROBATION, PROTECTED, frames);
            if victim.is_none() || self.lists.len(WINDOW) >= self.window_share {
                let candidate = self.lists.unpinned(WINDOW, frames);
                let count = |frame: Frame| self.sketch.count(self.keys[frame as usize]);
                match (candidate, victim) {
                    (Some(candidate), Some(victim)) if count(candidate) > count(victim) => {
                        self.lists.move_to(candidate, PROBATION, 0);
                    }
                    _ => victim = candidate.or(victim),
                }
            }
            let Some(victim) = victim else {
                return gone;
            };
            self.lists.remove(victim);
            frames.evicted(victim, None);
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

    fn rekey(&mut self, frame: Frame, block: Block) {
        self.keys[frame as usize] = Key::of(block);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.lists.grow(capacity(frames)?)?;
        grow(&mut self.keys, frames, Key::default())?;
        self.sketch.resize(frames)?;
        self.share(frames);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.lists.check("w-tinylfu", |_, bits| bits == 0)?;
        if self.window_share == 0 || self.window_share > self.capacity {
            return Err(format!("w-tinylfu: a window of {}", self.window_share));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let keys = self.keys.capacity() * size_of::<Key>();
        self.lists.bytes() + keys + self.sketch.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("window", self.lists.len(WINDOW) as f64),
            ("probation", self.lists.len(PROBATION) as f64),
            ("protected", self.lists.len(PROTECTED) as f64),
            ("target of window", self.window_share as f64),
        ]
    }
}
