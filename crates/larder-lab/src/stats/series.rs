//! Warnings about samples: they are printed, and no sample is dropped because of them.

use super::StatsError;
use super::defaults::OUTLIER_Z;
use super::error::{finite, sorted};
use super::median::middle;

/// How strongly each sample leans on the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lag1 {
    /// Autocorrelation at lag 1, from -1 to 1; about `-1 / n` for independent samples.
    pub r: f64,
    /// What independent samples stay under 39 times of 40.
    pub limit: f64,
    /// True when `r` is above: the samples hang together and every interval is too narrow.
    pub warn: bool,
}

/// The autocorrelation at lag 1 of samples in the order in which they were taken.
///
/// The limit is `-1/n + 1.96 / sqrt(n)` (Box, Jenkins & Reinsel, *Time Series Analysis*, 2.1). A constant
/// series has `r` 0. A drift, a warming machine and a neighbour that stays for several rounds all show here.
///
/// # Errors
/// [`StatsError::TooFew`] under 4 samples, [`StatsError::NotFinite`].
pub fn lag1(xs: &[f64]) -> Result<Lag1, StatsError> {
    const WHAT: &str = "a lag-1 autocorrelation";
    finite(WHAT, xs)?;
    if xs.len() < 4 {
        return Err(StatsError::TooFew {
            what: WHAT,
            have: xs.len(),
            need: 4,
        });
    }
    let n = xs.len() as f64;
    let mean = xs.iter().sum::<f64>() / n;
    let around: Vec<f64> = xs.iter().map(|x| x - mean).collect();
    let all: f64 = around.iter().map(|d| d * d).sum();
    let next: f64 = around.windows(2).map(|two| two[0] * two[1]).sum();
    let r = if all > 0.0 { next / all } else { 0.0 };
    let limit = -1.0 / n + 1.96 / n.sqrt();
    Ok(Lag1 {
        r,
        limit,
        warn: r > limit,
    })
}

/// The places of the samples whose modified z-score `0.6745 |x - median| / MAD` is above 3.5
/// (Iglewicz & Hoaglin, *How to Detect and Handle Outliers*, 1993). To be reported, never to be dropped.
///
/// Where more than half of the samples are equal the MAD is zero, and the mean absolute deviation takes its
/// place (`|x - median| / (1.2533 meanAD)`).
///
/// # Errors
/// [`StatsError::NotFinite`].
pub fn outliers(xs: &[f64]) -> Result<Vec<usize>, StatsError> {
    finite("outliers", xs)?;
    if xs.is_empty() {
        return Ok(Vec::new());
    }
    let centre = middle(&sorted(xs));
    let away: Vec<f64> = xs.iter().map(|x| (x - centre).abs()).collect();
    let mad = middle(&sorted(&away));
    let scale = if mad > 0.0 {
        mad / 0.6745
    } else {
        1.253_314 * away.iter().sum::<f64>() / xs.len() as f64
    };
    Ok((0..xs.len())
        .filter(|i| away[*i] > OUTLIER_Z * scale)
        .collect())
}
