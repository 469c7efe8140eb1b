//! How often blocks were seen lately, of all blocks, in few bits: a count-min sketch whose counters are halved now and then.

use super::{Block, PolicyError};
use larder_base::table::{grow, table};

/// A counter of each row is chosen by one of these.
const ROWS: [u64; 4] = [
    0xc3a5_c85c_97cb_3127,
    0xb492_b66f_be98_f273,
    0x9ae1_6a3b_2f90_404f,
    0xcbf2_9ce4_8422_2325,
];
/// The counters are halved after this many times the capacity of additions.
const PERIOD: usize = 10;
/// All counters of a word, without their highest bits.
const HALVES: u64 = 0x7777_7777_7777_7777;

/// Counters of 4 bits, 16 of them for each frame and up to twice as many: 8 to 16 bytes a frame.
#[derive(Debug)]
pub(super) struct Sketch {
    words: Vec<u64>,
    additions: usize,
    period: usize,
}

/// What the sketch wants of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Key(u32);

impl Key {
    pub(super) fn of(block: Block) -> Self {
        let mixed = (block.0 ^ block.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32)
    }
}

impl Sketch {
    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            words: table(words_of(frames), 0)?,
            additions: 0,
            period: frames.saturating_mul(PERIOD),
        })
    }

    /// Changes the capacity. What was counted is lost when the sketch grows.
    pub(super) fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        let words = words_of(frames);
        if words > self.words.len() {
            grow(&mut self.words, words, 0)?;
            self.words.fill(0);
            self.additions = 0;
        }
        self.period = frames.saturating_mul(PERIOD);
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// The words and the shifts of a block's counters.
    #[inline]
    fn counters(&self, key: Key) -> [(usize, u32); 4] {
        let hash = u64::from(key.0);
        let mask = self.words.len() - 1;
        let first = (key.0 & 3) * 16;
        core::array::from_fn(|row| {
            let word = (hash.wrapping_mul(ROWS[row]) >> 32) as usize & mask;
            (word, first + row as u32 * 4)
        })
    }

    /// Counts one use.
    #[inline]
    pub(super) fn add(&mut self, key: Key) {
        let mut added = false;
        for (word, shift) in self.counters(key) {
            if self.words[word] >> shift & 15 < 15 {
                self.words[word] += 1 << shift;
                added = true;
            }
        }
        self.additions += usize::from(added);
        if self.additions >= self.period {
            self.words
                .iter_mut()
                .for_each(|word| *word = *word >> 1 & HALVES);
            self.additions /= 2;
        }
    }

    /// About how often it was seen lately, up to 15; never too few.
    #[inline]
    pub(super) fn count(&self, key: Key) -> u64 {
        let counts = self.counters(key);
        let counts = counts.map(|(word, shift)| self.words[word] >> shift & 15);
        counts.into_iter().fold(15, u64::min)
    }
}

fn words_of(frames: usize) -> usize {
    frames
        .checked_next_power_of_two()
        .unwrap_or(usize::MAX)
        .max(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_low_rarely_too_high_and_halve() {
        let mut sketch = Sketch::new(1000).unwrap();
        let key = |at: u64| Key::of(Block(at));
        for at in 0..900 {
            for _ in 0..at % 5 {
                sketch.add(key(at));
            }
        }
        assert!((0..900).all(|at| sketch.count(key(at)) >= at % 5));
        let high = (0..900)
            .filter(|&at| sketch.count(key(at)) > at % 5)
            .count();
        assert!(high < 50, "{high} of 900 too high");
        let before = sketch.count(key(4));
        for at in 0..10_000 {
            sketch.add(key(10_000 + at));
        }
        assert!(sketch.count(key(4)) < before + 3 && sketch.additions < 10_000);
        (0..20).for_each(|_| sketch.add(key(7)));
        assert_eq!(sketch.count(key(7)), 15);
    }
}
