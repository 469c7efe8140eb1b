//! The median with an interval from order statistics: no law of the noise is assumed.

use super::error::{finite, sorted, tail};
use super::{Estimate, StatsError};

/// P(B <= k) for B binomial with n trials of probability one half.
fn half_binomial_cdf(n: usize, k: usize) -> f64 {
    // Logarithms, because 2^-n underflows past n = 1074.
    let nf = n as f64;
    let mut ln_term = -nf * std::f64::consts::LN_2;
    let mut sum = ln_term.exp();
    for i in 1..=k.min(n) {
        ln_term += ((nf - i as f64 + 1.0) / i as f64).ln();
        sum += ln_term.exp();
    }
    sum.min(1.0)
}

/// The rank k, from 1, such that the k-th smallest and the k-th largest sample enclose the median with at
/// least `1 - 2 tail`; 0 when there is none.
fn rank(n: usize, tail: f64) -> usize {
    let (mut lo, mut hi) = (0, n.div_ceil(2));
    // The cdf grows with k: the largest k with P(B <= k - 1) <= tail.
    while lo < hi {
        let mid = (lo + hi).div_ceil(2);
        if half_binomial_cdf(n, mid - 1) <= tail {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    lo
}

/// The smallest n with 2^-n <= tail, so that the range of the samples is an interval of this level:
/// 6 at 95 %, 8 at 99 %. The signed ranks need the same.
pub(crate) fn least_samples(tail: f64) -> usize {
    (-tail.log2()).ceil() as usize
}

/// The middle of sorted samples; the mean of the two middle ones for an even count.
pub(crate) fn middle(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    if n == 0 {
        f64::NAN
    } else if n % 2 == 1 {
        sorted[n / 2]
    } else {
        0.5 * sorted[n / 2 - 1] + 0.5 * sorted[n / 2]
    }
}

/// The coverage that the interval of [`median`] attains for n samples, or `None` where no such interval
/// exists. It is exact for any continuous law and at least this for a law with ties.
///
/// ```
/// use larder_lab::stats::median_coverage;
/// let ten = median_coverage(10, 0.95).unwrap();
/// assert!((ten - (1.0 - 22.0 / 1024.0)).abs() < 1e-15); // second smallest to second largest
/// assert_eq!(median_coverage(5, 0.95), None);
/// ```
#[must_use]
pub fn median_coverage(n: usize, level: f64) -> Option<f64> {
    let rank = rank(n, tail(level).ok()?);
    (rank > 0).then(|| 1.0 - 2.0 * half_binomial_cdf(n, rank - 1))
}

/// The median, with the interval between the k-th smallest and the k-th largest sample.
///
/// k is the largest rank for which the binomial law of one half grants the level (Hollander & Wolfe,
/// *Nonparametric Statistical Methods*, 3.6). The exact coverage is [`median_coverage`]; it is at least
/// `level`, because ranks are whole. The ends are samples, in the samples' unit.
///
/// # Errors
/// [`StatsError::TooFew`] under 6 samples at 95 %, [`StatsError::NotFinite`], [`StatsError::BadLevel`].
///
/// ```
/// use larder_lab::stats::median;
/// let e = median(&[5.0, 1.0, 3.0, 2.0, 4.0, 90.0], 0.95)?;
/// assert_eq!((e.value, e.lo, e.hi), (3.5, 1.0, 90.0));
/// # Ok::<(), larder_lab::stats::StatsError>(())
/// ```
pub fn median(xs: &[f64], level: f64) -> Result<Estimate, StatsError> {
    let tail = tail(level)?;
    finite("a median", xs)?;
    let n = xs.len();
    let rank = rank(n, tail);
    if rank == 0 {
        return Err(StatsError::TooFew {
            what: "a median",
            have: n,
            need: least_samples(tail),
        });
    }
    let sorted = sorted(xs);
    Ok(Estimate {
        value: middle(&sorted),
        lo: sorted[rank - 1],
        hi: sorted[n - rank],
        n,
        level,
    })
}

/// The bare median of any samples; `None` when there are none or one is not finite.
#[must_use]
pub fn middle_of(xs: &[f64]) -> Option<f64> {
    (!xs.is_empty() && xs.iter().all(|x| x.is_finite())).then(|| middle(&sorted(xs)))
}
