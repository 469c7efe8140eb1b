//! A rule driven by a sequence of requests: what the simulator runs.

use super::policy::{
    Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow, Touch,
};

/// The top bit says that a block is resident: the rest is its frame, else its shadow, else nothing.
const RESIDENT: u64 = 1 << 63;
const NOTHING: u64 = RESIDENT - 1;

/// How many accesses ahead [`Replay::run`] looks: a few misses of the processor's cache long, and not so long that what it loads
/// has gone again.
const AHEAD: usize = 12;

/// A cache without contents: a rule, and what it must know to say hit or miss. Blocks are numbered densely from 0, in 8 bytes
/// each; an access is one look into that table and one call of the rule.
///
/// ```
/// use larder::cache::{policy::Lru, replay::Replay};
/// let mut cache = Replay::<Lru>::new(100)?;
/// for round in 0..10 {
///     for block in 0..100 {
///         cache.access(block, round);
///     }
/// }
/// assert_eq!((cache.hits(), cache.misses()), (900, 100));
/// # Ok::<(), larder::cache::policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Replay<P> {
    rule: P,
    slots: Slots,
    hits: u64,
    misses: u64,
    lost: u64,
}

#[derive(Debug)]
struct Slots {
    /// By block.
    blocks: Vec<u64>,
    /// By frame: the block in it.
    holds: Vec<u32>,
    free: Vec<Frame>,
}

impl Frames for Slots {
    #[inline]
    fn state(&self, _: Frame) -> FrameState {
        FrameState::Clean
    }

    #[inline]
    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        let block = self.holds[frame as usize];
        self.blocks[block as usize] = shadow.map_or(NOTHING, Shadow::get);
        self.free.push(frame);
    }
}

impl<P: Policy> Replay<P> {
    /// A cache of `capacity` blocks under the rule `P`, whose table of blocks grows as they come.
    ///
    /// # Errors
    /// Those of [`Policy::new`].
    pub fn new(capacity: usize) -> Result<Self, PolicyError> {
        Self::with(P::new(capacity)?, 0)
    }

    /// A cache under a rule that was made before and has nothing in it. Room is made for the blocks below `blocks`, so that
    /// their accesses allocate nothing.
    ///
    /// # Errors
    /// [`PolicyError::Memory`].
    pub fn with(rule: P, blocks: usize) -> Result<Self, PolicyError> {
        let frames = rule.capacity();
        let mut slots = Slots {
            blocks: Vec::new(),
            holds: Vec::new(),
            free: Vec::new(),
        };
        slots.reach(blocks)?;
        let refused = |_| PolicyError::Memory {
            bytes: frames.saturating_mul(size_of::<Frame>()),
        };
        slots.holds.try_reserve_exact(frames).map_err(refused)?;
        slots.holds.resize(frames, 0);
        slots.free.try_reserve_exact(frames).map_err(refused)?;
        slots.free.extend((0..frames as Frame).rev());
        Ok(Self {
            rule,
            slots,
            hits: 0,
            misses: 0,
            lost: 0,
        })
    }

    /// One use of a block by a request; true if it was in memory.
    #[inline]
    pub fn access(&mut self, block: u32, request: u32) -> bool {
        match self.slots.blocks.get(block as usize) {
            Some(&at) if at & RESIDENT != 0 => {
                self.hits += 1;
                self.rule.touch(at as Frame, Touch { request });
                true
            }
            at => {
                let at = at.copied();
                self.misses += 1;
                self.fetch(block, request, at);
                false
            }
        }
    }

    /// Is it in memory? Tells the rule nothing.
    ///
    /// ```
    /// use larder::cache::{policy::Lru, replay::Replay};
    /// let mut cache = Replay::<Lru>::new(1)?;
    /// cache.access(3, 0);
    /// assert!(cache.holds(3) && !cache.holds(4));
    /// # Ok::<(), larder::cache::policy::PolicyError>(())
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
    /// use larder::cache::{policy::Lru, replay::Replay};
    /// let mut cache = Replay::<Lru>::new(2)?;
    /// cache.run(&[1, 2, 1, 3, 1, 2], 0);
    /// assert_eq!((cache.hits(), cache.misses()), (2, 4));
    /// # Ok::<(), larder::cache::policy::PolicyError>(())
    /// ```
    pub fn run(&mut self, accesses: &[u32], first: u32) {
        let mut request = first;
        let (near, last) = accesses.split_at(accesses.len().saturating_sub(AHEAD));
        // The sum is used, so that the loads are made; nothing waits for them.
        let mut loaded = 0;
        for (&block, &ahead) in near.iter().zip(&accesses[accesses.len() - near.len()..]) {
            loaded ^= self.slots.blocks.get(ahead as usize).copied().unwrap_or(0);
            self.access(block, request);
            request = request.wrapping_add(1);
        }
        core::hint::black_box(loaded);
        for &block in last {
            self.access(block, request);
            request = request.wrapping_add(1);
        }
    }

    #[inline]
    fn fetch(&mut self, block: u32, request: u32, at: Option<u64>) {
        let at = match at {
            Some(at) => at,
            None if self.slots.reach_far(block).is_ok() => NOTHING,
            None => {
                self.lost += 1;
                return;
            }
        };
        let shadow = (at != NOTHING).then(|| Shadow::new(at));
        let identity = Block(u64::from(block));
        let admission = self.rule.miss(identity, shadow, Reason::Demand);
        let frame = loop {
            if let Some(frame) = self.slots.free.pop() {
                break frame;
            }
            if self.rule.evict(&mut self.slots, 1) == 0 {
                self.lost += 1;
                return; // nothing would leave: the block is not kept
            }
        };
        self.slots.holds[frame as usize] = block;
        self.slots.blocks[block as usize] = RESIDENT | u64::from(frame);
        self.rule
            .insert(frame, Arrival::demand(identity, request, admission));
    }

    /// Accesses that found their block.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Accesses that did not.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Misses whose block was not kept, since there was no memory for a larger table of blocks, or the rule let nothing go. Not
    /// 0: the counts are not those of the rule.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The rule.
    pub fn rule(&self) -> &P {
        &self.rule
    }
}

impl Slots {
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
mod tests {
    use super::super::policy::{Fifo, Lru};
    use super::*;

    #[test]
    fn blocks_far_apart_and_room_made_before_count_alike() {
        let trace = [5, 1_000_000, 5, 7, 9, 5, 1_000_000, 7];
        let mut grown = Replay::<Lru>::new(3).unwrap();
        let mut made = Replay::with(Lru::new(3).unwrap(), 1_000_001).unwrap();
        let grown_hits = trace.map(|block| grown.access(block, 0));
        assert_eq!(grown_hits, trace.map(|block| made.access(block, 0)));
        assert_eq!(
            grown_hits,
            [false, false, true, false, false, true, false, false]
        );
        assert_eq!((made.hits(), made.misses(), made.lost()), (2, 6, 0));
    }

    #[test]
    fn runs_and_single_accesses_count_alike() {
        let trace: Vec<u32> = (0..1000).map(|at| at * at % 37).collect();
        for len in [0, 1, AHEAD - 1, AHEAD, AHEAD + 1, 1000] {
            let mut single = Replay::<Lru>::new(9).unwrap();
            let mut run = Replay::<Lru>::new(9).unwrap();
            for (&block, request) in trace[..len].iter().zip(0..) {
                single.access(block, request);
            }
            run.run(&trace[..len], 0);
            assert_eq!((single.hits(), single.misses()), (run.hits(), run.misses()));
            assert!(
                trace
                    .iter()
                    .all(|&block| single.holds(block) == run.holds(block))
            );
        }
    }

    #[test]
    fn a_table_that_no_memory_holds_is_refused() {
        let rule = Fifo::new(1).unwrap();
        assert!(matches!(
            Replay::with(rule, usize::MAX / 8),
            Err(PolicyError::Memory { .. })
        ));
    }
}
