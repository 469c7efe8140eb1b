//! One factor swept over settings: which are best, where the curve flattens, where two curves cross.
//!
//! All samples of a sweep are paired by round, so every question is asked of ratios within rounds.

mod crossover;
mod knee;
mod kneedle;
mod optimum;

pub use crossover::{Crossing, Crossover, crossover};
pub use knee::{Knee, NoKnee};
pub use kneedle::kneedle;
pub use optimum::OptimumSet;

use super::defaults::RESAMPLES;
use super::error::{positive, tail};
use super::hodges_lehmann::centre;
use super::median::middle_of;
use super::{Estimate, StatsError, bootstrap, log_ratios, paired_ratio};

/// Costs (lower is better) of ascending settings in rounds that hold all of them.
///
/// ```
/// use larder_lab::stats::sweep::{Knee, Sweep};
/// // Seven rounds of four settings: 1 costs double, 4 is nearly best, 16 and 64 are equal.
/// let rounds: Vec<Vec<f64>> = (0..7_i32)
///     .map(|r| {
///         let (noise, drift) = (0.001 * f64::from(r % 3), 1.0 + f64::from(r));
///         vec![20.0 * drift, (10.1 + noise) * drift, (10.0 - noise) * drift, (10.0 + noise) * drift]
///     })
///     .collect();
/// let sweep = Sweep::new(&[1.0, 4.0, 16.0, 64.0], &rounds)?;
/// assert!(matches!(sweep.knee(0.95, 0.03)?, Knee::At { setting: 4.0, .. }));
/// let set = sweep.optimum_set(0.95, None)?;
/// assert!(!set.members.contains(&0));
/// # Ok::<(), larder_lab::stats::StatsError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    settings: Vec<f64>,
    /// By setting, then by round.
    costs: Vec<Vec<f64>>,
    rounds: usize,
}

impl Sweep {
    /// A sweep from `rounds[round][setting]`. For rates hand in their inverses.
    ///
    /// # Errors
    /// [`StatsError::BadArgument`] when settings do not ascend, [`StatsError::Unpaired`] when a round does not
    /// hold every setting, [`StatsError::NotPositive`] and [`StatsError::NotFinite`] for a cost,
    /// [`StatsError::TooFew`] for no settings or no rounds.
    pub fn new(settings: &[f64], rounds: &[Vec<f64>]) -> Result<Self, StatsError> {
        const WHAT: &str = "a sweep";
        ascending(WHAT, settings)?;
        if settings.is_empty() || rounds.is_empty() {
            return Err(StatsError::TooFew {
                what: WHAT,
                have: 0,
                need: 1,
            });
        }
        for round in rounds {
            if round.len() != settings.len() {
                return Err(StatsError::Unpaired {
                    what: WHAT,
                    a: settings.len(),
                    b: round.len(),
                });
            }
            positive(WHAT, round)?;
        }
        let costs = (0..settings.len())
            .map(|j| rounds.iter().map(|round| round[j]).collect())
            .collect();
        Ok(Self {
            settings: settings.to_vec(),
            costs,
            rounds: rounds.len(),
        })
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &[f64] {
        &self.settings
    }

    /// Number of rounds.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// The setting with the lowest cost, by index: lowest Hodges-Lehmann centre of the logarithm of its cost
    /// over the middle of its round. Of equals the first.
    #[must_use]
    pub fn best(&self) -> usize {
        let all: Vec<usize> = (0..self.rounds).collect();
        self.best_of(&self.relative(), &all)
    }

    /// The ratio of each setting to the one at `index`, paired by round; that one's own is 1 without width.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] under 6 rounds at 95 %, [`StatsError::BadLevel`],
    /// [`StatsError::BadArgument`] for an index outside.
    pub fn ratios_to(&self, index: usize, level: f64) -> Result<Vec<Estimate>, StatsError> {
        let Some(base) = self.costs.get(index) else {
            return Err(StatsError::BadArgument {
                what: "a ratio to a setting",
                name: "index",
                value: index as f64,
                must: "one of the settings",
            });
        };
        self.costs
            .iter()
            .map(|costs| paired_ratio(costs, base, level))
            .collect()
    }

    /// Where the optimum lies, with the percentile interval of the best setting over resampled rounds.
    /// Approximate; the set of [`optimum_set`](Self::optimum_set) is the answer to act on.
    ///
    /// # Errors
    /// [`StatsError::BadLevel`].
    pub fn optimum_location(&self, level: f64, seed: u64) -> Result<Estimate, StatsError> {
        let tail = tail(level)?;
        let relative = self.relative();
        let mut found = Vec::with_capacity(RESAMPLES);
        bootstrap::rounds(self.rounds, RESAMPLES, seed, |drawn| {
            found.push(self.settings[self.best_of(&relative, drawn)]);
        });
        let (lo, hi) = bootstrap::percentile(&found, tail);
        let value = self.settings[self.best()];
        Ok(Estimate {
            value,
            lo: lo.min(value),
            hi: hi.max(value),
            n: self.rounds,
            level,
        })
    }

    /// The mark of [`kneedle`] on the medians, with the settings in logarithms if all are positive. Secondary:
    /// it depends on the range of the sweep.
    #[must_use]
    pub fn kneedle(&self) -> Option<usize> {
        let medians: Vec<f64> = self.costs.iter().filter_map(|c| middle_of(c)).collect();
        let logs = self.settings.iter().all(|s| *s > 0.0);
        let xs: Vec<f64> = self
            .settings
            .iter()
            .map(|s| if logs { s.ln() } else { *s })
            .collect();
        kneedle(&xs, &medians, 1.0)
    }

    /// ln(cost / middle of the round), by setting, then by round: what all settings of a round share is gone.
    fn relative(&self) -> Vec<Vec<f64>> {
        let middles: Vec<f64> = (0..self.rounds)
            .map(|r| {
                let logs: Vec<f64> = self.costs.iter().map(|c| c[r].ln()).collect();
                middle_of(&logs).unwrap_or(0.0)
            })
            .collect();
        self.costs
            .iter()
            .map(|costs| {
                costs
                    .iter()
                    .zip(&middles)
                    .map(|(c, middle)| c.ln() - middle)
                    .collect()
            })
            .collect()
    }

    /// The best setting of some rounds. `relative` is [`relative`](Self::relative).
    fn best_of(&self, relative: &[Vec<f64>], rounds: &[usize]) -> usize {
        let mut best = (0, f64::INFINITY);
        for (j, logs) in relative.iter().enumerate() {
            let drawn: Vec<f64> = rounds.iter().map(|r| logs[*r]).collect();
            let cost = centre(&drawn);
            if cost < best.1 {
                best = (j, cost);
            }
        }
        best.0
    }

    fn logs_to(&self, index: usize, base: usize) -> Result<Vec<f64>, StatsError> {
        log_ratios(&self.costs[index], &self.costs[base])
    }
}

/// Settings must be finite and ascend strictly.
fn ascending(what: &'static str, settings: &[f64]) -> Result<(), StatsError> {
    let bad = settings
        .iter()
        .find(|s| !s.is_finite())
        .or_else(|| settings.windows(2).find(|s| s[1] <= s[0]).map(|s| &s[1]));
    match bad {
        None => Ok(()),
        Some(value) => Err(StatsError::BadArgument {
            what,
            name: "setting",
            value: *value,
            must: "finite and above the one before",
        }),
    }
}
