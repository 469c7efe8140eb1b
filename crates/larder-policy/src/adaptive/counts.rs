//! How often blocks came to the cache lately, in few bits.

use super::super::PolicyError;
use larder_base::table::table;

/// Up to so many frames there is a word for each: half as many close 0.4 percentage points less of the gap. Where there are more frames,
/// there is at least a word for so many of them.
const SMALL: usize = 4096;
const SPARSE: usize = 4;
/// Every counter is halved once in so many arrivals, in frames.
const PERIOD: usize = 8;
/// All counters of a word, without their highest bits.
const HALVES: u64 = 0x7777_7777_7777_7777;

/// A count-min sketch of 4-bit counters with two rows. Both counters of a block are in one word, so an arrival costs one access to memory.
/// The words are halved in turn, one now and then, so no arrival has to wait for all of them.
#[derive(Debug)]
pub(super) struct Counts {
    words: Vec<u64>,
    /// The word to be halved next, and the arrivals until then.
    next: usize,
    left: u32,
    every: u32,
}

impl Counts {
    /// For a cache of this many frames.
    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        let full = frames.next_power_of_two();
        let words = (full / SPARSE).max(full.min(SMALL)).max(8);
        let every = (frames.saturating_mul(PERIOD) / words).max(1) as u32;
        Ok(Self {
            words: table(words, 0)?,
            next: 0,
            left: every,
            every,
        })
    }

    /// A block comes that has this hash. Returns how often it did lately, up to 15, about.
    #[inline]
    pub(super) fn add(&mut self, hash: u32) -> u8 {
        let mixed = u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = (mixed >> 32) as usize & (self.words.len() - 1);
        let low = ((mixed >> 26) & 7) as u32 * 4;
        let high = ((mixed >> 23) & 7) as u32 * 4 + 32;
        let word = &mut self.words[at];
        let (a, b) = ((*word >> low) & 15, (*word >> high) & 15);
        // Only the lesser one is raised: the other one counts other blocks too.
        let count = (a.min(b) + 1).min(15);
        *word += ((a.max(count) - a) << low) | ((b.max(count) - b) << high);
        self.left -= 1;
        if self.left == 0 {
            self.halve();
        }
        count as u8
    }

    fn halve(&mut self) {
        self.left = self.every;
        let word = &mut self.words[self.next];
        *word = (*word >> 1) & HALVES;
        self.next = (self.next + 1) & (self.words.len() - 1);
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_hardly_too_high_and_halve() {
        let mut counts = Counts::new(1000).unwrap();
        let high = (0..1000).filter(|&block| counts.add(block) > 1).count();
        assert!(high < 50, "{high} of 1000 too high");
        let most = (0..20).map(|_| counts.add(7)).max();
        assert_eq!(most, Some(15));
        (0..32_000).for_each(|block| {
            counts.add(block % 2000 + 10_000);
        });
        let left = counts.add(7);
        assert!(left < 6, "{left} after four periods");
    }
}
