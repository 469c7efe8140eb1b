//! What the samples themselves say against believing them.

use super::RunView;
use crate::model::Cell;
use crate::stats::{self, Lag1, log_ratios};

impl RunView<'_> {
    /// How the samples of a cell lean on the ones before; `None` under 4 rounds.
    #[must_use]
    pub fn lag1(&self, group: &str, cell: &Cell, metric: &str) -> Option<Lag1> {
        stats::lag1(&self.plain(group, cell, metric)).ok()
    }

    /// The same of the ratio a / b: what a ratio's interval rests on. `None` under 4 rounds.
    #[must_use]
    pub fn ratio_lag1(&self, group: &str, a: &Cell, b: &Cell, metric: &str) -> Option<Lag1> {
        let (a, b) = self.pairs(group, a, b, metric);
        stats::lag1(&log_ratios(&a, &b).ok()?).ok()
    }

    /// The rounds in which a cell's sample is an outlier: to be reported, not dropped.
    #[must_use]
    pub fn outliers(&self, group: &str, cell: &Cell, metric: &str) -> Vec<u32> {
        let values = self.values(group, cell, metric);
        let plain: Vec<f64> = values.iter().map(|(_, v)| *v).collect();
        stats::outliers(&plain)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|i| values.get(i).map(|(round, _)| *round))
            .collect()
    }

    /// Sentences for the user about the samples of one metric of a group; none when all is well.
    #[must_use]
    pub fn warnings(&self, group: &str, metric: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        let Some(reference) = self.reference(group) else {
            return warnings;
        };
        match self.twin_ratio(group, metric) {
            None => warnings.push(format!(
                "{group}: no A/A ratio of {metric}, so nothing is called faster or slower: the reference and \
                 its twin need 6 common rounds and values above zero"
            )),
            Some(ratio) if ratio.lo > 1.0 || ratio.hi < 1.0 => warnings.push(format!(
                "{group}: two runs of the same thing differ in {metric} by {:.1} % [{:.1}, {:.1}]: by chance \
                 in 1 run of 20, otherwise the machine changed; repeat the run when it is quiet",
                percent(ratio.value),
                percent(ratio.lo),
                percent(ratio.hi)
            )),
            Some(_) => {}
        }
        let others: Vec<&Cell> = self
            .cells(group)
            .into_iter()
            .filter(|cell| *cell != reference)
            .collect();
        let leaning = others
            .iter()
            .filter(|cell| {
                self.ratio_lag1(group, cell, reference, metric)
                    .is_some_and(|lag| lag.warn)
            })
            .count();
        // Each series warns once in 40 by chance: more than a tenth of them is no chance.
        if leaning * 10 > others.len() && leaning > 0 {
            warnings.push(format!(
                "{group}: rounds of {metric} lean on the ones before in {leaning} of {} ratios, so their \
                 intervals are too narrow: something slow changed during the run",
                others.len()
            ));
        }
        let wild: usize = self
            .cells(group)
            .iter()
            .map(|cell| self.outliers(group, cell, metric).len())
            .sum();
        let all: usize = self
            .cells(group)
            .iter()
            .map(|cell| self.values(group, cell, metric).len())
            .sum();
        if wild * 10 > all {
            warnings.push(format!(
                "{group}: {wild} of {all} samples of {metric} are outliers: they are kept, and medians stand \
                 them, but means and standard deviations do not"
            ));
        }
        warnings
    }
}

fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}
