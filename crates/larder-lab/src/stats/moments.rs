//! Mean, standard deviation and standard error, as the published tables print them.

use serde::{Deserialize, Serialize};

use super::error::{finite, tail};
use super::special::{student_quantile, student_two_sided};
use super::{Estimate, StatsError};

/// What the published tables print of a row. Sensitive to a single wild sample: for conclusions use
/// [`median`](super::median()).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Number of samples.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation with n - 1 in the denominator.
    pub sd: f64,
    /// Standard error of the mean, `sd / sqrt(n)`.
    pub se: f64,
}

/// Mean, standard deviation (n - 1) and standard error of at least two samples.
///
/// # Errors
/// [`StatsError::TooFew`] under two samples, [`StatsError::NotFinite`].
pub fn moments(xs: &[f64]) -> Result<Moments, StatsError> {
    finite("a standard deviation", xs)?;
    let n = xs.len();
    if n < 2 {
        return Err(StatsError::TooFew {
            what: "a standard deviation",
            have: n,
            need: 2,
        });
    }
    let nf = n as f64;
    let mean = xs.iter().sum::<f64>() / nf;
    // The second sum is what rounding left in the mean (Chan, Golub & LeVeque 1983).
    let (squares, rest) = xs.iter().fold((0.0, 0.0), |(s, r), x| {
        let d = x - mean;
        (s + d * d, r + d)
    });
    let variance = (squares - rest * rest / nf) / (nf - 1.0);
    // Samples near the end of the range of f64 overflow when squared.
    finite("a standard deviation", &[mean, variance])?;
    let sd = variance.max(0.0).sqrt();
    Ok(Moments {
        n,
        mean,
        sd,
        se: sd / nf.sqrt(),
    })
}

/// Welch's comparison of two means from their summaries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Welch {
    /// Difference of the means, a - b, with its t interval; `n` is the smaller of the two sizes.
    pub difference: Estimate,
    /// Student's t.
    pub t: f64,
    /// Degrees of freedom by Welch and Satterthwaite.
    pub df: f64,
    /// Two-sided p-value.
    pub p: f64,
}

/// Welch's t test from mean, standard deviation and n alone, for tables that print nothing else.
///
/// Only for rows of one table: times of two machines are never compared. Welch (1947).
///
/// # Errors
/// [`StatsError::TooFew`] when either n is under two, [`StatsError::BadArgument`] when a mean or standard
/// deviation is not finite, or both standard deviations are zero (then no interval is possible).
pub fn welch(a: &Moments, b: &Moments, level: f64) -> Result<Welch, StatsError> {
    const WHAT: &str = "Welch's comparison";
    let tail = tail(level)?;
    for m in [a, b] {
        if m.n < 2 {
            return Err(StatsError::TooFew {
                what: WHAT,
                have: m.n,
                need: 2,
            });
        }
        if !m.mean.is_finite() {
            return Err(StatsError::BadArgument {
                what: WHAT,
                name: "mean",
                value: m.mean,
                must: "finite",
            });
        }
        if !(m.sd.is_finite() && m.sd >= 0.0) {
            return Err(StatsError::BadArgument {
                what: WHAT,
                name: "standard deviation",
                value: m.sd,
                must: "finite and not negative",
            });
        }
    }
    let (na, nb) = (a.n as f64, b.n as f64);
    // From sd and n rather than `se`, which a table may have rounded differently.
    let (va, vb) = (a.sd * a.sd / na, b.sd * b.sd / nb);
    let variance = va + vb;
    if variance <= 0.0 {
        return Err(StatsError::BadArgument {
            what: WHAT,
            name: "standard deviation",
            value: 0.0,
            must: "above zero in at least one of the two",
        });
    }
    let df = variance * variance / (va * va / (na - 1.0) + vb * vb / (nb - 1.0));
    let value = a.mean - b.mean;
    let se = variance.sqrt();
    let t = value / se;
    let half = -student_quantile(tail, df) * se;
    Ok(Welch {
        difference: Estimate {
            value,
            lo: value - half,
            hi: value + half,
            n: a.n.min(b.n),
            level,
        },
        t,
        df,
        p: student_two_sided(t, df),
    })
}
