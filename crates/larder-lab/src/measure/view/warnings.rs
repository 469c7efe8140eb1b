//! Warnings that the samples themselves give.

use super::RunView;
use crate::model::Cell;
use crate::stats::{self, Lag1, log_ratios};

impl RunView<'_> {
    /// How far the samples of a cell depend on earlier ones; `None` under 4 rounds.
    #[must_use]
    pub fn lag1(&self, group: &str, cell: &Cell, metric: &str) -> Option<Lag1> {
        stats::lag1(&self.plain(group, cell, metric)).ok()
    }

    /// The same for the ratio a / b, on which its interval rests. `None` under 4 rounds.
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

    /// Each group that has samples of the metric that judges it, with that metric.
    fn judged(&self) -> impl Iterator<Item = (&str, &str)> {
        self.run
            .groups
            .iter()
            .map(|g| (g.name.as_str(), g.metric.as_str()))
            .filter(|(group, metric)| {
                let cells = self.cells(group);
                cells
                    .iter()
                    .any(|cell| !self.values(group, cell, metric).is_empty())
            })
    }

    /// Whether the reference and its twin agree in every round: a count, which needs no floor.
    pub(super) fn counts(&self, group: &str, metric: &str) -> bool {
        let Some(reference) = self.reference(group) else {
            return false;
        };
        let (a, b) = self.pairs(group, reference, &reference.as_twin(), metric);
        let equal = |(a, b): (&f64, &f64)| (a - b).abs() <= COUNTED * a.abs();
        !a.is_empty() && a.iter().zip(&b).all(equal)
    }

    /// What the twins of the run's groups showed, as one line; empty without samples.
    #[must_use]
    pub fn floor_text(&self) -> String {
        let mut floors: Vec<f64> = self
            .judged()
            .filter_map(|(group, metric)| self.floor(group, metric))
            .map(|floor| 100.0 * floor.exp_m1())
            .collect();
        floors.sort_by(f64::total_cmp);
        match floors.as_slice() {
            [] if self.judged().next().is_none() => String::new(),
            [] if self
                .judged()
                .all(|(group, metric)| self.counts(group, metric)) =>
            {
                "A/A: the reference and its twin agree in every round; these are counts.".to_owned()
            }
            [] => "A/A: no floor, so nothing is called faster or slower.".to_owned(),
            [one] => format!(
                "A/A: the reference and its twin, the same program, are {one:.1} % apart; a smaller difference counts as \
                 none."
            ),
            [least, .., most] => format!(
                "A/A: the reference and its twin, the same program, are {least:.1} to {most:.1} % apart in {} groups, \
                 median {:.1} %; a difference below its group's floor counts as none.",
                floors.len(),
                stats::middle_of(&floors).unwrap_or_default()
            ),
        }
    }

    /// Warnings that the samples of the run give; none when all is well.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let (mut bare, mut apart, mut wild) = (Vec::new(), Vec::new(), Vec::new());
        let (mut leaning, mut ratios, mut groups) = (0, 0, 0);
        for (group, metric) in self.judged() {
            groups += 1;
            match self.twin_ratio(group, metric) {
                None if self.counts(group, metric) => {}
                None => bare.push(group.to_owned()),
                Some(r) if r.lo > 1.0 || r.hi < 1.0 => apart.push(format!(
                    "{group} {:+.1} % [{:.1}, {:.1}]",
                    percent(r.value),
                    percent(r.lo),
                    percent(r.hi)
                )),
                Some(_) => {}
            }
            let cells = self.cells(group);
            if let Some(reference) = self.reference(group) {
                let others = || cells.iter().filter(|cell| **cell != reference);
                ratios += others().count();
                leaning += others()
                    .filter_map(|cell| self.ratio_lag1(group, cell, reference, metric))
                    .filter(|lag| lag.warn)
                    .count();
            }
            let outliers: usize = cells
                .iter()
                .map(|cell| self.outliers(group, cell, metric).len())
                .sum();
            let samples: usize = cells
                .iter()
                .map(|cell| self.values(group, cell, metric).len())
                .sum();
            if outliers * 10 > samples {
                wild.push(format!("{group} {outliers} of {samples}"));
            }
        }
        let mut warnings = Vec::new();
        if !bare.is_empty() {
            warnings.push(format!(
                "Without an A/A ratio nothing is called faster or slower: the reference and its twin need 6 common rounds \
                 and values above zero. Not so in {}.",
                some_of(&bare)
            ));
        }
        if !apart.is_empty() {
            warnings.push(format!(
                "The reference and its twin, the same program, differ in {} of {groups} groups: {}. By chance 1 group of \
                 20 does; beyond that the machine changed during the run: repeat it when the machine is quiet.",
                apart.len(),
                some_of(&apart)
            ));
        }
        // Each series warns once in 40 by chance, so one of several says nothing.
        if leaning * 10 > ratios && (leaning > 1 || ratios <= 2) {
            warnings.push(format!(
                "Rounds depend on the rounds before in {leaning} of {ratios} ratios: something changed slowly during the \
                 run, and their intervals are too narrow."
            ));
        }
        if !wild.is_empty() {
            warnings.push(format!(
                "More than a tenth of the samples are outliers: {}. They are kept; medians withstand them, means and \
                 standard deviations do not.",
                some_of(&wild)
            ));
        }
        warnings
    }
}

/// Counts of a whole process differ by this much at most.
const COUNTED: f64 = 1e-3;

/// The first few, and how many more there are.
fn some_of(all: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = all[..all.len().min(SHOWN)].join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}
