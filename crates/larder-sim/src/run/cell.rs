//! A cache without contents, fed with chunks.

use larder_policy::replay::Replay;
use larder_policy::{Block, Policy, PolicyError, Reason};

use super::super::load::Chunk;
use super::super::{Kind, SimError};

/// The counts of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// Uses that found their block.
    pub hits: u64,
    /// Uses that did not find their block.
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

/// Why a cell cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// Its rule cannot.
    #[error(transparent)]
    Rule(#[from] PolicyError),
    /// What is kept of the trace cannot be read.
    #[error(transparent)]
    Trace(#[from] Box<SimError>),
}

impl From<SimError> for CellError {
    fn from(why: SimError) -> Self {
        Self::Trace(Box::new(why))
    }
}

/// Counts hits over a trace.
pub trait Cell: Send {
    /// Goes on with the next part.
    ///
    /// # Errors
    /// [`CellError`].
    fn run(&mut self, chunk: &Chunk) -> Result<(), CellError>;

    /// The counts so far.
    fn tally(&self) -> Tally;

    /// Bytes of state.
    fn bytes(&self) -> usize;

    /// The rule's explanation of its decisions.
    fn explain(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// A cell under a rule of the library.
#[derive(Debug)]
pub(super) struct Ruled<P> {
    cache: Replay<P>,
    /// Uses since the last tick.
    ticked: u32,
}

impl<P: Policy> Ruled<P> {
    pub(super) fn new(rule: P) -> Result<Self, PolicyError> {
        let cache = Replay::new(rule)?;
        Ok(Self { cache, ticked: 0 })
    }

    /// A record of any kind, and the time that it takes.
    fn any(&mut self, block: u32, identity: Block, request: u32, kind: Kind, tick: u32) {
        let reason = match kind {
            Kind::Read => Reason::Demand,
            Kind::Write => Reason::Write,
            Kind::Readahead => return self.cache.read_ahead(block, identity, request),
            Kind::Remove => return self.cache.remove(block),
            Kind::Dirty => return self.cache.set_dirty(block),
            Kind::Clean => return self.cache.set_clean(block),
            Kind::Held => return self.cache.hold(block),
            // Where the user says how long a second is, that holds.
            Kind::Tick if tick > 0 => return,
            Kind::Tick => return self.cache.tick(),
        };
        self.cache.access_as(block, identity, request, reason);
        self.ticked += 1;
        if self.ticked >= tick && tick > 0 {
            self.ticked = 0;
            self.cache.tick();
        }
    }
}

impl<P: Policy> Cell for Ruled<P> {
    fn run(&mut self, chunk: &Chunk) -> Result<(), CellError> {
        self.cache.reserve(chunk.bound as usize)?;
        let identity = |block| Block(chunk.originals.of(block));
        if !chunk.kinds.is_empty() || chunk.tick > 0 {
            chunk.for_each(|block, request, kind| {
                self.any(block, identity(block), request, kind, chunk.tick);
            });
        } else if chunk.requests.is_empty() {
            let request = |at| chunk.first_request.wrapping_add(at as u32);
            self.cache.run_as(&chunk.blocks, request, identity);
        } else {
            let request = |at: usize| chunk.requests.get(at).copied().unwrap_or_default();
            self.cache.run_as(&chunk.blocks, request, identity);
        }
        Ok(())
    }

    fn tally(&self) -> Tally {
        Tally {
            hits: self.cache.hits(),
            misses: self.cache.misses(),
            lost: self.cache.lost(),
            fetched: self.cache.fetched(),
            wasted: self.cache.wasted(),
        }
    }

    fn bytes(&self) -> usize {
        self.cache.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        self.cache.rule().explain()
    }
}
