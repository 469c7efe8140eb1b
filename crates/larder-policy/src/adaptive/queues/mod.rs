//! The two queues.

mod lists;
#[cfg(test)]
mod tests;

pub(super) use lists::{Fifos, LinkedLists, Lists, Recency};

use super::first::First;
use super::ghosts::Ghosts;
use super::knobs::{Knobs, WINDOW, most_ghosts, share};
use crate::{Frame, FrameState, PolicyError};
use larder_base::list::NONE;

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
/// Came while the cache filled, and waits in a queue of its own. Under the expert by frequency this queue is the probation.
const FIRST: u8 = 1 << QUEUE_SHIFT;
const MAIN: u8 = 2 << QUEUE_SHIFT;
/// Waits apart.
const WAITS: u8 = 3 << QUEUE_SHIFT;

/// The state after a use that counts.
#[inline]
fn used_once_more(state: u8) -> u8 {
    state & !USES | ((state & USES).min(USES - 1) + 1)
}

/// The place of a queue in the array of all.
#[inline]
fn place(queue: u8) -> usize {
    usize::from(queue >> QUEUE_SHIFT)
}

/// The queues of a cache.
pub(super) type Queues = QueuesOver<LinkedLists>;

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

/// A block that waits apart does so until a number of blocks equal to this part of the frames has come. One that may not leave then
/// waits again.
const PATIENCE: usize = 4;
/// After so many more waits it should be written when its turn comes again: as many blocks have come as there are frames. Sooner it would
/// often belong to a file that a program is still writing, and be written in small pieces: on a disk that seeks, dbench with 64 clients
/// was 8 % slower in runs of 20 seconds.
const LAST_WAIT: u8 = 3;

/// Under the expert by frequency, blocks that were used in the probation take up to so many hundredths of what is behind the small
/// queue (W-TinyLFU, ACM ToS 2017).
const PROTECTED: usize = 80;
/// When it begins to rule, so many blocks an eviction go from a small queue that is too long to the probation.
const OVERFLOW: usize = 2;

/// With more parked frames than this part the miniatures, in which all may leave, say nothing about the cache.
const CONFINED: usize = 8;

/// A small FIFO before a CLOCK, with fixed proportions, or one LRU list; a FIFO of the blocks that came while the cache filled, which ends up
/// empty, and is used again when a loop is found. The rule has queues over its frames, and each miniature has its own.
///
/// A FIFO beside them holds blocks that wait for a while. A block that is read ahead will almost surely be used soon; in the small queue,
/// which may be a hundredth of the frames, many readers would push out each other's blocks before the first use. A block that may not
/// leave when its turn comes, because it is dirty or in use, may soon be clean or removed; in the small queue such blocks would take the
/// place of new ones.
#[derive(Debug)]
pub(super) struct QueuesOver<L> {
    /// The stamp of a frame: in the small queue and the first one, the arrival's number there. In the main queue, how many had left at
    /// the last use. Of those that wait apart, how many had come to the cache.
    lists: L,
    ghosts: Ghosts,
    worth: First,
    /// None had to leave yet.
    fills: bool,
    /// The expert by frequency has ruled: what is in the first queue was in its probation.
    probation: bool,
    /// The expert for loops took over. Where no first ones are left, it may have others, once.
    refills: bool,
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

impl<L: Lists> QueuesOver<L> {
    pub(super) fn new(capacity: usize, knobs: Knobs) -> Result<Self, PolicyError> {
        let ghosts = Ghosts::new(most_ghosts(capacity))?;
        let mut core = Self {
            lists: L::new(capacity)?,
            worth: First::new(capacity, ghosts.numbers())?,
            ghosts,
            fills: true,
            probation: false,
            refills: false,
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
        self.refills = knobs.is_for_loops() && !self.fills;
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
        self.window = match self.is_lru() {
            true => 0,
            false => self.target as u32 / WINDOW,
        };
    }

    fn parked(&self) -> usize {
        self.lists.parked()
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
        if self.knobs.frequency {
            return false;
        }
        if self.lists.len(FIRST) > 0 && !self.probation {
            // Would it be here if the first blocks had left in its stead?
            let away = self.ghosts.evictions().wrapping_sub(at);
            if (away as usize) < self.room {
                self.worth.returned(at);
            } else if self.knobs.contest && self.worth.all_stayed() {
                return false;
            }
        }
        let main = self.lists.len(MAIN) + self.lists.len(WAITS) + self.target;
        let full = self.len() >= self.capacity && main >= self.capacity;
        let oldest = self.lists.oldest(MAIN);
        if !self.knobs.contest || !full || oldest == NONE {
            return true;
        }
        let state = self.lists.state(oldest);
        if state & USES == 0 {
            return true; // leaves next in any case
        }
        let now = self.ghosts.evictions();
        let away = now
            .wrapping_sub(at)
            .wrapping_add(self.lists.len(SMALL) as u32);
        let idle = now.wrapping_sub(self.lists.stamp(oldest));
        if idle <= away {
            return false;
        }
        self.lists.set_state(oldest, state & !USES);
        true
    }

    pub(super) fn remembers(&self, at: u32) -> bool {
        self.ghosts.has(at)
    }

    #[inline]
    pub(super) fn insert(&mut self, frame: Frame, returns: bool, unused: bool) {
        if L::WAIT {
            self.came = self.came.wrapping_add(1);
        }
        if unused {
            self.wait(frame, if returns { IN | RETURNING } else { IN }, 0);
        } else if returns {
            self.enter_again(frame, IN);
        } else {
            self.enter(frame, IN);
        }
    }

    fn enter_main(&mut self, frame: Frame, state: u8) {
        self.lists
            .push(frame, MAIN, state & (IN | SAMPLED), self.ghosts.evictions());
    }

    /// A block that belongs to the main queue. Under LRU it is counted as used, so that it goes there when another setting follows.
    fn enter_again(&mut self, frame: Frame, state: u8) {
        if self.is_lru() {
            self.enter_small(frame, state | 1);
        } else {
            self.enter_main(frame, state);
        }
    }

    #[inline]
    fn enter_small(&mut self, frame: Frame, state: u8) {
        self.arrivals = self.arrivals.wrapping_add(1);
        self.lists.push(frame, SMALL, state, self.arrivals);
    }

    /// `times` is how often it has waited already, instead of its uses.
    fn wait(&mut self, frame: Frame, state: u8, times: u8) {
        let state = state & (IN | SAMPLED | RETURNING) | times;
        self.lists.push(frame, WAITS, state, self.came);
    }

    /// Has one waited for long enough?
    fn overdue(&self) -> bool {
        let oldest = self.lists.oldest(WAITS);
        oldest != NONE
            && self.came.wrapping_sub(self.lists.stamp(oldest))
                >= (self.room / PATIENCE).max(1) as u32
    }

    /// A block that is used and does not return: into the first queue while the cache fills, else into the small one.
    #[inline]
    fn enter(&mut self, frame: Frame, state: u8) {
        if self.fills && self.len() + self.target < self.capacity {
            self.arrivals = self.arrivals.wrapping_add(1);
            self.lists.push(frame, FIRST, state, self.arrivals);
        } else {
            self.enter_small(frame, state);
        }
    }

    /// Notes how often a frame's block came to the cache.
    #[inline]
    pub(super) fn set_count(&mut self, frame: Frame, count: u8) {
        self.lists.set_count(frame, count);
    }

    /// A use.
    #[inline]
    pub(super) fn touch(&mut self, frame: Frame) {
        L::touch(self, frame);
    }

    /// A use of a frame that does not wait, while LRU does not rule.
    #[inline]
    fn count_use(&mut self, frame: Frame) {
        let state = self.lists.state(frame);
        if state & QUEUE == MAIN {
            let now = self.ghosts.evictions();
            if self.lists.stamp(frame) != now {
                self.lists.set_stamp(frame, now);
            }
            if state & USES != USES {
                self.lists.set_state(frame, state + 1);
            }
        } else if state & USES != USES {
            let stamp = self.lists.stamp(frame);
            if self.arrivals.wrapping_sub(stamp) >= self.window {
                if state & (QUEUE | USES) == FIRST && !self.probation {
                    self.worth.used(stamp);
                }
                self.lists.set_state(frame, state + 1);
            }
        }
    }

    /// Under LRU?
    #[inline]
    pub(super) fn is_lru(&self) -> bool {
        L::LRU.unwrap_or(self.lru)
    }

    /// Blocks that have come to the cache, modulo 2^32.
    #[inline]
    pub(super) fn came(&self) -> u32 {
        self.came
    }

    /// What changes when frames of the small queue or the first one that were [settled](Self::settled) no longer are.
    pub(super) fn border(&self) -> Border {
        (self.arrivals, self.window, self.is_lru())
    }

    /// Takes one frame out, if one may leave. `ask` gets a frame and whether it has waited for so long that it should be written if it is
    /// dirty.
    #[inline]
    pub(super) fn evict(&mut self, mut ask: impl FnMut(Frame, bool) -> FrameState) -> Option<Out> {
        let frequency = self.knobs.frequency;
        if frequency {
            self.overflow();
        }
        let first_leaves = !self.probation && self.first_leaves();
        self.fills = false;
        let mut looks = match L::WAIT {
            true => self.lists.len(WAITS) - self.lists.parked(),
            false => 0,
        };
        loop {
            let queue = match frequency {
                true => self.next_by_frequency(looks > 0),
                false => self.next(first_leaves, looks > 0),
            };
            let (frame, was) = self.lists.pop(queue)?;
            if was & USES != 0 && !self.is_lru() && queue != WAITS {
                if queue == MAIN {
                    self.lists
                        .push(frame, MAIN, was - 1, self.lists.stamp(frame));
                } else {
                    self.enter_main(frame, was);
                }
                continue;
            }
            let waited = L::WAIT && queue == WAITS;
            let may_leave = match ask(frame, waited && was & USES == LAST_WAIT) {
                FrameState::Clean => true,
                FrameState::Dirty => waited && self.lists.len(WAITS) == self.len(),
                FrameState::Pinned => false,
            };
            if may_leave {
                let remembered = queue != MAIN && !(frequency && queue == FIRST);
                let ghost = remembered.then(|| self.ghosts.push());
                return Some(Self::out(frame, was, ghost));
            }
            // Of those that wait each is looked at once, whenever it came.
            if waited {
                looks -= 1;
                self.wait(frame, was, (was & USES).min(LAST_WAIT - 1) + 1);
            } else {
                looks += 1;
                self.wait(frame, was | RETURNING, 0);
            }
        }
    }

    /// Is it the turn of one of the first blocks to leave? Before, where the small queue is too long, its oldest block joins them.
    #[inline]
    fn first_leaves(&mut self) -> bool {
        let long = self.lists.len(SMALL) > self.target;
        if self.lists.len(FIRST) == 0 {
            // In a loop none comes back soon enough for the main queue, which alone could take the frames.
            if !long || !self.refills {
                return false;
            }
            self.refills = false;
            let before = self.lists.stamp(self.lists.oldest(SMALL)).wrapping_sub(1);
            self.worth.begin_anew(before, self.ghosts.evictions());
        }
        let leaves = self.worth.leaves(self.ghosts.evictions().wrapping_add(1));
        if long && self.worth.all_stayed() {
            self.join_first();
        }
        leaves
    }

    /// The queue whose oldest frame is to leave, or to be looked at. A few blocks of the small queue that wait take no place from the first
    /// ones: in a loop each of these that left would be missed next, and another one would leave for it.
    #[inline]
    fn next(&self, first_leaves: bool, may_wait: bool) -> u8 {
        let [small, first, main] = [SMALL, FIRST, MAIN].map(|queue| self.lists.len(queue));
        let waiting = match L::WAIT && !self.is_lru() {
            true => (self.lists.len(WAITS) - self.lists.parked()).min(self.target / 4),
            false => 0,
        };
        if may_wait && (self.overdue() || small + first + main == 0) {
            WAITS
        } else if self.is_lru() && main > 0 {
            MAIN // Not used since LRU rules.
        } else if first > 0 && (first_leaves || small + waiting < self.target || small == 0) {
            FIRST
        } else if small >= self.target || main == 0 || first > 0 {
            SMALL
        } else {
            MAIN
        }
    }

    /// The small queue gives what is too much for the expert by frequency to the probation.
    #[inline(never)]
    fn overflow(&mut self) {
        self.probation = true;
        for _ in 0..OVERFLOW {
            if self.lists.len(SMALL) > self.target
                && let Some((frame, state)) = self.lists.pop(SMALL)
            {
                self.enter_probation(frame, state);
            }
        }
    }

    /// As the newest there, and the correlation window is over.
    fn enter_probation(&mut self, frame: Frame, state: u8) {
        let stamp = self.arrivals.wrapping_sub(self.capacity as u32);
        self.lists.push(frame, FIRST, state, stamp);
    }

    /// What [`next`](Self::next) is under the expert by frequency: the oldest of the small queue leaves, or if it came more often than the
    /// oldest of the probation, it goes there in its stead. The oldest frame of the queue counts as unused.
    #[inline(never)]
    fn next_by_frequency(&mut self, may_wait: bool) -> u8 {
        let small = self.lists.len(SMALL);
        let behind = self.lists.len(FIRST) + self.lists.len(MAIN);
        if may_wait && (self.overdue() || small + behind == 0) {
            return WAITS;
        }
        if behind == 0 {
            return self.unused(SMALL);
        }
        self.judge_probation();
        if small < self.target.max(1) {
            return FIRST;
        }
        let newcomer = self.lists.oldest(SMALL);
        if self.lists.count(newcomer) <= self.lists.count(self.lists.oldest(FIRST)) {
            return self.unused(SMALL);
        }
        if let Some((frame, state)) = self.lists.pop(SMALL) {
            self.enter_probation(frame, state & !USES);
        }
        FIRST
    }

    /// The queue, after the uses of its oldest frame are forgotten.
    fn unused(&mut self, queue: u8) -> u8 {
        let oldest = self.lists.oldest(queue);
        if oldest != NONE {
            let state = self.lists.state(oldest);
            self.lists.set_state(oldest, state & !USES);
        }
        queue
    }

    /// Moves used blocks from the probation to the main queue, and from there what is too much and unused back, until the oldest of the probation
    /// is unused. One is behind the small queue.
    fn judge_probation(&mut self) {
        let most = self.room.saturating_sub(self.target) * PROTECTED / 100;
        loop {
            if self.lists.len(FIRST) == 0 || self.lists.len(MAIN) > most {
                let Some((frame, was)) = self.lists.pop(MAIN) else {
                    return;
                };
                if was & USES == 0 {
                    self.enter_probation(frame, was);
                } else {
                    let stamp = self.lists.stamp(frame);
                    self.lists.push(frame, MAIN, was - 1, stamp);
                }
            } else if self.lists.state(self.lists.oldest(FIRST)) & USES == 0 {
                return;
            } else if let Some((frame, was)) = self.lists.pop(FIRST) {
                self.enter_main(frame, was);
            }
        }
    }

    /// The small queue is longer than it is to be from now on: what is oldest there came next.
    fn join_first(&mut self) {
        if let Some((frame, state)) = self.lists.pop(SMALL) {
            let stamp = self.lists.stamp(frame);
            self.lists.push(frame, FIRST, state, stamp);
        }
    }

    #[inline]
    fn out(frame: Frame, was: u8, ghost: Option<u32>) -> Out {
        Out {
            frame,
            ghost,
            sampled: was & SAMPLED != 0,
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn len(&self) -> usize {
        [SMALL, FIRST, MAIN, WAITS]
            .map(|queue| self.lists.len(queue))
            .iter()
            .sum()
    }

    pub(super) fn explain(&self) -> [(&'static str, f64); 6] {
        [
            ("first queue", self.lists.len(FIRST)),
            ("small queue", self.lists.len(SMALL)),
            ("small queue, target", self.target),
            ("main queue", self.lists.len(MAIN)),
            ("waiting", self.lists.len(WAITS)),
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

    /// The latest ghost's number, and how many up to it are remembered if they did not come back.
    #[inline]
    pub(super) fn reach(&self) -> (u32, u32) {
        self.ghosts.reach()
    }

    /// Bits of a number that say which ghost it is.
    pub(super) fn ghost_bits(&self) -> u32 {
        self.ghosts.bits()
    }

    pub(super) fn bytes(&self) -> usize {
        self.lists.bytes() + self.ghosts.bytes() + self.worth.bytes()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.lists.check()?;
        self.ghosts.check()
    }
}

impl Queues {
    /// Says of a frame that its uses are to be shown to the miniatures.
    pub(super) fn mark_sampled(&mut self, frame: Frame) {
        let state = self.lists.state(frame);
        self.lists.set_state(frame, state | SAMPLED);
    }

    /// From now on frames have counts; what is in has come once.
    pub(super) fn begin_to_count(&mut self) -> Result<(), PolicyError> {
        Ok(self.lists.begin_to_count()?)
    }

    pub(super) fn forget_counts(&mut self) {
        self.lists.forget_counts();
    }

    pub(super) fn forget_samples(&mut self) {
        self.lists.forget_samples(SAMPLED);
    }

    /// A use under LRU: the block is the newest, whatever queue it is in.
    #[inline]
    fn renew(&mut self, frame: Frame) {
        let state = self.lists.state(frame);
        if state & QUEUE != SMALL {
            return self.join_small(frame, state);
        }
        self.lists.set_state(frame, used_once_more(state));
        if self.lists.renew(frame, SMALL) {
            self.arrivals = self.arrivals.wrapping_add(1);
            self.lists.set_stamp(frame, self.arrivals);
        }
    }

    /// A use under LRU of a block that came under another rule, or waits.
    fn join_small(&mut self, frame: Frame, state: u8) {
        if state & QUEUE == WAITS {
            return self.awaited_use(frame);
        }
        if state & (QUEUE | USES) == FIRST && !self.probation {
            self.worth.used(self.lists.stamp(frame));
        }
        self.lists.unlink(frame);
        self.enter_small(frame, used_once_more(state & (IN | SAMPLED | USES)));
    }

    /// Would another use change nothing? Until something leaves or the state is otherwise changed.
    #[inline]
    pub(super) fn settled(&self, frame: Frame) -> bool {
        if self.lru {
            // A use of another frame changes the order.
            return false;
        }
        let state = self.lists.state(frame);
        if state & QUEUE == MAIN {
            return state & USES == USES && self.lists.stamp(frame) == self.ghosts.evictions();
        }
        let echo = self.arrivals.wrapping_sub(self.lists.stamp(frame)) < self.window;
        state & QUEUE != WAITS && (echo || state & USES == USES)
    }

    #[inline]
    pub(super) fn is_sampled(&self, frame: Frame) -> bool {
        self.lists.state(frame) & SAMPLED != 0
    }

    /// Waits apart?
    #[inline]
    pub(super) fn waits(&self, frame: Frame) -> bool {
        self.lists.state(frame) & QUEUE == WAITS
    }

    /// The first use of what readahead brought is what an insertion on demand is to others.
    #[cold]
    fn awaited_use(&mut self, frame: Frame) {
        let state = self.lists.unlink(frame) & !USES;
        if state & RETURNING != 0 {
            self.enter_again(frame, state & !RETURNING);
        } else {
            self.enter(frame, state);
        }
    }

    /// A frame is not looked at until it is unparked. It waits apart, as one whose turn came while it had to stay.
    pub(super) fn park(&mut self, frame: Frame) {
        if !self.waits(frame) {
            let state = self.lists.unlink(frame);
            self.wait(frame, state | RETURNING, 0);
        }
        self.lists.park(frame);
        self.fit();
    }

    pub(super) fn unpark(&mut self, frame: Frame) {
        self.lists.set_stamp(frame, self.came);
        self.lists.unpark(frame);
        self.fit();
    }

    /// Takes a frame out whose block comes back with new contents. It leaves a ghost if it was used again.
    pub(super) fn invalidate(&mut self, frame: Frame) -> Out {
        let was = self.lists.unlink(frame);
        let used = match was & QUEUE {
            MAIN => true,
            WAITS => was & RETURNING != 0,
            _ => was & USES != 0,
        };
        let ghost = used.then(|| self.ghosts.push());
        Self::out(frame, was, ghost)
    }

    /// Takes a frame out; true if it was sampled.
    pub(super) fn remove(&mut self, frame: Frame) -> bool {
        self.lists.unlink(frame) & SAMPLED != 0
    }

    pub(super) fn resize(&mut self, capacity: usize) -> Result<(), PolicyError> {
        let ghosts = Ghosts::new(most_ghosts(capacity))?;
        self.worth.resize(ghosts.numbers())?;
        self.lists.grow(capacity)?;
        // Stamps count from the old ghosts on; what was remembered is lost.
        self.ghosts = ghosts.starting_at(self.ghosts.evictions());
        self.capacity = capacity;
        self.set(self.knobs);
        Ok(())
    }
}
