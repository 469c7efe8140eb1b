//! The set of settings that cannot be distinguished from the best.

use super::Sweep;
use crate::stats::error::tail;
use crate::stats::{Estimate, PairedTest, StatsError, holm};

/// The optimum is a set: naming one winner among equals would name another one tomorrow.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimumSet {
    /// Index of the setting with the lowest estimated cost.
    pub best: usize,
    /// Indices of all settings that are not distinguishable from it, ascending, the best included.
    pub members: Vec<usize>,
    /// The cheapest member to hold: the one to use.
    pub recommended: usize,
    /// Ratio of every setting to the best.
    pub ratios: Vec<Estimate>,
    /// p-value of every setting against the best, after Holm; 1 for the best itself.
    pub p: Vec<f64>,
    /// The test that gave them.
    pub test: PairedTest,
}

impl Sweep {
    /// All settings that are not distinguishable from the best at this level after Holm (1979), by paired
    /// tests of the logarithms of the ratios.
    ///
    /// `burden[i]` says what setting i costs to hold (memory); the member with the least is recommended, of
    /// equals the smaller setting. Without it the best itself is recommended.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] under 6 rounds at 95 %, [`StatsError::BadLevel`], [`StatsError::Unpaired`] when
    /// `burden` is not as long as the settings.
    pub fn optimum_set(
        &self,
        level: f64,
        burden: Option<&[f64]>,
    ) -> Result<OptimumSet, StatsError> {
        let alpha = 2.0 * tail(level)?;
        if let Some(burden) = burden
            && burden.len() != self.settings.len()
        {
            return Err(StatsError::Unpaired {
                what: "an optimum set",
                a: self.settings.len(),
                b: burden.len(),
            });
        }
        let best = self.best();
        let ratios = self.ratios_to(best, level)?;
        let others: Vec<usize> = (0..self.settings.len()).filter(|j| *j != best).collect();
        let test = PairedTest::choose(self.rounds, others.len(), alpha);
        let raw = others
            .iter()
            .map(|j| test.p(&self.logs_to(*j, best)?))
            .collect::<Result<Vec<f64>, _>>()?;
        let mut p = vec![1.0; self.settings.len()];
        for (j, adjusted) in others.iter().zip(holm(&raw)) {
            p[*j] = adjusted;
        }
        let members: Vec<usize> = (0..p.len()).filter(|j| p[*j] > alpha).collect();
        let recommended = match burden {
            None => best,
            Some(burden) => members
                .iter()
                .copied()
                .min_by(|a, b| burden[*a].total_cmp(&burden[*b]))
                .unwrap_or(best),
        };
        Ok(OptimumSet {
            best,
            members,
            recommended,
            ratios,
            p,
            test,
        })
    }
}
