//! Numbers that a workload draws: the same for every allocator.

/// xorshift64* (Marsaglia 2003, Vigna 2016): a few instructions, so that the allocator is what is timed.
#[derive(Debug, Clone)]
pub(in crate::experiments) struct Draw(u64);

impl Draw {
    /// A stream of its own for each number.
    pub(in crate::experiments) fn new(stream: usize) -> Self {
        // The constants are odd, so that no stream begins at zero.
        let mut draw =
            Self((stream as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03);
        for _ in 0..4 {
            draw.next();
        }
        draw
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`, which is at least 1 and below 2^32 (Lemire 2019, without the rejection).
    #[inline(always)]
    pub(in crate::experiments) fn below(&mut self, n: usize) -> usize {
        (((self.next() >> 32) * n as u64) >> 32) as usize
    }

    /// A number from `low` to `high`, both included.
    #[inline(always)]
    pub(super) fn within(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Sizes of a Pareto law of exponent 1 between `low` and `high`: many small, few large. A table, since computing one
    /// takes longer than allocating it.
    pub(super) fn pareto(&mut self, low: usize, high: usize) -> Vec<usize> {
        const SIZES: usize = 4096;
        (0..SIZES)
            .map(|_| {
                let share = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
                let (low, high) = (low as f64, high as f64);
                // The inverse of the law, cut at both ends.
                let size = low / (1.0 - share * (1.0 - low / high));
                (size as usize).clamp(low as usize, high as usize)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_their_range_and_streams_differ() {
        let mut draw = Draw::new(0);
        let mut seen = [0_u32; 8];
        for _ in 0..8000 {
            seen[draw.below(8)] += 1;
            assert!((3..=5).contains(&draw.within(3, 5)));
        }
        assert!(seen.iter().all(|n| *n > 700), "{seen:?}");
        assert_ne!(Draw::new(1).next(), Draw::new(2).next());
    }

    #[test]
    fn pareto_sizes_are_small_mostly_and_large_sometimes() {
        let sizes = Draw::new(7).pareto(8, 1024);
        let small = sizes.iter().filter(|s| **s < 16).count();
        assert!(small * 2 > sizes.len() - 400 && small < sizes.len());
        assert!(sizes.iter().any(|s| *s > 500));
        assert!(sizes.iter().all(|s| (8..=1024).contains(s)));
    }
}
