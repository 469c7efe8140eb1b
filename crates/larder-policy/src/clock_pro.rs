//! CLOCK-Pro: LIRS as a clock with three hands.

use super::capacity::capacity;
use super::ring::Ring;
use super::{
    Admission, Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow,
    Touch,
};
use larder_base::list::NONE;
use larder_base::table::{grow, table};

/// The least m_c, and the first: a hundredth of the capacity.
const LEAST_COLD_SHARE: usize = 100;

/// What a page of the clock is, in bits; without `HOT` it is cold.
const HOT: u8 = 1;
/// Its test period runs.
const TEST: u8 = 2;
const USED: u8 = 4;
/// Read ahead and not used.
const UNUSED: u8 = 8;
/// The same, and its test period ran when it was read.
const UNUSED_BACK: u8 = 16;

/// CLOCK-Pro with as many ghosts as frames. The clock begins at the hot hand: where that moves on, it leaves the page at the head,
/// where new pages come in. A page of the clock is a frame or a ghost and has a number of its own: 38 bytes a frame. A hit is two
/// loads, a comparison and, the first time, a store.
///
/// ```
/// use larder_policy::{ClockPro, replay::Replay};
/// let mut cache = Replay::new(ClockPro::new(90)?)?;
/// for at in 0..1000 {
///     cache.access(at % 100, at); // a loop that does not fit
/// }
/// assert!(cache.hits() > 500);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct ClockPro {
    ring: Ring,
    /// By page.
    states: Vec<u8>,
    /// By frame: its page.
    page_of: Vec<u32>,
    hand_cold: u32,
    hand_test: u32,
    hot: usize,
    cold: usize,
    /// Of these, how many are parked, and are not in the ring.
    hot_parked: usize,
    cold_parked: usize,
    ghosts: usize,
    /// m_c: how many resident cold pages there should be.
    cold_share: usize,
    capacity: usize,
}

impl ClockPro {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        let mut rule = Self {
            capacity: capacity(frames)?,
            ring: Ring::new(pages_of(frames))?,
            states: table(pages_of(frames), 0)?,
            page_of: table(frames, NONE)?,
            hand_cold: NONE,
            hand_test: NONE,
            hot: 0,
            cold: 0,
            ghosts: 0,
            hot_parked: 0,
            cold_parked: 0,
            cold_share: 0,
        };
        rule.cold_share = rule.least_cold();
        Ok(rule)
    }

    fn least_cold(&self) -> usize {
        (self.capacity / LEAST_COLD_SHARE).max(1)
    }

    /// A test period has shown a use, or none.
    fn learn(&mut self, used: bool) {
        self.cold_share = if used {
            (self.cold_share + 1).min(self.capacity)
        } else {
            (self.cold_share - 1).max(self.least_cold())
        };
    }

    /// A page enters at the head.
    fn enter(&mut self, frame: Frame, state: u8) {
        let page = self.ring.enter(frame);
        self.states[page as usize] = state;
        self.page_of[frame as usize] = page;
        if state & HOT != 0 {
            self.hot += 1;
        } else {
            self.cold += 1;
        }
        self.cool();
    }

    /// Takes a page out of the clock; hands that point to it go on.
    fn leave(&mut self, page: u32) {
        self.pass(page);
        self.ring.leave(page);
    }

    /// Hands that point to a page go on.
    fn pass(&mut self, page: u32) {
        for hand in [&mut self.hand_cold, &mut self.hand_test] {
            if *hand == page {
                *hand = self.ring.next_but(page);
            }
        }
    }

    /// How many hot or cold pages are parked, as this page is.
    fn parked_like(&mut self, page: u32) -> &mut usize {
        match self.states[page as usize] & HOT {
            0 => &mut self.cold_parked,
            _ => &mut self.hot_parked,
        }
    }

    fn becomes_hot(&mut self, page: u32) {
        self.states[page as usize] = HOT;
        self.cold -= 1;
        self.hot += 1;
        self.ring.renew(page);
        self.cool();
    }

    /// The hot hand: makes hot pages cold until no more are hot than should be.
    fn cool(&mut self) {
        while self.hot > self.capacity - self.cold_share && self.hot > self.hot_parked {
            self.move_hot();
        }
    }

    /// One step of the hot hand.
    fn move_hot(&mut self) {
        let page = self.ring.oldest();
        let state = self.states[page as usize];
        if state & HOT == 0 {
            self.end_test(page);
            if self.ring.is_ghost(page) {
                self.ghosts -= 1;
                self.leave(page);
                return;
            }
        } else if state & USED != 0 {
            self.states[page as usize] = HOT;
        } else {
            self.states[page as usize] = 0;
            self.hot -= 1;
            self.cold += 1;
        }
        self.ring.renew(page);
    }

    fn end_test(&mut self, page: u32) {
        let state = &mut self.states[page as usize];
        if *state & TEST != 0 {
            let used = *state & USED != 0;
            *state &= !TEST;
            if !used {
                self.learn(false);
            }
        }
    }

    /// The test hand: ends test periods until a ghost is gone.
    fn forget_ghost(&mut self) {
        loop {
            let page = match self.hand_test {
                NONE => self.ring.oldest(),
                page => page,
            };
            self.hand_test = self.ring.next(page);
            if self.states[page as usize] & HOT != 0 {
                continue;
            }
            self.end_test(page);
            if self.ring.is_ghost(page) {
                self.ghosts -= 1;
                self.leave(page);
                return;
            }
        }
    }

    /// The cold hand has found a page that was not used.
    fn leave_memory<F: Frames>(&mut self, page: u32, frames: &mut F) {
        let frame = self.ring.frame(page);
        self.cold -= 1;
        if self.states[page as usize] & TEST == 0 {
            self.leave(page);
            frames.evicted(frame, None);
            return;
        }
        self.ghosts += 1;
        let shadow = self.ring.become_ghost(page);
        while self.ghosts > self.capacity {
            self.forget_ghost();
        }
        frames.evicted(frame, Some(shadow));
    }
}

impl Policy for ClockPro {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.hot + self.cold
    }

    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let Some(page) = self.ring.ghost(shadow) else {
            return Admission(0);
        };
        self.ghosts -= 1;
        self.leave(page);
        if reason != Reason::Readahead {
            self.learn(true);
        }
        Admission(1)
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let back = arrival.admission.0 != 0;
        let state = match (arrival.reason, back) {
            (Reason::Readahead, false) => UNUSED,
            (Reason::Readahead, true) => UNUSED_BACK,
            (_, true) => HOT,
            // The clock is not full yet.
            (_, false) if self.hot < self.capacity - self.cold_share => HOT,
            (_, false) => TEST,
        };
        self.enter(frame, state);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        let page = self.page_of[frame as usize];
        let state = self.states[page as usize];
        if state < UNUSED {
            if state & USED == 0 {
                self.states[page as usize] = state | USED;
            }
        } else if state == UNUSED_BACK {
            self.learn(true);
            self.becomes_hot(page);
        } else {
            self.states[page as usize] = TEST;
            self.ring.renew(page);
        }
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        let (mut gone, mut barren) = (0, 0);
        // Where the cold hand was before pages that may not leave. A round over nothing else leaves it there.
        let mut from = self.hand_cold;
        while gone < wanted {
            if self.cold == self.cold_parked || barren >= self.ring.len() {
                // None that is cold may leave: a hot one has to become cold.
                let unpinned = |page: u32| {
                    let frame = self.ring.frame(page);
                    frame != NONE && frames.state(frame) != FrameState::Pinned
                };
                let hot = |page: &u32| self.states[*page as usize] & HOT != 0 && unpinned(*page);
                let Some(page) = self.ring.iter().find(hot) else {
                    self.hand_cold = from;
                    return gone;
                };
                self.states[page as usize] = 0;
                self.hot -= 1;
                self.cold += 1;
                self.hand_cold = page;
                barren = 0;
            }
            let page = match self.hand_cold {
                NONE => self.ring.oldest(),
                page => page,
            };
            self.hand_cold = self.ring.next(page);
            let state = self.states[page as usize];
            let frame = self.ring.frame(page);
            if state & HOT != 0 || frame == NONE || frames.state(frame) == FrameState::Pinned {
                barren += 1;
                continue;
            }
            barren = 0;
            if state & USED == 0 {
                self.leave_memory(page, frames);
                gone += 1;
            } else if state & TEST != 0 {
                self.learn(true);
                self.becomes_hot(page);
            } else {
                self.states[page as usize] = TEST;
                self.ring.renew(page);
            }
            from = self.hand_cold;
        }
        gone
    }

    fn remove(&mut self, frame: Frame) {
        let page = self.page_of[frame as usize];
        if self.states[page as usize] & HOT != 0 {
            self.hot -= 1;
        } else {
            self.cold -= 1;
        }
        self.leave(page);
    }

    fn park(&mut self, frame: Frame) {
        let page = self.page_of[frame as usize];
        self.pass(page);
        self.ring.park(page);
        *self.parked_like(page) += 1;
    }

    fn unpark(&mut self, frame: Frame) {
        let page = self.page_of[frame as usize];
        self.ring.unpark(page);
        *self.parked_like(page) -= 1;
        self.cool();
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.ring.grow(pages_of(capacity(frames)?))?;
        grow(&mut self.states, pages_of(frames), 0)?;
        grow(&mut self.page_of, frames, NONE)?;
        self.capacity = frames;
        self.cold_share = self.cold_share.clamp(self.least_cold(), frames);
        self.cool();
        while self.ghosts > frames {
            self.forget_ghost();
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.ring.check()?;
        let (mut hot, mut cold, mut ghosts) = (0, 0, 0);
        for page in self.ring.iter() {
            let frame = self.ring.frame(page);
            if frame == NONE {
                ghosts += 1;
            } else if self.page_of[frame as usize] != page {
                return Err(format!("clock-pro: frame {frame} is not page {page}"));
            } else if self.states[page as usize] & HOT != 0 {
                hot += 1;
            } else {
                cold += 1;
            }
        }
        let (hot, cold) = (hot + self.hot_parked, cold + self.cold_parked);
        if (hot, cold, ghosts) != (self.hot, self.cold, self.ghosts) || ghosts > self.capacity {
            return Err(format!(
                "clock-pro: {hot} hot, {cold} cold, {ghosts} ghosts"
            ));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.ring.bytes() + self.states.capacity() + self.page_of.capacity() * size_of::<u32>()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("hot", self.hot as f64),
            ("cold", self.cold as f64),
            ("ghosts", self.ghosts as f64),
            ("target of cold", self.cold_share as f64),
        ]
    }
}

/// Pages for a capacity: frames, as many ghosts, and one that is about to be forgotten.
fn pages_of(frames: usize) -> usize {
    frames.saturating_mul(2).saturating_add(1)
}
