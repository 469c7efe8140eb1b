//! Random numbers for rules with random choices: the same every time.

/// A generator by Marsaglia's xorshift with Vigna's multiplication.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// Less than `bound`, nearly evenly.
    #[inline]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.next()) * bound as u64) >> 32) as usize
    }

    /// From 0 to less than 1.
    #[inline]
    pub(super) fn part(&mut self) -> f64 {
        f64::from(self.next()) / 4_294_967_296.0
    }
}
