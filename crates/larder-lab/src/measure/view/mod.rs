//! A record seen through the statistics: what an experiment's analysis and the runner ask of the samples.

mod family;
mod warnings;

use std::collections::BTreeMap;

use crate::model::{Better, Cell, NOISY_SHARE, RunRecord, Sample};
use crate::stats::sweep::{Knee, OptimumSet, Sweep};
use crate::stats::{self, Estimate, Moments, Verdict, defaults};

/// One cell against another, by rounds in which both ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// a / b, `None` when too few rounds hold both or a sample is not positive.
    pub ratio: Option<Estimate>,
    /// The verdict.
    pub verdict: Verdict,
    /// The A/A floor as `|ln ratio|`; `None` when the twin did not run, and then the verdict is
    /// [`Verdict::Refused`].
    pub floor: Option<f64>,
    /// Number of pairs.
    pub n: usize,
}

/// A sweep with the cells behind its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepView {
    /// The statistics of the sweep.
    pub sweep: Sweep,
    /// Its cells, by index of the setting.
    pub cells: Vec<Cell>,
}

impl SweepView {
    /// The settings not distinguishable from the best, with the one that holds least as the recommendation: `burden` gives
    /// the cost of holding a setting, for instance `|setting, _| setting`. `None` under 6 rounds.
    #[must_use]
    pub fn optimum(&self, burden: impl Fn(f64, &Cell) -> f64) -> Option<OptimumSet> {
        let burden: Vec<f64> = self
            .sweep
            .settings()
            .iter()
            .zip(&self.cells)
            .map(|(setting, cell)| burden(*setting, cell))
            .collect();
        self.sweep.optimum_set(defaults::LEVEL, Some(&burden)).ok()
    }

    /// The knee at 3 % of the best. `None` under 6 rounds.
    #[must_use]
    pub fn knee(&self) -> Option<Knee> {
        self.sweep.knee(defaults::LEVEL, defaults::KNEE_EPS).ok()
    }
}

/// The samples of a run by group and cell.
///
/// ```no_run
/// # fn f(run: &larder_lab::model::RunRecord, ours: &larder_lab::model::Cell, theirs: &larder_lab::model::Cell) {
/// use larder_lab::{measure::RunView, model::Better};
/// let view = RunView::new(run);
/// let c = view.compare("pool", ours, theirs, "ns_per_page", Better::Lower);
/// if let Some(r) = c.ratio {
///     println!("{:.2} [{:.2}, {:.2}] {:?}", r.value, r.lo, r.hi, c.verdict);
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RunView<'a> {
    run: &'a RunRecord,
    samples: BTreeMap<&'a str, BTreeMap<&'a Cell, BTreeMap<u32, &'a Sample>>>,
}

impl<'a> RunView<'a> {
    /// Sorts the samples of a record. Where a cell has two samples in one round the first counts.
    #[must_use]
    pub fn new(run: &'a RunRecord) -> Self {
        let mut samples: BTreeMap<&str, BTreeMap<&Cell, BTreeMap<u32, &Sample>>> = BTreeMap::new();
        for sample in &run.samples {
            samples
                .entry(&sample.group)
                .or_default()
                .entry(&sample.cell)
                .or_default()
                .entry(sample.round)
                .or_insert(sample);
        }
        Self { run, samples }
    }

    /// The record.
    #[must_use]
    pub fn run(&self) -> &'a RunRecord {
        self.run
    }

    /// Whether a cell of this contestant failed in a group.
    #[must_use]
    pub fn failed(&self, group: &str, contestant: &str) -> bool {
        let cell = format!("{group}: {contestant}");
        self.run.skipped.iter().any(|skipped| {
            let rest = skipped.what.strip_prefix(&cell);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    }

    /// Names of the groups: first in the order of the plan, then those that have samples only.
    #[must_use]
    pub fn groups(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.run.groups.iter().map(|g| g.name.as_str()).collect();
        for name in self.samples.keys() {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names
    }

    /// The cells of a group that have samples, sorted by contestant, factors and twin.
    #[must_use]
    pub fn cells(&self, group: &str) -> Vec<&'a Cell> {
        self.samples
            .get(group)
            .map(|cells| cells.keys().copied().collect())
            .unwrap_or_default()
    }

    /// The reference of a group.
    #[must_use]
    pub fn reference(&self, group: &str) -> Option<&'a Cell> {
        self.run
            .groups
            .iter()
            .find(|g| g.name == group)
            .map(|g| &g.reference)
    }

    /// The samples of one metric of a cell, by round. Values that are not finite are left out.
    #[must_use]
    pub fn values(&self, group: &str, cell: &Cell, metric: &str) -> Vec<(u32, f64)> {
        self.samples
            .get(group)
            .and_then(|cells| cells.get(cell))
            .into_iter()
            .flatten()
            .filter_map(|(round, sample)| {
                let value = sample.measures.get(metric)?;
                value.is_finite().then_some((*round, value))
            })
            .collect()
    }

    fn plain(&self, group: &str, cell: &Cell, metric: &str) -> Vec<f64> {
        self.values(group, cell, metric)
            .into_iter()
            .map(|(_, v)| v)
            .collect()
    }

    /// The median with its interval; `None` under 6 rounds.
    #[must_use]
    pub fn estimate(&self, group: &str, cell: &Cell, metric: &str) -> Option<Estimate> {
        stats::median(&self.plain(group, cell, metric), defaults::LEVEL).ok()
    }

    /// The bare median, for any number of rounds above none: for where an interval cannot be had.
    #[must_use]
    pub fn middle(&self, group: &str, cell: &Cell, metric: &str) -> Option<f64> {
        stats::middle_of(&self.plain(group, cell, metric))
    }

    /// Mean, standard deviation and standard error; `None` under 2 rounds.
    #[must_use]
    pub fn moments(&self, group: &str, cell: &Cell, metric: &str) -> Option<Moments> {
        stats::moments(&self.plain(group, cell, metric)).ok()
    }

    /// The samples of two cells in the rounds in which both have one.
    #[must_use]
    pub fn pairs(&self, group: &str, a: &Cell, b: &Cell, metric: &str) -> (Vec<f64>, Vec<f64>) {
        let of_b: BTreeMap<u32, f64> = self.values(group, b, metric).into_iter().collect();
        self.values(group, a, metric)
            .into_iter()
            .filter_map(|(round, a)| Some((a, *of_b.get(&round)?)))
            .unzip()
    }

    /// a / b, paired by round; `None` under 6 common rounds or where a sample is not positive.
    #[must_use]
    pub fn ratio(&self, group: &str, a: &Cell, b: &Cell, metric: &str) -> Option<Estimate> {
        let (a, b) = self.pairs(group, a, b, metric);
        stats::paired_ratio(&a, &b, defaults::LEVEL).ok()
    }

    /// a - b, paired by round, in the metric's unit: for counts, which may be zero.
    #[must_use]
    pub fn difference(&self, group: &str, a: &Cell, b: &Cell, metric: &str) -> Option<Estimate> {
        let (a, b) = self.pairs(group, a, b, metric);
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        stats::hodges_lehmann(&differences, defaults::LEVEL).ok()
    }

    /// The A/A ratio of a group: twin over reference. Its interval excludes 1 in one session of twenty by
    /// chance; more often means that the slots of a round are not alike. `None` when the group has no twin or
    /// too few rounds.
    #[must_use]
    pub fn twin_ratio(&self, group: &str, metric: &str) -> Option<Estimate> {
        let twin = match self.reference(group) {
            Some(reference) => reference.as_twin(),
            None => self.cells(group).into_iter().find(|c| c.twin)?.clone(),
        };
        let reference = Cell {
            twin: false,
            ..twin.clone()
        };
        self.ratio(group, &twin, &reference, metric)
    }

    /// The floor of a group: how far two runs of one and the same thing lay apart, `|ln ratio|` of
    /// [`twin_ratio`](Self::twin_ratio). An interval must lie wholly beyond it to be faster or slower.
    ///
    /// The value of that ratio and not the far end of its interval: in simulation equal things are then called
    /// different in at most 1.2 % of the sessions (5 % without a floor), and a true difference is found nearly
    /// as often as without. With the far end most true differences of 10 % were missed.
    #[must_use]
    pub fn floor(&self, group: &str, metric: &str) -> Option<f64> {
        Some(self.twin_ratio(group, metric)?.value.ln().abs())
    }

    /// The share that this run may call equal: 5 % when quick, else 2 %.
    #[must_use]
    pub fn same_within(&self) -> f64 {
        defaults::same_within(&self.run.depth)
    }

    /// Whether a comparison rests on samples that others disturbed: more than a quarter of its pairs. Counts, in which
    /// the twins agree in every round, do not suffer from it.
    #[must_use]
    pub fn is_noisy(&self, group: &str, a: &Cell, b: &Cell, metric: &str) -> bool {
        let of = |cell: &Cell| self.samples.get(group)?.get(cell);
        let (Some(of_a), Some(of_b)) = (of(a), of(b)) else {
            return false;
        };
        let holds = |s: &Sample| s.measures.get(metric).is_some_and(f64::is_finite);
        let (mut pairs, mut noisy) = (0, 0);
        for (round, a) in of_a {
            if let Some(b) = of_b.get(round).filter(|b| holds(a) && holds(b)) {
                pairs += 1;
                noisy += usize::from(a.is_noisy() || b.is_noisy());
            }
        }
        noisy as f64 > NOISY_SHARE * f64::from(pairs) && !self.counts(group, metric)
    }

    /// a against b: ratio, floor and verdict. Refused without a ratio or without a twin, and where others disturbed
    /// more than a quarter of the pairs.
    #[must_use]
    pub fn compare(
        &self,
        group: &str,
        a: &Cell,
        b: &Cell,
        metric: &str,
        better: Better,
    ) -> Comparison {
        let (of_a, of_b) = self.pairs(group, a, b, metric);
        let ratio = stats::paired_ratio(&of_a, &of_b, defaults::LEVEL).ok();
        let floor = self.floor(group, metric);
        let verdict = match (&ratio, floor) {
            (Some(ratio), Some(floor)) => stats::verdict(ratio, floor, better, self.same_within()),
            _ => Verdict::Refused,
        };
        let noisy = verdict != Verdict::Refused && self.is_noisy(group, a, b, metric);
        let verdict = if noisy { Verdict::Noisy } else { verdict };
        Comparison {
            ratio,
            verdict,
            floor,
            n: of_a.len(),
        }
    }

    /// A sweep over cells by setting, from the rounds in which all of them ran. Rates are turned into costs.
    ///
    /// Cells are sorted by setting, so index i of a result is `cells[i]` of the answer. Cells without any
    /// sample are left out. `None` when nothing is left, a setting occurs twice, or a sample is not positive.
    #[must_use]
    pub fn sweep(
        &self,
        group: &str,
        settings: &[(f64, Cell)],
        metric: &str,
        better: Better,
    ) -> Option<SweepView> {
        let mut columns: Vec<(f64, Cell, BTreeMap<u32, f64>)> = settings
            .iter()
            .map(|(setting, cell)| {
                let values = self.values(group, cell, metric).into_iter().collect();
                (*setting, cell.clone(), values)
            })
            .filter(|(_, _, values): &(f64, Cell, BTreeMap<u32, f64>)| !values.is_empty())
            .collect();
        columns.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (_, _, first) = columns.first()?;
        let cost = |value: f64| match better {
            Better::Higher => value.recip(),
            Better::Lower | Better::Neither => value,
        };
        let rounds: Vec<Vec<f64>> = first
            .keys()
            .filter_map(|round| {
                columns
                    .iter()
                    .map(|(_, _, values)| values.get(round).copied().map(cost))
                    .collect()
            })
            .collect();
        let settings: Vec<f64> = columns.iter().map(|(setting, _, _)| *setting).collect();
        Some(SweepView {
            sweep: Sweep::new(&settings, &rounds).ok()?,
            cells: columns.into_iter().map(|(_, cell, _)| cell).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
