//! The statistics of the lab: pure functions of samples, without randomness except where a seed is given.
//!
//! Start with [`median()`] for one contestant, and with [`paired_ratio`] and [`verdict()`] for two. Every estimate is
//! an [`Estimate`]: value, interval, samples behind it, confidence. What each number means in plain words is
//! in `docs/statistics.md`.

mod bootstrap;
pub mod defaults;
mod error;
pub mod fit;
mod hodges_lehmann;
mod holm;
mod kth;
mod median;
mod moments;
mod rank_laws;
mod rank_tests;
mod series;
pub(crate) mod special;
pub mod stopping;
pub mod sweep;
mod verdict;

use serde::{Deserialize, Serialize};

pub use error::StatsError;
pub(crate) use hodges_lehmann::centre;
pub use hodges_lehmann::{
    hodges_lehmann, log_ratios, paired_ratio, shift, shift_coverage, signed_rank_coverage,
};
pub use holm::{PairedTest, holm};
pub use median::{median, median_coverage, middle_of};
pub use moments::{Moments, Welch, moments, welch};
pub use rank_tests::{RankTest, mann_whitney, signed_rank};
pub use series::{Lag1, lag1, outliers};
pub use verdict::verdict;

/// A number with the interval that covers it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Point estimate.
    pub value: f64,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// Number of samples (or pairs) behind it.
    pub n: usize,
    /// Confidence that the interval was made for, for instance 0.95; the exact one is at least this.
    pub level: f64,
}

/// What a comparison says, in six words.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "verdict")]
pub enum Verdict {
    /// The whole interval is on the good side, and beyond the A/A floor.
    Faster,
    /// The whole interval is on the bad side, and beyond the A/A floor.
    Slower,
    /// The whole interval is within this share of 1 (0.02 is two percent).
    Same {
        /// The share.
        within: f64,
    },
    /// The interval says neither.
    Inconclusive,
    /// Too few samples, or the precondition failed.
    Refused,
    /// Refused because other programs disturbed the samples behind it.
    Noisy,
}

#[cfg(test)]
mod tests;
