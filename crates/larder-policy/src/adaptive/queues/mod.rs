//! The two queues.

#[cfg(test)]
mod tests;

use super::first::First;
use super::ghosts::Ghosts;
use super::knobs::{Knobs, WINDOW, most_ghosts, share};
use crate::{Frame, FrameState, PolicyError};
use larder_base::list::{Linked, List, NONE, ShortLinks};
use larder_base::table::{NoMemory, grow, table};

/// The bits of a frame's state.
const USES: u8 = 0b11;
/// Waits apart, and its next use takes it to the main queue.
const RETURNING: u8 = 1 << 2;
const SAMPLED: u8 = 1 << 3;
const IN: u8 = 1 << 4;
/// Above these bits is the queue.
const QUEUE_SHIFT: u32 = 6;
const QUEUE: u8 = 0b11 << QUEUE_SHIFT;
const SMALL: u8 = 0;
/// Came while the cache filled, and waits in a queue of its own.
const FIRST: u8 = 1 << QUEUE_SHIFT;
const MAIN: u8 = 2 << QUEUE_SHIFT;
/// Waits apart.
const WAITS: u8 = 3 << QUEUE_SHIFT;

/// The place of a queue in the array of all.
#[inline]
fn place(queue: u8) -> usize {
    usize::from(queue >> QUEUE_SHIFT)
}

/// Links of frames, and what may happen to these frames.
pub(super) trait FrameLinks: Linked + Sized {
    /// Some are read ahead or may not leave in their turn, so they wait apart.
    const WAIT: bool;

    fn new(frames: usize) -> Result<Self, NoMemory>;

    fn bytes(&self) -> usize;
}

/// Of a cache.
impl FrameLinks for ShortLinks {
    const WAIT: bool = true;

    fn new(frames: usize) -> Result<Self, NoMemory> {
        Self::new(frames)
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}

/// The queues of a cache.
pub(super) type Queues = QueuesOver<ShortLinks>;

/// What left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Out {
    pub(super) frame: Frame,
    /// Its number among the ghosts, if it is remembered.
    pub(super) ghost: Option<u32>,
    pub(super) sampled: bool,
}

/// What changes when frames that were settled no longer are.
pub(super) type Border = (u32, u32, bool);

/// A block that waits apart does so until a number of blocks equal to this part of the frames has come.
const PATIENCE: usize = 4;

/// With more parked frames than this part the miniatures, in which all may leave, say nothing about the cache.
const CONFINED: usize = 8;

/// A small FIFO before a CLOCK, with fixed proportions, or one LRU list; a FIFO of the blocks that came while the cache filled, which ends up
/// empty for good. The rule has queues over its frames, and each miniature has its own.
///
/// A FIFO beside them holds blocks that wait for a while. A block that is read ahead will almost surely be used soon; in the small queue,
/// which may be a hundredth of the frames, many readers would push out each other's blocks before the first use. A block that may not
/// leave when its turn comes, because it is dirty or in use, may soon be clean or removed; in the small queue such blocks would take the
/// place of new ones.
#[derive(Debug)]
pub(super) struct QueuesOver<L> {
    links: L,
    /// By [`place`].
    queues: [List; 4],
    state: Vec<u8>,
    /// In the small queue and the first one: the arrival's number there. In the main queue: how many had left at the last use. Of those
    /// that wait apart: how many had come to the cache.
    stamp: Vec<u32>,
    ghosts: Ghosts,
    worth: First,
    /// None had to leave yet.
    fills: bool,
    /// In the small queue and the first one.
    arrivals: u32,
    /// In the cache.
    came: u32,
    capacity: usize,
    /// Frames that may leave: all but the parked ones. Proportions and patience are shares of it, since an owner may park nine tenths.
    room: usize,
    knobs: Knobs,
    /// The small queue is to have all frames, in the order of the last use.
    lru: bool,
    /// Frames of the small queue, from the knobs.
    target: usize,
    window: u32,
}

impl<L: FrameLinks> QueuesOver<L> {
    pub(super) fn new(capacity: usize, knobs: Knobs) -> Result<Self, PolicyError> {
        let ghosts = Ghosts::new(most_ghosts(capacity))?;
        let mut core = Self {
            links: L::new(capacity)?,
            queues: [const { List::new() }; 4],
            state: table(capacity, 0)?,
            stamp: table(capacity, 0)?,
            worth: First::new(capacity, ghosts.numbers())?,
            ghosts,
            fills: true,
            arrivals: 0,
            came: 0,
            capacity,
            room: capacity,
            knobs,
            lru: false,
            target: 0,
            window: 0,
        };
        core.set(knobs);
        Ok(core)
    }

    /// Takes other proportions; the queues follow with the evictions to come.
    pub(super) fn set(&mut self, knobs: Knobs) {
        self.knobs = knobs;
        self.lru = knobs.is_lru();
        self.ghosts.limit(share(self.capacity, knobs.ghosts));
        self.fit();
    }

    /// Takes the proportions of the frames that are not parked.
    #[inline]
    fn fit(&mut self) {
        self.room = match L::WAIT {
            true => self.capacity.saturating_sub(self.parked()),
            false => self.capacity,
        };
        self.target = share(self.room, self.knobs.small).max(1);
        self.window = match self.lru {
            true => 0,
            false => self.target as u32 / WINDOW,
        };
    }

    fn parked(&self) -> usize {
        self.queue(WAITS).parked()
    }

    /// Are so many frames parked that the cache cannot be compared with one in which all may leave?
    #[inline]
    pub(super) fn is_confined(&self) -> bool {
        self.parked() > self.capacity / CONFINED
    }

    /// A block is to come that left as ghost number `at`: does it belong to the main queue?
    pub(super) fn returns(&mut self, at: u32) -> bool {
        if !self.ghosts.take(at) {
            return false;
        }
        if !self.queue(FIRST).is_empty() {
            // Would it be here if the first blocks had left in its stead?
            let away = self.ghosts.evictions().wrapping_sub(at);
            if (away as usize) < self.room {
                self.worth.returned(at);
            } else if self.knobs.contest && self.worth.all_stayed() {
                return false;
            }
        }
        let main = self.queue(MAIN).len() + self.queue(WAITS).len() + self.target;
        let full = self.len() >= self.capacity && main >= self.capacity;
        let oldest = self.queue(MAIN).oldest();
        if !self.knobs.contest || !full || oldest == NONE {
            return true;
        }
        let oldest = oldest as usize;
        if self.state[oldest] & USES == 0 {
            return true; // leaves next in any case
        }
        let now = self.ghosts.evictions();
        let away = now
            .wrapping_sub(at)
            .wrapping_add(self.queue(SMALL).len() as u32);
        let idle = now.wrapping_sub(self.stamp[oldest]);
        if idle <= away {
            return false;
        }
        self.state[oldest] &= !USES;
        true
    }

    pub(super) fn remembers(&self, at: u32) -> bool {
        self.ghosts.has(at)
    }

    #[inline]
    pub(super) fn insert(&mut self, frame: Frame, returns: bool, unused: bool) {
        let at = frame as usize;
        self.state[at] = IN;
        self.came = self.came.wrapping_add(1);
        match (unused, returns) {
            (false, true) => self.enter_again(frame),
            (false, false) => self.enter(frame),
            (true, _) => {
                self.state[at] |= if returns { RETURNING } else { 0 };
                self.wait(frame);
            }
        }
    }

    #[inline]
    fn queue(&self, queue: u8) -> &List {
        &self.queues[place(queue)]
    }

    /// Puts a frame that is in no queue into one.
    #[inline]
    fn push(&mut self, frame: Frame, queue: u8) {
        let state = &mut self.state[frame as usize];
        *state = *state & !QUEUE | queue;
        self.queues[place(queue)].push_newest(&mut self.links, frame);
    }

    fn enter_main(&mut self, frame: Frame) {
        let at = frame as usize;
        self.state[at] &= IN | SAMPLED;
        self.stamp[at] = self.ghosts.evictions();
        self.push(frame, MAIN);
    }

    /// A block that belongs to the main queue. Under LRU it is counted as used, so that it goes there when another setting follows.
    fn enter_again(&mut self, frame: Frame) {
        if self.lru {
            self.state[frame as usize] |= 1;
            self.enter_small(frame);
        } else {
            self.enter_main(frame);
        }
    }

    #[inline]
    fn enter_small(&mut self, frame: Frame) {
        self.arrivals = self.arrivals.wrapping_add(1);
        self.stamp[frame as usize] = self.arrivals;
        self.push(frame, SMALL);
    }

    fn wait(&mut self, frame: Frame) {
        let at = frame as usize;
        self.state[at] &= IN | SAMPLED | RETURNING;
        self.stamp[at] = self.came;
        self.push(frame, WAITS);
    }

    /// Has one waited for long enough?
    fn overdue(&self) -> bool {
        let oldest = self.queue(WAITS).oldest();
        oldest != NONE
            && self.came.wrapping_sub(self.stamp[oldest as usize])
                >= (self.room / PATIENCE).max(1) as u32
    }

    /// A block that is used and does not return: into the first queue while the cache fills, else into the small one.
    #[inline]
    fn enter(&mut self, frame: Frame) {
        if self.fills && self.len() + self.target < self.capacity {
            self.arrivals = self.arrivals.wrapping_add(1);
            self.stamp[frame as usize] = self.arrivals;
            self.push(frame, FIRST);
        } else {
            self.enter_small(frame);
        }
    }

    /// Says of a frame that its uses are to be shown to the miniatures.
    pub(super) fn mark_sampled(&mut self, frame: Frame) {
        self.state[frame as usize] |= SAMPLED;
    }

    pub(super) fn forget_samples(&mut self) {
        self.state.iter_mut().for_each(|state| *state &= !SAMPLED);
    }

    /// A use.
    #[inline]
    pub(super) fn touch(&mut self, frame: Frame) {
        let at = frame as usize;
        let state = self.state[at];
        if self.lru {
            self.renew(frame);
        } else if state & QUEUE == MAIN {
            let now = self.ghosts.evictions();
            if self.stamp[at] != now {
                self.stamp[at] = now;
            }
            if state & USES != USES {
                self.state[at] = state + 1;
            }
        } else if self.waits(frame) {
            self.awaited_use(frame);
        } else if state & USES != USES && self.arrivals.wrapping_sub(self.stamp[at]) >= self.window
        {
            if state & (QUEUE | USES) == FIRST {
                self.worth.used(self.stamp[at]);
            }
            self.state[at] = state + 1;
        }
    }

    /// A use under LRU: the block is the newest, whatever queue it is in.
    fn renew(&mut self, frame: Frame) {
        let at = frame as usize;
        let state = self.state[at];
        if self.waits(frame) {
            return self.awaited_use(frame);
        }
        if state & (QUEUE | USES) == FIRST {
            self.worth.used(self.stamp[at]);
        }
        let uses = (state & USES).min(USES - 1) + 1;
        if self.queue(SMALL).newest() == frame {
            self.state[at] = state & !USES | uses;
            return;
        }
        self.unlink(frame);
        self.state[at] = state & (IN | SAMPLED) | uses;
        self.enter_small(frame);
    }

    /// Would another use change nothing? Until something leaves or the state is otherwise changed.
    #[inline]
    pub(super) fn settled(&self, frame: Frame) -> bool {
        let at = frame as usize;
        let state = self.state[at];
        if self.lru {
            return state & USES == USES && self.queue(SMALL).newest() == frame;
        }
        if state & QUEUE == MAIN {
            return state & USES == USES && self.stamp[at] == self.ghosts.evictions();
        }
        let echo = self.arrivals.wrapping_sub(self.stamp[at]) < self.window;
        state & QUEUE != WAITS && (echo || state & USES == USES)
    }

    #[inline]
    pub(super) fn is_sampled(&self, frame: Frame) -> bool {
        self.state[frame as usize] & SAMPLED != 0
    }

    /// Under LRU?
    pub(super) fn rules_lru(&self) -> bool {
        self.lru
    }

    /// Waits apart?
    #[inline]
    pub(super) fn waits(&self, frame: Frame) -> bool {
        L::WAIT && self.state[frame as usize] & QUEUE == WAITS
    }

    /// Blocks that have come to the cache, modulo 2^32.
    #[inline]
    pub(super) fn came(&self) -> u32 {
        self.came
    }

    /// What changes when frames of the small queue or the first one that were [settled](Self::settled) no longer are.
    pub(super) fn border(&self) -> Border {
        (self.arrivals, self.window, self.lru)
    }

    /// The first use of what readahead brought is what an insertion on demand is to others.
    #[cold]
    fn awaited_use(&mut self, frame: Frame) {
        let at = frame as usize;
        let returns = self.state[at] & RETURNING != 0;
        self.queues[place(WAITS)].unlink(&mut self.links, frame);
        self.state[at] &= !RETURNING;
        if returns {
            self.enter_again(frame);
        } else {
            self.enter(frame);
        }
    }

    /// Takes one frame out, if one may leave. `ask` gets a frame and whether it has waited for long enough, so that it should be
    /// written if it is dirty.
    #[inline]
    pub(super) fn evict(&mut self, mut ask: impl FnMut(Frame, bool) -> FrameState) -> Option<Out> {
        let first_leaves = !self.queue(FIRST).is_empty() && self.first_leaves();
        self.fills = false;
        let mut looks = match L::WAIT {
            true => self.queue(WAITS).len() - self.queue(WAITS).parked(),
            false => 0,
        };
        loop {
            let frame = self.next(first_leaves, looks > 0)?;
            let at = frame as usize;
            let was = self.state[at];
            self.unlink(frame);
            if was & USES != 0 && !self.lru {
                if was & QUEUE == MAIN {
                    self.state[at] -= 1;
                    self.push(frame, MAIN);
                } else {
                    self.enter_main(frame);
                }
                continue;
            }
            let waited = L::WAIT && was & QUEUE == WAITS;
            let may_leave = match ask(frame, waited) {
                FrameState::Clean => true,
                FrameState::Dirty => waited && self.queue(WAITS).len() == self.len(),
                FrameState::Pinned => false,
            };
            if may_leave {
                let ghost = (was & QUEUE != MAIN).then(|| self.ghosts.push());
                return Some(self.out(frame, ghost));
            }
            // Of those that wait each is looked at once, whenever it came.
            if waited {
                looks -= 1;
            } else {
                looks += 1;
                self.state[at] |= RETURNING;
            }
            self.wait(frame);
        }
    }

    /// Is it the turn of one of the first blocks to leave?
    fn first_leaves(&mut self) -> bool {
        let leaves = self.worth.leaves(self.ghosts.evictions().wrapping_add(1));
        if self.worth.all_stayed() && self.queue(SMALL).len() > self.target {
            self.join_first();
        }
        leaves
    }

    /// Whose turn it is to leave, or to be looked at.
    fn next(&self, first_leaves: bool, may_wait: bool) -> Option<Frame> {
        let others = self.queue(FIRST).len() + self.queue(SMALL).len() + self.queue(MAIN).len();
        let [small, first, main, _] = &self.queues;
        let list = if may_wait && (self.overdue() || others == 0) {
            self.queue(WAITS)
        } else if self.lru && !main.is_empty() {
            main // Not used since LRU rules.
        } else if !first.is_empty() && (first_leaves || small.len() < self.target) {
            first
        } else if small.len() >= self.target || main.is_empty() {
            small
        } else {
            main
        };
        (!list.is_empty()).then(|| list.oldest())
    }

    /// The first ones stayed, and the small queue is longer than it is to be from now on: what is oldest there came next.
    fn join_first(&mut self) {
        let frame = self.queue(SMALL).oldest();
        self.queues[place(SMALL)].unlink(&mut self.links, frame);
        self.push(frame, FIRST);
    }

    fn out(&mut self, frame: Frame, ghost: Option<u32>) -> Out {
        let sampled = self.state[frame as usize] & SAMPLED != 0;
        self.state[frame as usize] = 0;
        Out {
            frame,
            ghost,
            sampled,
        }
    }

    /// A frame is not looked at until it is unparked. It waits apart, as one whose turn came while it had to stay.
    pub(super) fn park(&mut self, frame: Frame) {
        if !self.waits(frame) {
            self.unlink(frame);
            self.state[frame as usize] |= RETURNING;
            self.wait(frame);
        }
        self.queues[place(WAITS)].park(&mut self.links, frame);
        self.fit();
    }

    pub(super) fn unpark(&mut self, frame: Frame) {
        self.stamp[frame as usize] = self.came;
        self.queues[place(WAITS)].unpark(&mut self.links, frame);
        self.fit();
    }

    /// Takes a frame out whose block comes back with new contents. It leaves a ghost if it was used again.
    pub(super) fn invalidate(&mut self, frame: Frame) -> Out {
        self.unlink(frame);
        let used = self.state[frame as usize];
        let used = used & QUEUE == MAIN || used & (RETURNING | USES) != 0;
        let ghost = used.then(|| self.ghosts.push());
        self.out(frame, ghost)
    }

    /// Takes a frame out; true if it was sampled.
    pub(super) fn remove(&mut self, frame: Frame) -> bool {
        self.unlink(frame);
        self.out(frame, None).sampled
    }

    /// Takes a frame out of its queue.
    #[inline]
    fn unlink(&mut self, frame: Frame) {
        let queue = self.state[frame as usize] & QUEUE;
        self.queues[place(queue)].unlink(&mut self.links, frame);
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn len(&self) -> usize {
        self.queues.iter().map(List::len).sum()
    }

    pub(super) fn explain(&self) -> [(&'static str, f64); 6] {
        [
            ("first queue", self.queue(FIRST).len()),
            ("small queue", self.queue(SMALL).len()),
            ("small queue, target", self.target),
            ("main queue", self.queue(MAIN).len()),
            ("waiting", self.queue(WAITS).len()),
            ("ghosts", self.ghosts.len()),
        ]
        .map(|(name, value)| (name, value as f64))
    }

    /// The latest number of which the low `bits` are given.
    pub(super) fn number(&self, low: u32, bits: u32) -> u32 {
        let back = self.ghosts.evictions().wrapping_sub(low) & (u32::MAX >> (32 - bits));
        self.ghosts.evictions().wrapping_sub(back)
    }

    /// The same, if that ghost is still remembered.
    pub(super) fn ghost_of(&self, low: u32, bits: u32) -> Option<u32> {
        let at = self.number(low, bits);
        self.ghosts.has(at).then_some(at)
    }

    /// The same, of a ghost that did not come back.
    #[inline]
    pub(super) fn in_reach(&self, low: u32, bits: u32) -> bool {
        self.ghosts.in_reach(self.number(low, bits))
    }

    /// Bits of a number that say which ghost it is.
    pub(super) fn ghost_bits(&self) -> u32 {
        self.ghosts.bits()
    }

    pub(super) fn bytes(&self) -> usize {
        self.links.bytes()
            + self.state.capacity()
            + self.stamp.capacity() * size_of::<u32>()
            + self.ghosts.bytes()
            + self.worth.bytes()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (queue, name) in [
            (FIRST, "first queue"),
            (SMALL, "small queue"),
            (MAIN, "main queue"),
            (WAITS, "queue of those that wait"),
        ] {
            let list = self.queue(queue);
            list.check(&self.links, name)?;
            let wrong = |&frame: &Frame| self.state[frame as usize] & (QUEUE | IN) != queue | IN;
            if let Some(frame) = list.iter(&self.links).find(wrong) {
                return Err(format!("frame {frame} of the {name} says otherwise"));
            }
        }
        let said = self.state.iter().filter(|&&state| state & IN != 0).count();
        if said != self.len() {
            return Err(format!(
                "{said} frames are marked as in, {} are in the queues",
                self.len()
            ));
        }
        self.ghosts.check()
    }
}

impl Queues {
    pub(super) fn resize(&mut self, capacity: usize) -> Result<(), PolicyError> {
        let ghosts = Ghosts::new(most_ghosts(capacity))?;
        self.worth.resize(ghosts.numbers())?;
        self.links.grow(capacity)?;
        grow(&mut self.state, capacity, 0)?;
        grow(&mut self.stamp, capacity, 0)?;
        // Stamps count from the old ghosts on; what was remembered is lost.
        self.ghosts = ghosts.starting_at(self.ghosts.evictions());
        self.capacity = capacity;
        self.set(self.knobs);
        Ok(())
    }
}
