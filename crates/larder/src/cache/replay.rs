//! A rule driven by a sequence of requests: what the simulator runs.

use super::policy::{
    Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Shadow, Touch,
};

/// The top bit says that a block is resident: the rest is its frame, else its shadow, else nothing.
const RESIDENT: u64 = 1 << 63;
const NOTHING: u64 = RESIDENT - 1;

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
    /// A cache of `capacity` blocks under the rule `P`.
    ///
    /// # Errors
    /// Those of [`Policy::new`].
    pub fn new(capacity: usize) -> Result<Self, PolicyError> {
        P::new(capacity).map(Self::with)
    }

    /// A cache under a rule that was made before and has nothing in it.
    pub fn with(rule: P) -> Self {
        let frames = rule.capacity();
        Self {
            slots: Slots {
                blocks: Vec::new(),
                holds: vec![0; frames],
                free: (0..frames as Frame).rev().collect(),
            },
            rule,
            hits: 0,
            misses: 0,
        }
    }

    /// One use of a block by a request; true if it was in memory.
    #[inline]
    pub fn access(&mut self, block: u32, request: u32) -> bool {
        if block as usize >= self.slots.blocks.len() {
            self.slots.blocks.resize(block as usize + 1, NOTHING);
        }
        let at = self.slots.blocks[block as usize];
        if at & RESIDENT != 0 {
            self.hits += 1;
            self.rule.touch(at as Frame, Touch { request });
            return true;
        }
        self.misses += 1;
        self.fetch(block, request, at);
        false
    }

    fn fetch(&mut self, block: u32, request: u32, at: u64) {
        let shadow = (at != NOTHING).then(|| Shadow::new(at));
        let identity = Block(u64::from(block));
        let admission = self.rule.miss(identity, shadow);
        let frame = loop {
            if let Some(frame) = self.slots.free.pop() {
                break frame;
            }
            if self.rule.evict(&mut self.slots, 1) == 0 {
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

    /// The rule.
    pub fn rule(&self) -> &P {
        &self.rule
    }
}
