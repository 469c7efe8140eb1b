//! LeCaR: LRU and LFU as experts; a miss of a block that one of them evicted takes weight from it.

use super::capacity::capacity;
use super::ghosts::Ghosts;
use super::heap::Heap;
use super::lists::oldest_unpinned;
use super::random::Dice;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};
use larder_base::list::{Links, List};

/// The experts, and the ghosts of the blocks that each evicted.
const LRU: usize = 0;
const LFU: usize = 1;

/// How fast the weights learn.
const LEARNING: f64 = 0.45;
/// The weight of a regret for a block that was gone for as many accesses as the capacity.
const DISCOUNT: f64 = 0.005;
/// An expert's most weight.
const MOST: f64 = 0.99;
/// Each expert's ghosts are this part of the capacity.
const GHOST_SHARE: usize = 2;

/// A shadow has the departure's number and list in the low bits, then the time of the departure, then the uses.
const DEPARTURE_BITS: u32 = 30;
const TIME_BITS: u32 = 24;
const MOST_USES: u32 = (1 << (63 - DEPARTURE_BITS - TIME_BITS)) - 1;
/// That time has steps of the capacity divided by this.
const STEPS: u64 = 64;

/// LeCaR. 36 bytes a frame and 1 to 2 for its ghosts; a hit is a move in a list and up to log2 of the capacity steps in a heap. The draws
/// are the same every time. When a block returns, more than 511 uses count as 511.
///
/// ```
/// use larder_policy::{LeCaR, replay::Replay};
/// let mut cache = Replay::new(LeCaR::new(10)?)?;
/// for at in 0..1000 {
///     cache.access(at % 5, at);
/// }
/// assert_eq!(cache.misses(), 5);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct LeCaR {
    links: Links,
    recency: List,
    /// By uses, then by the time of the last.
    frequency: Heap<(u32, u64)>,
    ghosts: Ghosts<2>,
    /// LRU's weight; LFU's is the rest of one.
    weight: f64,
    now: u64,
    dice: Dice,
    capacity: usize,
}

impl LeCaR {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            links: Links::new(frames)?,
            recency: List::new(),
            frequency: Heap::new(frames)?,
            ghosts: Ghosts::new(Self::ghosts_of(frames))?,
            weight: 0.5,
            now: 0,
            dice: Dice::new(),
        })
    }

    fn ghosts_of(capacity: usize) -> usize {
        (capacity / GHOST_SHARE).max(1)
    }

    /// The length of a step of time in shadows.
    fn step(&self) -> u64 {
        (self.capacity as u64 / STEPS).max(1)
    }

    fn time(&self) -> u64 {
        (self.now / self.step()) & ((1 << TIME_BITS) - 1)
    }

    fn regret(&mut self, expert: usize, gone_at: u64) {
        let gone = self.time().wrapping_sub(gone_at) & ((1 << TIME_BITS) - 1);
        let share = (gone * self.step()) as f64 / self.capacity as f64;
        let factor = (-LEARNING * DISCOUNT.powf(share)).exp();
        let mut weights = [self.weight, 1.0 - self.weight];
        weights[expert] *= factor;
        self.weight = (weights[LRU] / (weights[LRU] + weights[LFU])).clamp(1.0 - MOST, MOST);
    }

    #[inline]
    fn used(&mut self, frame: Frame, uses: u32) {
        self.now += 1;
        self.frequency.set(frame, (uses, self.now));
    }
}

impl Policy for LeCaR {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.recency.len()
    }

    /// The uses of its former lives.
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let Some(bits) = shadow.map(Shadow::get) else {
            return Admission(0);
        };
        let Some(expert) = self.ghosts.take_short(bits, DEPARTURE_BITS) else {
            return Admission(0);
        };
        if reason != Reason::Readahead {
            self.regret(expert, bits >> DEPARTURE_BITS & ((1 << TIME_BITS) - 1));
        }
        Admission(bits >> (DEPARTURE_BITS + TIME_BITS))
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let used = arrival.reason != Reason::Readahead;
        self.used(frame, arrival.admission.0 as u32 + u32::from(used));
        self.recency.push_newest(&mut self.links, frame);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        let (uses, _) = self.frequency.key(frame);
        self.used(frame, uses.saturating_add(1));
        self.recency.renew(&mut self.links, frame);
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let oldest = oldest_unpinned(&self.recency, &self.links, frames);
            let Some(((_, _), rarest)) = self.frequency.first_unpinned(frames) else {
                return gone;
            };
            // All may have been pinned when the list was looked at, and one unpinned before the heap was.
            let oldest = oldest.unwrap_or(rarest);
            let expert = if self.dice.part() < self.weight {
                LRU
            } else {
                LFU
            };
            let victim = if expert == LRU { oldest } else { rarest };
            // Both said so: there is nothing to regret.
            let shadow = (oldest != rarest).then(|| {
                self.ghosts.keep(expert, Self::ghosts_of(self.capacity) - 1);
                let departure = self.ghosts.add(expert).get() & ((1 << DEPARTURE_BITS) - 1);
                let uses = u64::from(self.frequency.key(victim).0.min(MOST_USES));
                let with_time = uses << TIME_BITS | self.time();
                Shadow::new(with_time << DEPARTURE_BITS | departure)
            });
            self.remove(victim);
            frames.evicted(victim, shadow);
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        self.recency.unlink(&mut self.links, frame);
        self.frequency.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.recency.park(&mut self.links, frame);
        self.frequency.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.recency.unpark(&mut self.links, frame);
        self.frequency.unpark(frame);
    }

    /// Forgets all ghosts, whose times count in other steps.
    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(capacity(frames)?)?;
        self.frequency.grow(frames)?;
        self.ghosts.grow(Self::ghosts_of(frames))?;
        self.capacity = frames;
        self.ghosts.keep(LRU, 0);
        self.ghosts.keep(LFU, 0);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.recency.check(&self.links, "lecar")?;
        self.frequency.check()?;
        self.ghosts.check()?;
        if self.recency.len() != self.frequency.len() {
            return Err("lecar: the experts know different blocks".to_owned());
        }
        if !(1.0 - MOST..=MOST).contains(&self.weight) {
            return Err(format!("lecar: a weight of {}", self.weight));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.frequency.bytes() + self.ghosts.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("weight of lru", self.weight),
            ("weight of lfu", 1.0 - self.weight),
        ]
    }
}
