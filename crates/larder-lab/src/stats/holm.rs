//! Many comparisons at once.

use super::special::student_two_sided;
use super::{StatsError, moments, signed_rank};

/// p-values adjusted by Holm (1979): those at or below 0.05 are sure together, not each for itself.
///
/// The smallest is multiplied by the number of comparisons, the next by one less, and none falls below one
/// before it. A value that is not a number counts as 1. Same order as the input.
///
/// ```
/// use larder_lab::stats::holm;
/// assert_eq!(holm(&[0.01, 0.25, 0.02]), [0.03, 0.25, 0.04]);
/// ```
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let clean: Vec<f64> = p
        .iter()
        .map(|p| if p.is_nan() { 1.0 } else { *p })
        .collect();
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| clean[*a].total_cmp(&clean[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut floor = 0.0_f64;
    for (done, i) in order.into_iter().enumerate() {
        floor = floor.max(((p.len() - done) as f64 * clean[i]).min(1.0));
        adjusted[i] = floor;
    }
    adjusted
}

/// Which test gave the p-values of a family of paired comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairedTest {
    /// Wilcoxon's signed ranks: assumes no law, but n pairs cannot give less than `2^(1 - n)`.
    SignedRank,
    /// Student's t of the logarithms: used where signed ranks could never pass Holm's bar, because there are
    /// too many comparisons for so few rounds. On spiky noise it errs towards "not distinguishable".
    Student,
}

impl PairedTest {
    /// The test for `comparisons` of `n` pairs each. It depends on the counts only and never on the data.
    #[must_use]
    pub fn choose(n: usize, comparisons: usize, alpha: f64) -> Self {
        let least = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX).saturating_sub(1));
        if least * comparisons as f64 <= alpha {
            Self::SignedRank
        } else {
            Self::Student
        }
    }

    /// Two-sided p-value that the differences `xs` have no side.
    ///
    /// # Errors
    /// [`StatsError::TooFew`], [`StatsError::NotFinite`].
    pub fn p(self, xs: &[f64]) -> Result<f64, StatsError> {
        match self {
            Self::SignedRank => signed_rank(xs).map(|t| t.p),
            Self::Student => {
                let m = moments(xs)?;
                if m.se > 0.0 {
                    Ok(student_two_sided(m.mean / m.se, m.n as f64 - 1.0))
                } else {
                    Ok(if m.mean == 0.0 { 1.0 } else { 0.0 })
                }
            }
        }
    }
}
