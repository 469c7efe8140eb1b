//! A rule driven by a sequence of requests: what the simulator runs.

use std::cell::RefCell;
use std::collections::HashSet;

use super::{
    Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow, Touch,
};

/// The top bit says that a block is resident: the rest is its frame, else its shadow, else nothing.
const RESIDENT: u64 = 1 << 63;
/// And, of a resident one, that it was read ahead and not used yet.
const UNUSED: u64 = 1 << 62;
/// And that it must be written before it may leave.
const DIRTY: u64 = 1 << 61;
/// And that the rule does not look at its frame until then.
const PARKED: u64 = 1 << 60;
const NOTHING: u64 = RESIDENT - 1;

/// Most blocks that come together.
const MOST_COMING: usize = 256;

/// No frame has this number.
const NO_FRAME: Frame = Frame::MAX;

/// How many accesses [`Replay::run`] looks ahead: as long as a few misses of the processor's cache, but short enough that the loaded
/// lines are still there.
const AHEAD: usize = 12;

/// A cache without contents: a rule, and what it must know to say hit or miss. Blocks are numbered densely from 0, in 8 bytes
/// each; an access is one look into that table and one call of the rule.
///
/// ```
/// use larder_policy::{Lru, replay::Replay};
/// let mut cache = Replay::new(Lru::new(100)?)?;
/// for round in 0..10 {
///     for block in 0..100 {
///         cache.access(block, round);
///     }
/// }
/// assert_eq!((cache.hits(), cache.misses()), (900, 100));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Replay<P> {
    rule: P,
    slots: Slots,
    /// Blocks that are dirty where they were recorded, and not in memory here.
    dirty_outside: HashSet<u32>,
    hits: u64,
    misses: u64,
    lost: u64,
    fetched: u64,
}

#[derive(Debug)]
struct Slots {
    /// By block.
    blocks: Vec<u64>,
    /// By frame: the block in it.
    holds: Vec<u32>,
    free: Vec<Frame>,
    /// The frame into which the latest use brought a block; [`NO_FRAME`] after a hit.
    latest: Frame,
    /// Frames of blocks that come together: what is read ahead in one go, and the block whose miss began that.
    coming: Vec<Frame>,
    /// Blocks that left without having been used.
    wasted: u64,
    /// Resident blocks that are dirty.
    dirty: usize,
    /// A block was read ahead, dirty or held. Before, no slot has a mark: it need not be loaded when its block leaves.
    marks: bool,
    /// Frames of dirty blocks that the rule had to pass.
    passed: RefCell<Vec<Frame>>,
    /// Frames that were held when room was made for the next block.
    held: Vec<Frame>,
}

impl Frames for Slots {
    #[inline]
    fn state(&self, frame: Frame) -> FrameState {
        match self.marks {
            false => FrameState::Clean,
            true => self.state_of(frame),
        }
    }

    #[inline]
    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        let slot = &mut self.blocks[self.holds[frame as usize] as usize];
        if self.marks {
            self.wasted += (*slot & UNUSED) >> 62;
            self.dirty -= usize::from(*slot & DIRTY != 0);
        }
        *slot = shadow.map_or(NOTHING, Shadow::get);
        self.free.push(frame);
    }
}

impl<P: Policy> Replay<P> {
    /// A cache under a new rule, with as many blocks as that has frames. The table of blocks grows as they come.
    ///
    /// ```
    /// # use larder_policy::{Lru, replay::Replay};
    /// assert_eq!(Replay::new(Lru::new(100)?)?.misses(), 0);
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError::Memory`].
    pub fn new(rule: P) -> Result<Self, PolicyError> {
        Self::with(rule, 0)
    }

    /// A cache under a rule that was made before and has nothing in it. Room is made for the blocks below `blocks`, so that
    /// their accesses allocate nothing.
    ///
    /// ```
    /// # use larder_policy::{Lru, Policy, replay::Replay};
    /// let mut cache = Replay::with(Lru::new(100)?, 1000)?;
    /// let bytes = cache.bytes();
    /// cache.access(999, 0);
    /// assert_eq!(cache.bytes(), bytes, "there was room");
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError::Memory`].
    pub fn with(rule: P, blocks: usize) -> Result<Self, PolicyError> {
        let frames = rule.capacity();
        let mut slots = Slots {
            blocks: Vec::new(),
            holds: Vec::new(),
            free: Vec::new(),
            latest: NO_FRAME,
            coming: Vec::new(),
            wasted: 0,
            dirty: 0,
            marks: false,
            passed: RefCell::default(),
            held: Vec::new(),
        };
        slots.reach(blocks)?;
        let refused = |_| PolicyError::Memory {
            bytes: frames.saturating_mul(size_of::<Frame>()),
        };
        slots.holds.try_reserve_exact(frames).map_err(refused)?;
        slots.holds.resize(frames, 0);
        slots.free.try_reserve_exact(frames).map_err(refused)?;
        slots.free.extend((0..frames as Frame).rev());
        let coming = MOST_COMING.min(frames);
        slots
            .coming
            .try_reserve_exact(coming + 2)
            .map_err(refused)?;
        Ok(Self {
            rule,
            slots,
            dirty_outside: HashSet::new(),
            hits: 0,
            misses: 0,
            lost: 0,
            fetched: 0,
        })
    }

    /// Makes room for the blocks below `blocks`: their accesses allocate nothing.
    ///
    /// ```
    /// # use larder_policy::{Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(100)?)?;
    /// cache.reserve(1000)?;
    /// let bytes = cache.bytes();
    /// cache.access(999, 0);
    /// assert_eq!(cache.bytes(), bytes, "there was room");
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError::Memory`].
    pub fn reserve(&mut self, blocks: usize) -> Result<(), PolicyError> {
        self.slots.reach(blocks)
    }

    /// One use of a block by a request; true if it was in memory. The rule knows the block by its number.
    ///
    /// ```
    /// # use larder_policy::{Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(1)?)?;
    /// assert_eq!([7, 7, 8, 7].map(|block| cache.access(block, 0)), [false, true, false, false]);
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    #[inline]
    pub fn access(&mut self, block: u32, request: u32) -> bool {
        self.access_as(block, Block(u64::from(block)), request, Reason::Demand)
    }

    /// One use of a block which the rule knows by another identity than its number: rules that hash the identity then do exactly
    /// what they did where it was recorded. A hit with [`Reason::Write`] counts as a write of the whole block: the rule's
    /// [`drop_behind`](Policy::drop_behind) is called. [`Reason::Readahead`] is no use: see [`read_ahead`](Self::read_ahead).
    ///
    /// ```
    /// use larder_policy::{Block, Lru, Reason, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(1)?)?;
    /// assert!(!cache.access_as(0, Block(1 << 40), 0, Reason::Write));
    /// assert!(cache.access_as(0, Block(1 << 40), 1, Reason::Demand));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    #[inline]
    pub fn access_as(&mut self, block: u32, identity: Block, request: u32, reason: Reason) -> bool {
        self.slots.coming.clear();
        self.slots.latest = NO_FRAME;
        match self.slots.blocks.get_mut(block as usize) {
            Some(at) if *at & RESIDENT != 0 => {
                self.hits += 1;
                let frame = *at as Frame;
                if *at & (UNUSED | PARKED) != 0 {
                    let was = core::mem::replace(at, *at & !(UNUSED | PARKED));
                    if was & PARKED != 0 {
                        self.rule.unpark(frame);
                    }
                }
                self.rule.touch(frame, Touch { request });
                if reason == Reason::Write {
                    self.rule.drop_behind(frame); // generic_file_write: written to its end
                }
                true
            }
            at => {
                let at = at.copied();
                self.misses += 1;
                match self.fetch(block, identity, request, reason, at) {
                    Some(frame) => self.slots.latest = frame,
                    None => self.lost += 1,
                }
                false
            }
        }
    }

    /// Brings a block in that is expected to be used. Nothing happens if it is there. Blocks that are read ahead one after the other
    /// come together, and with the block whose miss was the last use before: none of them makes room for another, as long as they
    /// are not more than a quarter of the cache or 256. So does the block cache.
    ///
    /// ```
    /// use larder_policy::{Block, Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(1)?)?;
    /// cache.read_ahead(0, Block(0), 0);
    /// cache.read_ahead(1, Block(1), 0);
    /// assert!(cache.access(1, 1));
    /// assert_eq!((cache.fetched(), cache.wasted(), cache.misses()), (2, 1, 0));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn read_ahead(&mut self, block: u32, identity: Block, request: u32) {
        let at = self.slots.blocks.get(block as usize).copied();
        if at.is_some_and(|at| at & RESIDENT != 0) {
            return;
        }
        self.fetched += 1;
        self.slots.marks = true;
        let latest = core::mem::replace(&mut self.slots.latest, NO_FRAME);
        self.slots
            .coming
            .extend((latest != NO_FRAME).then_some(latest));
        if self.slots.coming.len() > MOST_COMING.min(self.rule.capacity() / 4) {
            self.slots.coming.clear();
        }
        if let Some(frame) = self.fetch(block, identity, request, Reason::Readahead, at) {
            self.slots.blocks[block as usize] |= UNUSED;
            self.slots.coming.push(frame);
        } else {
            self.slots.wasted += 1;
        }
    }

    /// The block is gone (deleted, truncated): it is not in memory, and nothing is known of it.
    ///
    /// ```
    /// use larder_policy::{Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(1)?)?;
    /// cache.access(3, 0);
    /// cache.remove(3);
    /// assert!(!cache.holds(3));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn remove(&mut self, block: u32) {
        self.set_clean(block);
        let Some(slot) = self.slots.blocks.get_mut(block as usize) else {
            return;
        };
        let at = core::mem::replace(slot, NOTHING);
        if at & RESIDENT != 0 {
            self.slots.wasted += (at & UNUSED) >> 62;
            self.rule.remove(at as Frame);
            self.slots.free.push(at as Frame);
        }
    }

    /// A block was changed: it stays until it is [clean](Self::set_clean), or once it comes. The rule passes it, and does not look at it
    /// again before it is written or used. So does the block cache. Where half of the frames hold such blocks, it counts as written
    /// at once: a smaller cache than the one that was recorded would have written it.
    ///
    /// ```
    /// use larder_policy::{Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(2)?)?;
    /// cache.run(&[1, 2], 0);
    /// cache.set_dirty(1);
    /// cache.access(3, 3);
    /// assert!(cache.holds(1) && !cache.holds(2));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn set_dirty(&mut self, block: u32) {
        let at = self.slots.blocks.get_mut(block as usize);
        let Some(at) = at.filter(|at| **at & RESIDENT != 0) else {
            // Without memory it comes in clean.
            if self.dirty_outside.try_reserve(1).is_ok() {
                self.dirty_outside.insert(block);
            }
            return;
        };
        if *at & DIRTY == 0 && self.slots.dirty < self.rule.capacity() / 2 {
            *at |= DIRTY;
            self.slots.dirty += 1;
            self.slots.marks = true;
        }
    }

    /// A block was written: it may leave in its turn.
    ///
    /// ```
    /// use larder_policy::{Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(2)?)?;
    /// cache.run(&[1, 2], 0);
    /// cache.set_dirty(1);
    /// cache.set_clean(1);
    /// cache.access(3, 3);
    /// assert!(!cache.holds(1) && cache.holds(2));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn set_clean(&mut self, block: u32) {
        self.dirty_outside.remove(&block);
        let Some(at) = self.slots.blocks.get_mut(block as usize) else {
            return;
        };
        if *at & (RESIDENT | DIRTY) == RESIDENT | DIRTY {
            self.slots.dirty -= 1;
            let was = core::mem::replace(at, *at & !(DIRTY | PARKED));
            if was & PARKED != 0 {
                self.rule.unpark(was as Frame);
            }
        }
    }

    /// A thread holds the block while room is made for the next one that comes, or while the next [second](Self::tick) passes: a rule that
    /// asks hears that it is pinned. Of more than a quarter of the frames that is not said.
    ///
    /// ```
    /// use larder_policy::{Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(4)?)?;
    /// cache.run(&[1, 2, 3, 4], 0);
    /// cache.hold(1);
    /// cache.access(5, 4);
    /// assert!(cache.holds(1) && !cache.holds(2));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn hold(&mut self, block: u32) {
        if let Some(at) = self.slots.blocks.get(block as usize)
            && *at & RESIDENT != 0
            && self.slots.held.len() < self.rule.capacity() / 4
            && self.slots.held.try_reserve(1).is_ok()
        {
            self.slots.held.push(*at as Frame);
            self.slots.marks = true;
        }
    }

    /// A second has passed, for rules that age by time ([`Policy::tick`]).
    ///
    /// ```
    /// # use larder_policy::{Linux247, Policy, replay::Replay};
    /// let mut cache = Replay::new(Linux247::new(2)?)?;
    /// cache.run(&[0, 1, 0, 1, 0, 1], 0);
    /// assert_eq!(cache.rule().explain()[0], ("active", 2.0));
    /// (0..3).for_each(|_| cache.tick());
    /// assert_eq!(cache.rule().explain()[0], ("active", 0.0), "both have aged");
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn tick(&mut self) {
        self.rule.tick(&mut self.slots);
        self.park_passed();
        self.slots.held.clear();
    }

    /// Is it in memory? Tells the rule nothing.
    ///
    /// ```
    /// use larder_policy::{Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(1)?)?;
    /// cache.access(3, 0);
    /// assert!(cache.holds(3) && !cache.holds(4));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    #[inline]
    pub fn holds(&self, block: u32) -> bool {
        let at = self.slots.blocks.get(block as usize);
        at.is_some_and(|at| at & RESIDENT != 0)
    }

    /// One access after the other, each a request of its own, numbered from `first` on. Faster than a loop over
    /// [`access`](Self::access) where the table of blocks is larger than the processor's cache, since it looks ahead.
    ///
    /// ```
    /// use larder_policy::{Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(2)?)?;
    /// cache.run(&[1, 2, 1, 3, 1, 2], 0);
    /// assert_eq!((cache.hits(), cache.misses()), (2, 4));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn run(&mut self, accesses: &[u32], first: u32) {
        let request = |at| first.wrapping_add(at as u32);
        self.run_as(accesses, request, |block| Block(u64::from(block)));
    }

    /// As [`run`](Self::run), with the request of each access by its place, and the identity of each block. Both are asked only
    /// where they matter: the identity by a miss, of a rule that looks at it.
    ///
    /// ```
    /// use larder_policy::{Block, Lru, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(2)?)?;
    /// cache.run_as(&[0, 1, 0], |_| 7, |block| Block(900 + u64::from(block)));
    /// assert_eq!((cache.hits(), cache.misses()), (1, 2));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn run_as(
        &mut self,
        accesses: &[u32],
        request: impl Fn(usize) -> u32,
        identity: impl Fn(u32) -> Block,
    ) {
        // The sum is used, so that the loads are made; nothing waits for them.
        let mut loaded = 0;
        let soon = accesses.iter().skip(AHEAD);
        let mut at = 0;
        for (&block, &ahead) in accesses.iter().zip(soon) {
            loaded ^= self.slots.blocks.get(ahead as usize).copied().unwrap_or(0);
            self.access_as(block, identity(block), request(at), Reason::Demand);
            at += 1;
        }
        core::hint::black_box(loaded);
        for &block in &accesses[at..] {
            self.access_as(block, identity(block), request(at), Reason::Demand);
            at += 1;
        }
    }

    /// Brings a block into a frame; none if it could not be kept. `at` is what its slot had.
    #[inline]
    fn fetch(
        &mut self,
        block: u32,
        identity: Block,
        request: u32,
        reason: Reason,
        at: Option<u64>,
    ) -> Option<Frame> {
        let at = match at {
            Some(at) => at,
            None if self.slots.reach_far(block).is_ok() => NOTHING,
            None => return None,
        };
        let shadow = (at != NOTHING).then(|| Shadow::new(at));
        let admission = self.rule.miss(identity, shadow, reason);
        let frame = loop {
            if let Some(frame) = self.slots.free.pop() {
                break frame;
            }
            let gone = self.rule.evict(&mut self.slots, 1);
            self.park_passed();
            if gone == 0 {
                self.slots.held.clear();
                return None; // nothing would leave: the block is not kept
            }
        };
        self.slots.held.clear();
        self.slots.holds[frame as usize] = block;
        self.slots.blocks[block as usize] = RESIDENT | u64::from(frame);
        let arrival = Arrival {
            block: identity,
            reason,
            request,
            admission,
        };
        self.rule.insert(frame, arrival);
        if !self.dirty_outside.is_empty() && self.dirty_outside.remove(&block) {
            self.set_dirty(block);
        }
        Some(frame)
    }

    /// The rule would pass these dirty blocks in each eviction until they are written.
    #[inline]
    fn park_passed(&mut self) {
        if !self.slots.passed.get_mut().is_empty() {
            self.park_all();
        }
    }

    #[cold]
    fn park_all(&mut self) {
        let mut passed = core::mem::take(self.slots.passed.get_mut());
        if self.rule.keeps_apart() {
            passed.clear();
        }
        for frame in passed.drain(..) {
            let slot = &mut self.slots.blocks[self.slots.holds[frame as usize] as usize];
            if *slot & (RESIDENT | DIRTY | PARKED) == RESIDENT | DIRTY {
                *slot |= PARKED;
                self.rule.park(frame);
            }
        }
        *self.slots.passed.get_mut() = passed;
    }

    /// Accesses that found their block.
    ///
    /// ```
    /// # use larder_policy::{Lru, replay::Replay};
    /// # let mut cache = Replay::new(Lru::new(2)?)?;
    /// cache.run(&[1, 1, 1, 2], 0);
    /// assert_eq!(cache.hits(), 2);
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Accesses that did not.
    ///
    /// ```
    /// # use larder_policy::{Lru, replay::Replay};
    /// # let mut cache = Replay::new(Lru::new(2)?)?;
    /// cache.run(&[1, 1, 1, 2], 0);
    /// assert_eq!(cache.misses(), 2);
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Misses whose block was not kept, since there was no memory for a larger table of blocks, or the rule let nothing go. Not
    /// 0: the counts are not those of the rule.
    ///
    /// ```
    /// # use larder_policy::{Lru, replay::Replay};
    /// # let mut cache = Replay::new(Lru::new(2)?)?;
    /// cache.run(&[1, 2, 3], 0);
    /// assert_eq!((cache.misses(), cache.lost()), (3, 0), "all of them were kept for a while");
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Blocks that [`read_ahead`](Self::read_ahead) brought in.
    ///
    /// [`read_ahead`](Self::read_ahead) shows it.
    pub fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Of these, those that are gone and were not used.
    ///
    /// [`read_ahead`](Self::read_ahead) shows it.
    pub fn wasted(&self) -> u64 {
        self.slots.wasted
    }

    /// Bytes of memory of the rule and of the tables here.
    ///
    /// ```
    /// # use larder_policy::{Lru, replay::Replay};
    /// let (small, large) = (Replay::new(Lru::new(10)?)?, Replay::new(Lru::new(1000)?)?);
    /// assert!(small.bytes() < large.bytes());
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn bytes(&self) -> usize {
        let slots = &self.slots;
        self.rule.bytes()
            + slots.blocks.capacity() * size_of::<u64>()
            + slots.holds.capacity() * size_of::<u32>()
            + slots.free.capacity() * size_of::<Frame>()
            + self.dirty_outside.capacity() * size_of::<u32>()
    }

    /// The rule.
    ///
    /// ```
    /// # use larder_policy::{Lru, Policy, replay::Replay};
    /// let mut cache = Replay::new(Lru::new(2)?)?;
    /// cache.run(&[1, 2, 3], 0);
    /// assert_eq!((cache.rule().len(), cache.rule().capacity()), (2, 2));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    pub fn rule(&self) -> &P {
        &self.rule
    }
}

impl Slots {
    /// Where some frames may not leave.
    #[inline(never)]
    fn state_of(&self, frame: Frame) -> FrameState {
        if self.coming.contains(&frame) || self.held.contains(&frame) {
            return FrameState::Pinned;
        }
        if self.dirty > 0 && *self.slot(frame) & DIRTY != 0 {
            // Without memory the rule passes it again next time.
            let mut passed = self.passed.borrow_mut();
            if passed.try_reserve(1).is_ok() {
                passed.push(frame);
            }
            return FrameState::Pinned;
        }
        FrameState::Clean
    }

    /// Of the block in a frame.
    #[inline]
    fn slot(&self, frame: Frame) -> &u64 {
        &self.blocks[self.holds[frame as usize] as usize]
    }

    /// Makes room for the blocks below `blocks`.
    fn reach(&mut self, blocks: usize) -> Result<(), PolicyError> {
        let more = blocks.saturating_sub(self.blocks.len());
        self.blocks
            .try_reserve_exact(more)
            .map_err(|_| PolicyError::Memory {
                bytes: blocks.saturating_mul(size_of::<u64>()),
            })?;
        self.blocks.resize(blocks.max(self.blocks.len()), NOTHING);
        Ok(())
    }

    #[cold]
    fn reach_far(&mut self, block: u32) -> Result<(), PolicyError> {
        let wanted = block as usize + 1;
        self.reach(wanted.max(self.blocks.len().saturating_mul(2)))
            .or_else(|_| self.reach(wanted))
    }
}

#[cfg(test)]
mod tests;
