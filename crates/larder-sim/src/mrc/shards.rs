//! SHARDS: LRU's curve from a spatial sample (Waldspurger, Park, Garthwaite, Ahmad, FAST 2015). A block is sampled if its hash is
//! below a threshold; distances are then too short by the threshold's share, and are scaled up.

use std::collections::{BinaryHeap, HashMap};

use super::super::load::{Chunk, Loaded};
use super::super::{Kind, SimError};
use super::curve::Curve;
use super::stack::Stack;

/// A hash of a dense block number, spread over all 64 bits (splitmix64, Steele et al., OOPSLA 2014).
#[inline]
pub(super) fn hash(block: u32, seed: u64) -> u64 {
    let mut z = (u64::from(block) ^ seed).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The threshold of a share.
pub(super) fn threshold(rate: f64) -> u64 {
    if rate >= 1.0 {
        u64::MAX
    } else {
        (rate.max(0.0) * 2_f64.powi(64)) as u64
    }
}

/// LRU's curve from the blocks of a share `rate`, with the correction of the first bucket.
///
/// # Errors
/// [`SimError::Spill`].
pub fn fixed_rate(trace: &Loaded, rate: f64, seed: u64) -> Result<Curve, SimError> {
    let limit = threshold(rate);
    let mut stack = Stack::new();
    let mut local: HashMap<u32, u32> = HashMap::new();
    let mut curve = Curve::default();
    for chunk in trace.chunks() {
        chunk?.for_each(|block, _, kind| {
            if hash(block, seed) > limit {
                return;
            }
            let next = local.len() as u32;
            let id = *local.entry(block).or_insert(next);
            step(&mut stack, &mut curve, id, kind, rate);
        });
    }
    curve.adjust(trace.counts.uses);
    Ok(curve)
}

fn step(stack: &mut Stack, curve: &mut Curve, id: u32, kind: Kind, rate: f64) {
    match kind {
        Kind::Remove => drop(stack.remove(id)),
        Kind::Readahead => drop(stack.touch(id)),
        Kind::Read | Kind::Write => {
            let distance = stack.touch(id).map(|d| stretched(d, rate));
            curve.add(distance, 1.0 / rate);
        }
        _ => {}
    }
}

/// Converts a distance among samples to one among all blocks. Between d - 1 and d samples lie below: the upper end, as in the paper.
fn stretched(distance: u64, rate: f64) -> u64 {
    (distance as f64 / rate).round() as u64
}

/// LRU's curve from a sample of at most `most` blocks: the threshold falls as blocks come.
#[derive(Debug)]
pub struct FixedSize {
    most: usize,
    seed: u64,
    limit: u64,
    stack: Stack,
    /// Sampled blocks: their numbers in the stack.
    local: HashMap<u32, u32>,
    /// Their hashes, the largest on top.
    heap: BinaryHeap<(u64, u32)>,
    free: Vec<u32>,
    curve: Curve,
}

impl FixedSize {
    /// At most `most` blocks at a time; 8192 need about 1 MiB and have a mean error below 0.01 in the paper.
    #[must_use]
    pub fn new(most: usize, seed: u64) -> Self {
        Self {
            most: most.max(1),
            seed,
            limit: u64::MAX,
            stack: Stack::new(),
            local: HashMap::new(),
            heap: BinaryHeap::new(),
            free: Vec::new(),
            curve: Curve::default(),
        }
    }

    /// The share of the blocks that is sampled now.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.limit == u64::MAX {
            1.0
        } else {
            self.limit as f64 / 2_f64.powi(64)
        }
    }

    /// Goes on with the next part of a trace.
    pub fn add(&mut self, chunk: &Chunk) {
        for (n, &block) in chunk.blocks.iter().enumerate() {
            let hash = hash(block, self.seed);
            if hash <= self.limit {
                let kind = chunk.kinds.get(n).copied().unwrap_or_default();
                self.use_block(block, hash, kind);
            }
        }
    }

    /// The curve of a trace of so many uses.
    #[must_use]
    pub fn curve(mut self, uses: u64) -> Curve {
        self.curve.adjust(uses);
        self.curve
    }

    /// A use of a block that is sampled. Most are not.
    #[cold]
    fn use_block(&mut self, block: u32, hash: u64, kind: Kind) {
        let rate = self.rate();
        let id = match self.local.get(&block) {
            Some(id) => *id,
            None => {
                let next = self.local.len() as u32;
                let id = self.free.pop().unwrap_or(next);
                self.local.insert(block, id);
                self.heap.push((hash, block));
                id
            }
        };
        step(&mut self.stack, &mut self.curve, id, kind, rate);
        while self.local.len() > self.most {
            let Some((hash, block)) = self.heap.pop() else {
                return;
            };
            // Blocks with this hash and above are no longer sampled.
            self.limit = hash.saturating_sub(1);
            if let Some(id) = self.local.remove(&block) {
                self.stack.forget(id);
                self.free.push(id);
            }
        }
    }
}

/// [`FixedSize`] over a trace: the curve and the last rate.
///
/// # Errors
/// [`SimError::Spill`].
pub fn fixed_size(trace: &Loaded, most: usize, seed: u64) -> Result<(Curve, f64), SimError> {
    let mut shards = FixedSize::new(most, seed);
    for chunk in trace.chunks() {
        shards.add(chunk?.as_ref());
    }
    let rate = shards.rate();
    Ok((shards.curve(trace.counts.uses), rate))
}
