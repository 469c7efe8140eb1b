//! Noise for simulations.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A law of the noise of one sample.
#[derive(Debug, Clone, Copy)]
pub(super) enum Law {
    /// exp of a normal number with this standard deviation.
    LogNormal(f64),
    /// An exponential part of 10 % on a base, and one sample of twenty five times as long.
    Spiky,
}

pub(super) struct Noise(ChaCha8Rng);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Above 0, at most 1.
    fn uniform(&mut self) -> f64 {
        1.0 - self.0.random::<f64>()
    }

    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub(super) fn one(&mut self, law: Law) -> f64 {
        match law {
            Law::LogNormal(sd) => (sd * self.normal()).exp(),
            Law::Spiky => {
                let base = 1.0 - 0.1 * self.uniform().ln();
                if self.uniform() < 0.05 {
                    5.0 * base
                } else {
                    base
                }
            }
        }
    }

    pub(super) fn many(&mut self, law: Law, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.one(law)).collect()
    }
}

impl Law {
    /// The true median.
    pub(super) fn median(self) -> f64 {
        match self {
            Self::LogNormal(_) => 1.0,
            // 0.95 (1 - exp(-x / 0.1)) = 0.5 for the unspiked part; spikes are all above.
            Self::Spiky => 1.0 - 0.1 * f64::ln(1.0 - 0.5 / 0.95),
        }
    }
}
