//! Many comparisons that answer one question.

use std::collections::BTreeMap;

use super::{Comparison, RunView};
use crate::model::{Better, Cell};
use crate::stats::{self, PairedTest, Verdict, defaults, holm};

/// Up to this many members a family is one of findings, adjusted by Holm's rule; beyond it is a table, whose mean over
/// its cells is tested first.
const SMALL_FAMILY: usize = 8;

impl RunView<'_> {
    /// The comparisons of one question, as [`compare`](Self::compare) makes them, with verdicts that hold together:
    /// the chance that any of a family of equal contestants is called faster or slower stays below 5 %.
    ///
    /// Members are tested by their logarithms, paired by rounds, with the test that
    /// [`PairedTest::choose`] takes for their number, and adjusted by Holm's rule. A family of more than eight members
    /// is a table: the geometric mean of its ratios is tested first, round by round, and
    /// only where that differs from 1 are its members looked at. A member that fails is
    /// [`Verdict::Inconclusive`] in place of faster or slower; the other verdicts stay.
    #[must_use]
    pub fn family(
        &self,
        members: &[(&str, &Cell, &Cell)],
        metric: &str,
        better: Better,
    ) -> Vec<Comparison> {
        let mut all: Vec<Comparison> = members
            .iter()
            .map(|(group, a, b)| self.compare(group, a, b, metric, better))
            .collect();
        let logs: Vec<BTreeMap<u32, f64>> = members
            .iter()
            .map(|(group, a, b)| self.log_ratios(group, a, b, metric))
            .collect();
        let tested: Vec<usize> = (0..all.len()).filter(|i| all[*i].ratio.is_some()).collect();
        let closed = tested.len() > SMALL_FAMILY && !differs(&mean_by_round(&logs, &tested));
        let p: Vec<f64> = tested
            .iter()
            .map(|i| p_value(&logs[*i], tested.len()))
            .collect();
        for (i, p) in tested.into_iter().zip(holm(&p)) {
            let one_side = matches!(all[i].verdict, Verdict::Faster | Verdict::Slower);
            if one_side && (closed || p > ALPHA) {
                all[i].verdict = Verdict::Inconclusive;
            }
        }
        all
    }

    /// ln(a / b) by round; empty where a sample is not positive.
    fn log_ratios(&self, group: &str, a: &Cell, b: &Cell, metric: &str) -> BTreeMap<u32, f64> {
        let of_b: BTreeMap<u32, f64> = self.values(group, b, metric).into_iter().collect();
        let logs: BTreeMap<u32, f64> = self
            .values(group, a, metric)
            .into_iter()
            .filter_map(|(round, a)| Some((round, (a / of_b.get(&round)?).ln())))
            .collect();
        if logs.values().all(|l| l.is_finite()) {
            logs
        } else {
            BTreeMap::new()
        }
    }
}

/// The chance of any false verdict that a family may have.
const ALPHA: f64 = 1.0 - defaults::LEVEL;

/// The mean over the members in each round that all of them have; those of another group have their own rounds, which
/// are taken together by number.
fn mean_by_round(logs: &[BTreeMap<u32, f64>], tested: &[usize]) -> Vec<f64> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for log in tested.iter().map(|i| &logs[*i]) {
        for (round, l) in log {
            rounds.entry(*round).or_default().push(*l);
        }
    }
    rounds
        .into_values()
        .filter(|of_round| of_round.len() == tested.len())
        .map(|of_round| of_round.iter().sum::<f64>() / tested.len() as f64)
        .collect()
}

/// Whether the mean over a table differs from none: one test.
fn differs(means: &[f64]) -> bool {
    // Signed ranks can decide with six rounds, not with fewer.
    stats::hodges_lehmann(means, defaults::LEVEL).is_ok()
        && PairedTest::choose(means.len(), 1, ALPHA)
            .p(means)
            .is_ok_and(|p| p <= ALPHA)
}

fn p_value(logs: &BTreeMap<u32, f64>, members: usize) -> f64 {
    let logs: Vec<f64> = logs.values().copied().collect();
    PairedTest::choose(logs.len(), members, ALPHA)
        .p(&logs)
        .unwrap_or(1.0)
}
