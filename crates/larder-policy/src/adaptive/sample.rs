//! Which blocks the miniatures see.

use super::super::Block;

/// Frames of a miniature: a thirty-second of the cache's, within these bounds. With fewer, the choice depends on which blocks are in the
/// sample: 512 frames for a cache of 131072 lost a point of hits on P3 with every second hash, 2048 with none. Up to four
/// times as many in caches of 512 to 16384 frames close 0.25 percentage points more of the gap, in the mean of four hashes, and cost up to
/// four times as much.
const SHARE: usize = 32;
const MOST: usize = 2048;
/// In small caches a sixteenth, within these bounds. Twice as many close as much of the gap in the mean of three hashes, and cost
/// twice as much; half as many close 0.8 percentage points less.
const SMALL_SHARE: usize = 16;
const LEAST: usize = 64;
const MOST_SMALL: usize = 128;

/// A share of all blocks, chosen by a hash, so that all uses of a block are seen or none (SHARDS, FAST 2015).
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Hashes below this, of 2^32, are in.
    below: u64,
    frames: usize,
}

impl Sample {
    /// The sample of a cache of this many frames.
    pub(super) fn new(capacity: usize) -> Self {
        let small = (capacity / SMALL_SHARE).clamp(LEAST, MOST_SMALL);
        let frames = (capacity / SHARE).clamp(small, MOST).min(capacity);
        Self {
            below: ((frames as u64) << 32).div_ceil(capacity as u64),
            frames,
        }
    }

    /// Frames of each miniature.
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    /// The name of a block among the sampled ones, and whether it is one of them.
    #[inline]
    pub(super) fn name(&self, block: Block) -> (u32, bool) {
        let hash = mix(block.0);
        ((hash >> 32) as u32, hash & u64::from(u32::MAX) < self.below)
    }
}

/// A bijection of 64 bits whose every output bit depends on all input bits (finaliser of MurmurHash3, Appleby 2011).
fn mix(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ word >> 33
}
