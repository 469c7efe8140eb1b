//! Cacheus: LRU that resists scans and LFU that resists churn as experts; regret weighs them, at a rate that adapts.

mod rate;

use core::cmp::Reverse;

use super::capacity::capacity;
use super::ghosts::Ghosts;
use super::heap::Heap;
use super::lists::Lists;
use super::random::Dice;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};
use rate::Rate;

/// The experts, and the ghosts of the blocks that each evicted.
const SR_LRU: usize = 0;
const CR_LFU: usize = 1;
/// Once more SR-LRU's ghosts, by the same numbers, but only of blocks that were new when they last came in.
const NEW_ONES: usize = 2;

/// An expert's most weight.
const MOST: f64 = 0.99;
/// Each expert's ghosts are this part of the capacity.
const GHOST_SHARE: usize = 2;
/// The first size of the queue of blocks that will leave, as a part of the capacity.
const QUEUE_SHARE: f64 = 0.01;

/// A shadow has the departure's number and list in the low bits, then the number of uses.
const DEPARTURE_BITS: u32 = 40;
const MOST_USES: u32 = (1 << (63 - DEPARTURE_BITS)) - 1;

/// The lists.
const STACK: usize = 0;
const QUEUE: usize = 1;

/// Bits of a frame: it fell from the stack into the queue.
const DEMOTED: u8 = 1;
/// It came into a full cache, and not back from a history.
const NEW: u8 = 2;
/// It was read ahead and has not been used.
const UNUSED: u8 = 4;
/// It was read ahead and comes back from a history.
const RETURNS: u8 = 8;

/// In an admission: the block comes back from a history. The uses of its former lives lie above.
const BACK: u64 = 1;

/// Cacheus. SR-LRU keeps blocks that are used again in a stack, and new ones, with those that fall from the stack, in a queue at
/// whose end it evicts; a use of a fallen block makes the stack larger, the return of a new one the queue. CR-LFU evicts the block
/// with the fewest uses, of equals the one used last, so that some of a loop stays. One of the two, drawn at random, chooses; a block that
/// comes back soon takes weight from the expert that evicted it.
///
/// 37 bytes a frame and 1.5 to 3 for its ghosts; a hit is a move in a list and up to log2 of the capacity steps in a heap. The draws are
/// the same every time. It follows the authors' program (github.com/sylab/cacheus) where paper and program differ.
///
/// ```
/// use larder_policy::{Cacheus, replay::Replay};
/// let mut cache = Replay::new(Cacheus::new(10)?)?;
/// for at in 0..1000 {
///     cache.access(at % 5, at);
/// }
/// assert_eq!(cache.misses(), 5);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Cacheus {
    lists: Lists<2>,
    /// By uses, then the latest use first.
    frequency: Heap<(u32, Reverse<u64>)>,
    ghosts: Ghosts<3>,
    /// SR-LRU's weight; CR-LFU's is the rest of one.
    weight: f64,
    rate: Rate,
    /// Frames that the queue should have; the stack should have the others.
    queue_target: usize,
    demoted: usize,
    /// The cache has been full.
    warm: bool,
    now: u64,
    dice: Dice,
    capacity: usize,
}

fn ghosts_of(frames: usize) -> usize {
    (frames / GHOST_SHARE).max(1)
}

fn first_target(frames: usize) -> usize {
    ((QUEUE_SHARE * frames as f64).round() as usize).max(1)
}

/// How far the border moves: by the ratio of what speaks for the move to what does not, rounded, and by one at least.
fn step(many: usize, few: usize) -> usize {
    let few = few.max(1);
    ((2 * many + few) / (2 * few)).max(1)
}

impl Cacheus {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            lists: Lists::new(frames)?,
            frequency: Heap::new(frames)?,
            ghosts: Ghosts::new(ghosts_of(frames))?,
            weight: 0.5,
            rate: Rate::new(frames),
            queue_target: first_target(frames),
            demoted: 0,
            warm: false,
            now: 0,
            dice: Dice::new(),
        })
    }

    fn stack_target(&self) -> usize {
        self.capacity - self.queue_target
    }

    fn regret(&mut self, expert: usize) {
        let mut weights = [self.weight, 1.0 - self.weight];
        weights[expert] *= (-self.rate.value()).exp();
        let share = weights[SR_LRU] / (weights[SR_LRU] + weights[CR_LFU]);
        self.weight = share.clamp(1.0 - MOST, MOST);
    }

    /// A new block came back that SR-LRU had put out: the queue was too short.
    fn lengthen_queue(&mut self) {
        let by = step(self.demoted, self.ghosts.len(NEW_ONES));
        let most = (self.capacity - 1).max(1);
        self.queue_target = (self.queue_target + by).min(most);
    }

    /// A block that fell from the stack is used: the stack was too small.
    fn shorten_queue(&mut self) {
        let by = step(self.ghosts.len(NEW_ONES), self.demoted);
        self.queue_target = self.queue_target.saturating_sub(by).max(1);
    }

    #[inline]
    fn used(&mut self, frame: Frame, uses: u32) {
        self.now += 1;
        self.frequency.set(frame, (uses, Reverse(self.now)));
    }

    /// Lets the oldest of the stack fall until fewer than `room` are left.
    fn limit_stack(&mut self, room: usize) {
        while self.lists.len(STACK) >= room
            && let Some(frame) = self.lists.oldest(STACK)
        {
            let bits = self.lists.bits(frame) | DEMOTED;
            self.lists.move_to(frame, QUEUE, bits);
            self.demoted += 1;
        }
    }

    /// The first use of a block that is in no list: here, or when it was read ahead, later.
    fn first_place(&mut self, frame: Frame, returns: bool) {
        let queued = self.lists.len(QUEUE);
        let stack = !self.warm && queued == 0 && self.lists.len(STACK) < self.stack_target();
        let new = self.warm || queued >= self.queue_target;
        match (returns || stack, new) {
            (true, _) => self.lists.push(frame, STACK, 0),
            (false, new) => self.lists.push(frame, QUEUE, if new { NEW } else { 0 }),
        }
    }

    /// Takes a frame out of its list; its bits without [`DEMOTED`].
    fn unlist(&mut self, frame: Frame) -> u8 {
        let bits = self.lists.bits(frame);
        self.lists.remove(frame);
        self.demoted -= usize::from(bits & DEMOTED != 0);
        bits & !DEMOTED
    }

    #[cold]
    fn first_use(&mut self, frame: Frame) {
        self.rate.access(false, &mut self.dice);
        let (uses, _) = self.frequency.key(frame);
        let returns = self.lists.bits(frame) & RETURNS != 0;
        self.used(frame, if returns { uses } else { 1 });
        self.unlist(frame);
        self.first_place(frame, returns);
        self.limit_stack(self.stack_target());
    }

    /// A ghost of a block that its expert put out.
    fn leave_ghost(&mut self, expert: usize, frame: Frame) -> Shadow {
        self.ghosts.keep(expert, ghosts_of(self.capacity) - 1);
        let shadow = self.ghosts.add(expert).get() & ((1 << DEPARTURE_BITS) - 1);
        if expert == SR_LRU {
            let same = self.ghosts.add(NEW_ONES);
            if self.lists.bits(frame) & NEW == 0 {
                self.ghosts.take(Some(same));
            }
            self.ghosts.forget_before(NEW_ONES, SR_LRU);
        }
        let uses = u64::from(self.frequency.key(frame).0.min(MOST_USES));
        Shadow::new(uses << DEPARTURE_BITS | shadow)
    }
}

impl Policy for Cacheus {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.lists.total()
    }

    /// Whether it comes back from a history, and the uses of its former lives.
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let ahead = reason == Reason::Readahead;
        if !ahead {
            self.rate.access(false, &mut self.dice);
        }
        let Some(bits) = shadow.map(Shadow::get) else {
            return Admission(0);
        };
        let Some(expert) = self.ghosts.take_short(bits, DEPARTURE_BITS) else {
            return Admission(0);
        };
        if expert == SR_LRU {
            // The same number, in the list of the new ones.
            let was_new = self
                .ghosts
                .take_short(bits | NEW_ONES as u64, DEPARTURE_BITS);
            self.ghosts.forget_before(NEW_ONES, SR_LRU);
            if was_new.is_some() && !ahead {
                self.lengthen_queue();
            }
        }
        if !ahead {
            self.regret(expert);
        }
        Admission(bits >> DEPARTURE_BITS << 1 | BACK)
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let returns = arrival.admission.0 & BACK != 0;
        let former = (arrival.admission.0 >> 1) as u32;
        if arrival.reason == Reason::Readahead {
            let bits = UNUSED | if returns { RETURNS } else { 0 };
            self.used(frame, former);
            self.lists.push(frame, QUEUE, bits);
            return;
        }
        self.used(frame, if returns { former } else { 1 });
        self.first_place(frame, returns);
        if self.warm || returns {
            self.limit_stack(self.stack_target());
        }
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        let bits = self.lists.bits(frame);
        if bits & UNUSED != 0 {
            return self.first_use(frame);
        }
        self.rate.access(true, &mut self.dice);
        let (uses, _) = self.frequency.key(frame);
        self.used(frame, uses.saturating_add(1));
        if self.lists.list_of(frame) == STACK {
            self.lists.renew(frame, STACK);
            return;
        }
        if bits & DEMOTED != 0 {
            self.shorten_queue();
        }
        let bits = self.unlist(frame);
        self.lists.push(frame, STACK, bits);
        self.limit_stack(self.stack_target() + 1);
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let oldest = self.lists.unpinned_of(QUEUE, STACK, frames);
            let Some((_, rarest)) = self.frequency.first_unpinned(frames) else {
                return gone;
            };
            // All may have been pinned when the lists were looked at, and one unpinned before the heap was.
            let oldest = oldest.unwrap_or(rarest);
            let drawn = usize::from(self.dice.part() >= self.weight);
            let victim = [oldest, rarest][drawn];
            self.warm = true;
            // Both said so: there is nothing to regret.
            let shadow = (oldest != rarest).then(|| self.leave_ghost(drawn, victim));
            self.remove(victim);
            frames.evicted(victim, shadow);
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        self.unlist(frame);
        self.frequency.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.lists.park(frame);
        self.frequency.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.lists.unpark(frame);
        self.frequency.unpark(frame);
        self.limit_stack(self.stack_target() + 1);
    }

    /// Forgets all ghosts and what the rate has learnt; the weights stay.
    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.lists.grow(capacity(frames)?)?;
        self.frequency.grow(frames)?;
        self.ghosts.grow(ghosts_of(frames))?;
        self.capacity = frames;
        for list in [SR_LRU, CR_LFU, NEW_ONES] {
            self.ghosts.keep(list, 0);
        }
        self.rate = Rate::new(frames);
        self.queue_target = first_target(frames);
        self.limit_stack(self.stack_target() + 1);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.lists
            .check("cacheus", |list, bits| list == QUEUE || bits & DEMOTED == 0)?;
        self.frequency.check()?;
        self.ghosts.check()?;
        if self.len() != self.frequency.len() {
            return Err("cacheus: the experts know different blocks".to_owned());
        }
        let demoted = |frame: &Frame| self.lists.bits(*frame) & DEMOTED != 0;
        let fell = self.lists.iter(QUEUE).filter(demoted).count();
        if fell > self.demoted || self.demoted - fell > self.lists.total() - self.lists.unparked() {
            return Err(format!("cacheus: not {} fell", self.demoted));
        }
        if self.ghosts.len(NEW_ONES) > self.ghosts.len(SR_LRU) {
            return Err("cacheus: more new ghosts than ghosts".to_owned());
        }
        if !(1.0 - MOST..=MOST).contains(&self.weight) {
            return Err(format!("cacheus: a weight of {}", self.weight));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.lists.bytes() + self.frequency.bytes() + self.ghosts.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("weight of sr-lru", self.weight),
            ("weight of cr-lfu", 1.0 - self.weight),
            ("learning rate", self.rate.value()),
            ("queue, target", self.queue_target as f64),
            ("demoted", self.demoted as f64),
            ("new ghosts", self.ghosts.len(NEW_ONES) as f64),
        ]
    }
}
