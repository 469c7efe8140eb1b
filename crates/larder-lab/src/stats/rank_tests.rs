//! p-values by ranks. They rank evidence in tables of many comparisons; conclusions rest on intervals.

use super::StatsError;
use super::defaults::EXACT_SIGNED_RANK;
use super::error::finite;
use super::rank_laws;
use super::special::normal_cdf;

/// The outcome of a rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// The statistic: U of the first sample, or the sum of the positive ranks.
    pub statistic: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Whether p is from the exact law or from the normal approximation.
    pub exact: bool,
}

/// Mid-ranks from 1: equal values share the mean of their ranks. Also the sum of `t^3 - t` over ties of t.
fn mid_ranks(xs: &[f64]) -> (Vec<f64>, f64) {
    let mut order: Vec<usize> = (0..xs.len()).collect();
    order.sort_by(|a, b| xs[*a].total_cmp(&xs[*b]));
    let mut ranks = vec![0.0; xs.len()];
    let (mut start, mut ties) = (0, 0.0);
    while start < order.len() {
        let value = xs[order[start]];
        let len = order[start..]
            .iter()
            .take_while(|i| xs[**i] == value)
            .count();
        for i in &order[start..start + len] {
            ranks[*i] = start as f64 + (len as f64 + 1.0) / 2.0;
        }
        ties += (len as f64).powi(3) - len as f64;
        start += len;
    }
    (ranks, ties)
}

/// Two-sided normal p-value of a rank statistic with continuity correction.
fn normal_p(statistic: f64, mean: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((statistic - mean).abs() - 0.5).max(0.0) / variance.sqrt();
    (2.0 * normal_cdf(-z)).min(1.0)
}

/// The test of Mann and Whitney (1947) on two unpaired samples: does one tend to larger values?
///
/// Exact for up to 50 samples a side without ties; otherwise the normal approximation with corrections for
/// ties and continuity.
///
/// # Errors
/// [`StatsError::TooFew`] for an empty sample, [`StatsError::NotFinite`].
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Result<RankTest, StatsError> {
    const WHAT: &str = "a Mann-Whitney test";
    finite(WHAT, a)?;
    finite(WHAT, b)?;
    let (n, m) = (a.len(), b.len());
    if n == 0 || m == 0 {
        return Err(StatsError::TooFew {
            what: WHAT,
            have: 0,
            need: 1,
        });
    }
    let (ranks, ties) = mid_ranks(&[a, b].concat());
    let (nf, mf) = (n as f64, m as f64);
    let u = ranks[..n].iter().sum::<f64>() - nf * (nf + 1.0) / 2.0;
    let exact = ties == 0.0 && rank_laws::mann_whitney_is_exact(n, m);
    let p = if exact {
        (2.0 * rank_laws::mann_whitney_cdf(n, m, u.min(nf * mf - u))).min(1.0)
    } else {
        let all = nf + mf;
        let variance = nf * mf / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
        normal_p(u, nf * mf / 2.0, variance)
    };
    Ok(RankTest {
        statistic: u,
        p,
        exact,
    })
}

/// Wilcoxon's signed-rank test (1945): is the law of the differences `xs` symmetric about zero?
///
/// Zeros are left out, as Wilcoxon did. Ties share ranks, and the law is exact given the ties, up to 100
/// differences; above, the normal approximation.
///
/// # Errors
/// [`StatsError::TooFew`] for no differences, [`StatsError::NotFinite`].
pub fn signed_rank(xs: &[f64]) -> Result<RankTest, StatsError> {
    const WHAT: &str = "a signed-rank test";
    finite(WHAT, xs)?;
    if xs.is_empty() {
        return Err(StatsError::TooFew {
            what: WHAT,
            have: 0,
            need: 1,
        });
    }
    let xs: Vec<f64> = xs.iter().copied().filter(|x| *x != 0.0).collect();
    let sizes: Vec<f64> = xs.iter().map(|x| x.abs()).collect();
    let (ranks, ties) = mid_ranks(&sizes);
    let statistic: f64 = xs
        .iter()
        .zip(&ranks)
        .filter(|(x, _)| **x > 0.0)
        .map(|(_, rank)| rank)
        .sum();
    let n = xs.len() as f64;
    let exact = xs.len() <= EXACT_SIGNED_RANK;
    let p = if exact {
        // Twice a mid-rank is whole.
        let doubled: Vec<usize> = ranks.iter().map(|r| (2.0 * r) as usize).collect();
        let side = (2.0 * statistic).min(n * (n + 1.0) - 2.0 * statistic);
        (2.0 * rank_laws::sign_flip_cdf(&doubled, side as usize)).min(1.0)
    } else {
        let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
        normal_p(statistic, n * (n + 1.0) / 4.0, variance)
    };
    Ok(RankTest {
        statistic,
        p,
        exact,
    })
}
