//! A cache without contents, fed with chunks.

use larder::cache::policy::{
    Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow, Touch,
};

use super::super::Kind;
use super::super::load::Chunk;

/// What a cell has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// Uses that found their block.
    pub hits: u64,
    /// Uses that did not.
    pub misses: u64,
    /// Misses whose block the rule would not keep.
    pub lost: u64,
    /// Blocks read ahead that were not there before.
    pub fetched: u64,
    /// Of these, those that left without having been used.
    pub wasted: u64,
}

impl Tally {
    /// Share of the uses that found their block; 0 when there were none.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let uses = self.hits + self.misses;
        if uses == 0 {
            0.0
        } else {
            self.hits as f64 / uses as f64
        }
    }
}

/// Something that counts hits over a trace.
pub trait Cell: Send {
    /// Goes on with the next part.
    ///
    /// # Errors
    /// [`PolicyError::Memory`].
    fn run(&mut self, chunk: &Chunk) -> Result<(), PolicyError>;

    /// What was counted so far.
    fn tally(&self) -> Tally;

    /// Bytes of state.
    fn bytes(&self) -> usize;

    /// What the rule says of its decisions.
    fn explain(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// The block is resident, its frame is in the lower half.
const RESIDENT: u64 = 1 << 63;
/// And was read ahead and not used yet.
const UNUSED: u64 = 1 << 62;
/// No shadow either.
const NOTHING: u64 = RESIDENT - 1;

/// A cell under a rule of the library.
#[derive(Debug)]
pub(super) struct Ruled<P> {
    rule: P,
    slots: Slots,
    tally: Tally,
}

#[derive(Debug)]
struct Slots {
    /// By block: frame, shadow or nothing.
    blocks: Vec<u64>,
    /// By frame: its block.
    holds: Vec<u32>,
    free: Vec<Frame>,
    wasted: u64,
}

impl Frames for Slots {
    #[inline]
    fn state(&self, _: Frame) -> FrameState {
        FrameState::Clean
    }

    #[inline]
    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        let slot = &mut self.blocks[self.holds[frame as usize] as usize];
        self.wasted += (*slot >> 62) & 1;
        *slot = shadow.map_or(NOTHING, Shadow::get);
        self.free.push(frame);
    }
}

impl<P: Policy> Ruled<P> {
    pub(super) fn new(size: usize) -> Result<Self, PolicyError> {
        let rule = P::new(size)?;
        let frames = rule.capacity();
        let refused = |_| PolicyError::Memory {
            bytes: frames.saturating_mul(8),
        };
        let mut slots = Slots {
            blocks: Vec::new(),
            holds: Vec::new(),
            free: Vec::new(),
            wasted: 0,
        };
        slots.holds.try_reserve_exact(frames).map_err(refused)?;
        slots.holds.resize(frames, 0);
        slots.free.try_reserve_exact(frames).map_err(refused)?;
        slots.free.extend((0..frames as Frame).rev());
        Ok(Self {
            rule,
            slots,
            tally: Tally::default(),
        })
    }

    /// A use. A hit is one load, one test and the rule's touch.
    #[inline]
    fn access(&mut self, block: u32, request: u32, reason: Reason) {
        let slot = &mut self.slots.blocks[block as usize];
        if *slot & RESIDENT != 0 {
            self.tally.hits += 1;
            let frame = *slot as Frame;
            self.rule.touch(frame, Touch { request });
        } else {
            self.tally.misses += 1;
            let shadow = *slot;
            let kept = self.fetch(block, request, shadow, reason, 0);
            self.tally.lost += u64::from(!kept);
        }
    }

    #[inline]
    fn fetch(&mut self, block: u32, request: u32, at: u64, reason: Reason, mark: u64) -> bool {
        let shadow = (at != NOTHING).then(|| Shadow::new(at));
        let identity = Block(u64::from(block));
        let admission = self.rule.miss(identity, shadow, reason);
        let frame = loop {
            if let Some(frame) = self.slots.free.pop() {
                break frame;
            }
            if self.rule.evict(&mut self.slots, 1) == 0 {
                return false;
            }
        };
        self.slots.holds[frame as usize] = block;
        self.slots.blocks[block as usize] = RESIDENT | mark | u64::from(frame);
        let arrival = Arrival {
            block: identity,
            reason,
            request,
            admission,
        };
        self.rule.insert(frame, arrival);
        true
    }

    fn any(&mut self, block: u32, request: u32, kind: Kind) {
        let slot = &mut self.slots.blocks[block as usize];
        let at = *slot;
        let resident = at & RESIDENT != 0;
        match kind {
            Kind::Read | Kind::Write => {
                if resident {
                    *slot &= !UNUSED;
                }
                let reason = if kind == Kind::Read {
                    Reason::Demand
                } else {
                    Reason::Write
                };
                self.access(block, request, reason);
            }
            Kind::Readahead if resident => {}
            Kind::Readahead => {
                self.tally.fetched += 1;
                if !self.fetch(block, request, at, Reason::Readahead, UNUSED) {
                    self.tally.wasted += 1;
                }
            }
            Kind::Remove => {
                *slot = NOTHING;
                if resident {
                    self.tally.wasted += u64::from(at & UNUSED != 0);
                    self.rule.remove(at as Frame);
                    self.slots.free.push(at as Frame);
                }
            }
        }
    }
}

impl<P: Policy> Cell for Ruled<P> {
    fn run(&mut self, chunk: &Chunk) -> Result<(), PolicyError> {
        let more = (chunk.bound as usize).saturating_sub(self.slots.blocks.len());
        let refused = |_| PolicyError::Memory {
            bytes: more.saturating_mul(8),
        };
        self.slots.blocks.try_reserve(more).map_err(refused)?;
        self.slots
            .blocks
            .resize(self.slots.blocks.len() + more, NOTHING);
        // Once something was read ahead, a use must look whether it is the first of its block.
        if !chunk.kinds.is_empty() || self.tally.fetched > 0 {
            chunk.for_each(|block, request, kind| self.any(block, request, kind));
        } else if chunk.requests.is_empty() {
            let mut request = chunk.first_request;
            for &block in &chunk.blocks {
                self.access(block, request, Reason::Demand);
                request = request.wrapping_add(1);
            }
        } else {
            for (&block, &request) in chunk.blocks.iter().zip(&chunk.requests) {
                self.access(block, request, Reason::Demand);
            }
        }
        Ok(())
    }

    fn tally(&self) -> Tally {
        Tally {
            wasted: self.tally.wasted + self.slots.wasted,
            ..self.tally
        }
    }

    fn bytes(&self) -> usize {
        let slots = &self.slots;
        self.rule.bytes()
            + slots.blocks.capacity() * 8
            + (slots.holds.capacity() + slots.free.capacity()) * 4
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        self.rule.explain()
    }
}
