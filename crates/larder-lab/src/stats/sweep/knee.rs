//! The knee: the smallest setting that is surely nearly as good as the best.

use super::Sweep;
use crate::stats::defaults::RESAMPLES;
use crate::stats::error::tail;
use crate::stats::hodges_lehmann::centre;
use crate::stats::{Estimate, StatsError, bootstrap};

/// Where a curve of costs flattens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Knee {
    /// Here.
    At {
        /// Index of the setting.
        index: usize,
        /// The setting.
        setting: f64,
        /// Its ratio to the best.
        ratio: Estimate,
        /// True when it is the smallest setting of the sweep: the curve is flat from its start, and the knee
        /// may lie below the range.
        from_start: bool,
        /// True when the interval of a smaller setting also reaches down to `1 + eps`: that one may be good
        /// enough too, and more rounds would tell.
        maybe_smaller: bool,
    },
    /// Nowhere in the range.
    None(NoKnee),
}

/// Why a sweep shows no knee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoKnee {
    /// Only the last setting qualifies, and all others are surely worse: the curve still falls where the
    /// sweep ends.
    StillFalling,
    /// Only the last setting qualifies, but another may: the noise is larger than `eps`. Take more rounds.
    Unsure,
    /// A single setting was measured.
    OneSetting,
}

impl Sweep {
    /// The smallest setting whose ratio to the best has an upper bound of at most `1 + eps`.
    ///
    /// It needs no scale of the axis and does not move when settings are added beyond the optimum. Between
    /// two equally good settings the best one qualifies always, for its ratio to itself is 1. Noise moves the
    /// knee to larger settings, never to ones that are not good enough (each with 97.5 %).
    ///
    /// # Errors
    /// [`StatsError::TooFew`] under 6 rounds at 95 %, [`StatsError::BadLevel`], [`StatsError::BadArgument`]
    /// for an `eps` that is negative or not finite.
    pub fn knee(&self, level: f64, eps: f64) -> Result<Knee, StatsError> {
        if !(eps.is_finite() && eps >= 0.0) {
            return Err(StatsError::BadArgument {
                what: "a knee",
                name: "eps",
                value: eps,
                must: "zero or more",
            });
        }
        let ratios = self.ratios_to(self.best(), level)?;
        let last = ratios.len() - 1;
        let index = ratios
            .iter()
            .position(|ratio| ratio.hi <= 1.0 + eps)
            .unwrap_or(last);
        let maybe_smaller = ratios[..index].iter().any(|ratio| ratio.lo <= 1.0 + eps);
        Ok(if last == 0 {
            Knee::None(NoKnee::OneSetting)
        } else if index == last {
            Knee::None(if maybe_smaller {
                NoKnee::Unsure
            } else {
                NoKnee::StillFalling
            })
        } else {
            Knee::At {
                index,
                setting: self.settings[index],
                ratio: ratios[index],
                from_start: index == 0,
                maybe_smaller,
            }
        })
    }

    /// How sure the place of the knee is: the percentile interval, over resampled rounds, of the smallest
    /// setting whose estimated ratio to the best is at most `1 + eps`, widened to hold the knee itself.
    /// Approximate. `None` when there is no knee.
    ///
    /// # Errors
    /// As [`knee`](Self::knee).
    pub fn knee_location(
        &self,
        level: f64,
        eps: f64,
        seed: u64,
    ) -> Result<Option<Estimate>, StatsError> {
        let tail = tail(level)?;
        let Knee::At { setting, .. } = self.knee(level, eps)? else {
            return Ok(None);
        };
        let relative = self.relative();
        let bar = eps.ln_1p();
        let mut found = Vec::with_capacity(RESAMPLES);
        bootstrap::rounds(self.rounds, RESAMPLES, seed, |drawn| {
            let best = self.best_of(&relative, drawn);
            let near = relative.iter().position(|logs| {
                let apart: Vec<f64> = drawn
                    .iter()
                    .map(|r| logs[*r] - relative[best][*r])
                    .collect();
                centre(&apart) <= bar
            });
            found.push(self.settings[near.unwrap_or(best)]);
        });
        let (lo, hi) = bootstrap::percentile(&found, tail);
        Ok(Some(Estimate {
            value: setting,
            lo: lo.min(setting),
            hi: hi.max(setting),
            n: self.rounds,
            level,
        }))
    }
}
