//! The cells of a run by contestant and factors.

use std::collections::BTreeMap;

use crate::measure::{Comparison, Experiment, RunView};
use crate::model::{Analysis, Better, Block, Cell, Factor, Metric, RunRecord, Value};
use crate::stats::{self, Estimate, defaults};

/// The samples of a run, with the metrics that say their units and directions.
pub struct Results<'a> {
    /// The statistics of the samples.
    pub view: RunView<'a>,
    metrics: &'static [Metric],
}

/// A cell of a group.
#[derive(Clone, Copy)]
pub struct At<'r, 'a> {
    results: &'r Results<'a>,
    /// Its group.
    pub group: &'r str,
    /// The cell.
    pub cell: &'a Cell,
}

/// The common parts of every analysis: name, title, the check of the twins, warnings; empty parts are dropped.
pub fn analysis(
    experiment: &dyn Experiment,
    run: &RunRecord,
    of: impl FnOnce(&Results<'_>) -> Analysis,
) -> Analysis {
    let results = Results::new(run, experiment.metrics());
    let mut analysis = of(&results);
    experiment.name().clone_into(&mut analysis.experiment);
    experiment.title().clone_into(&mut analysis.title);
    for section in &mut analysis.sections {
        section.blocks.retain(|block| match block {
            Block::Text(text) => !text.is_empty(),
            Block::Table(table) => !table.rows.is_empty(),
            Block::Chart(chart) => !chart.series.is_empty(),
        });
    }
    analysis.sections.retain(|s| !s.blocks.is_empty());
    analysis
}

impl<'a> Results<'a> {
    /// The results of a run of the experiment that declares these metrics.
    pub fn new(run: &'a RunRecord, metrics: &'static [Metric]) -> Self {
        Self {
            view: RunView::new(run),
            metrics,
        }
    }

    /// The declaration of a metric; an unknown one has no unit and no direction.
    fn metric(&self, name: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|m| m.name == name)
    }

    /// Unit of a metric.
    pub fn unit(&self, metric: &str) -> &'static str {
        self.metric(metric).map_or("", |m| m.unit)
    }

    /// Good direction of a metric.
    pub fn better(&self, metric: &str) -> Better {
        self.metric(metric).map_or(Better::Neither, |m| m.better)
    }

    /// Every cell of a group but the twin, by contestant and factors.
    pub fn all<'r>(&'r self, group: &'r str) -> impl Iterator<Item = At<'r, 'a>> {
        let cells = self.view.cells(group).into_iter();
        cells.filter(|cell| !cell.twin).map(move |cell| At {
            results: self,
            group,
            cell,
        })
    }

    /// The cells of a contestant in a group.
    pub fn of<'r>(
        &'r self,
        group: &'r str,
        contestant: &'r str,
    ) -> impl Iterator<Item = At<'r, 'a>> {
        self.all(group).filter(move |at| at.name() == contestant)
    }

    /// The cell of a contestant in a group with these values of factors.
    pub fn find<'r>(
        &'r self,
        group: &'r str,
        contestant: &str,
        factors: &[(&str, i64)],
    ) -> Option<At<'r, 'a>> {
        self.all(group).find(|at| {
            at.name() == contestant && factors.iter().all(|(f, n)| at.int(f) == Some(*n))
        })
    }

    /// A metric of that cell as a value of a table.
    pub fn value(
        &self,
        group: &str,
        contestant: &str,
        factors: &[(&str, i64)],
        metric: &str,
    ) -> Value {
        let cell = self.find(group, contestant, factors);
        cell.map_or(Value::Empty, |at| at.value(metric))
    }

    /// The contestant with the best median of these, for instance the best peer.
    pub fn best<'r>(
        &'r self,
        group: &'r str,
        contestants: &[&str],
        factors: &[(&str, i64)],
        metric: &str,
    ) -> Option<At<'r, 'a>> {
        let cost = |at: &At<'r, 'a>| {
            let middle = at.middle(metric)?;
            Some(match self.better(metric) {
                Better::Higher => -middle,
                Better::Lower | Better::Neither => middle,
            })
        };
        contestants
            .iter()
            .filter_map(|name| self.find(group, name, factors))
            .filter_map(|at| Some((cost(&at)?, at)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, at)| at)
    }

    /// Those of the contestants that have a sample in the group, in the order given.
    pub fn present<'n>(&self, group: &str, contestants: &[&'n str]) -> Vec<&'n str> {
        let has = |name: &&&str| self.all(group).any(|at| at.name() == **name);
        contestants.iter().filter(has).copied().collect()
    }

    /// The values of a whole-number factor in a group, ascending.
    pub fn values(&self, group: &str, factor: &str) -> Vec<i64> {
        let mut values: Vec<i64> = self.all(group).filter_map(|at| at.int(factor)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The cells of a group by median of a metric, the best first; cells without one are left out.
    pub fn ranked<'r>(&'r self, group: &'r str, metric: &str) -> Vec<At<'r, 'a>> {
        let mut ranked: Vec<(f64, At<'r, 'a>)> = self
            .all(group)
            .filter_map(|at| Some((at.middle(metric)?, at)))
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        if self.better(metric) == Better::Higher {
            ranked.reverse();
        }
        ranked.into_iter().map(|(_, at)| at).collect()
    }
}

impl<'r, 'a> At<'r, 'a> {
    /// The contestant.
    pub fn name(&self) -> &'a str {
        &self.cell.contestant
    }

    /// A whole-number factor.
    pub fn int(&self, factor: &str) -> Option<i64> {
        self.cell.params.int(factor).ok()
    }

    /// A factor that is a name.
    pub fn text(&self, factor: &str) -> Option<&'a str> {
        self.cell.params.text(factor).ok()
    }

    /// A factor as a value of a table.
    pub fn factor(&self, name: &str) -> Value {
        let factor = self.cell.params.iter().find(|(own, _)| *own == name);
        match factor {
            Some((_, Factor::Int(n))) => Value::Count(*n),
            Some((_, Factor::Text(text))) => Value::Text(text.clone()),
            None => Value::Empty,
        }
    }

    /// The median of a metric, for any number of rounds.
    pub fn middle(&self, metric: &str) -> Option<f64> {
        self.results.view.middle(self.group, self.cell, metric)
    }

    /// The median with its interval.
    pub fn estimate(&self, metric: &str) -> Option<Estimate> {
        self.results.view.estimate(self.group, self.cell, metric)
    }

    /// A metric as a value of a table: with its interval where the rounds allow one.
    pub fn value(&self, metric: &str) -> Value {
        let unit = || self.results.unit(metric).to_owned();
        match (self.estimate(metric), self.middle(metric)) {
            (Some(estimate), _) => Value::Estimate(estimate, unit()),
            (None, Some(middle)) => Value::Number(middle, unit()),
            (None, None) => Value::Empty,
        }
    }

    /// This over another cell of the group, paired by round.
    pub fn ratio(&self, other: &At<'_, '_>, metric: &str) -> Option<Estimate> {
        self.results
            .view
            .ratio(self.group, self.cell, other.cell, metric)
    }

    /// The same with a verdict.
    pub fn compare(&self, other: &At<'_, '_>, metric: &str) -> Comparison {
        let better = self.results.better(metric);
        self.results
            .view
            .compare(self.group, self.cell, other.cell, metric, better)
    }

    /// The values of a metric by round.
    pub fn by_round(&self, metric: &str) -> BTreeMap<u32, f64> {
        let values = self.results.view.values(self.group, self.cell, metric);
        values.into_iter().collect()
    }

    /// Resident bytes held here and there, for the column beside a ratio.
    pub fn held(&self, other: &At<'_, '_>) -> Option<(f64, f64)> {
        self.middle("held_bytes").zip(other.middle("held_bytes"))
    }
}

/// Comparisons that answer one question, with verdicts that hold together. All pairs are of one run.
pub fn family(pairs: &[(At<'_, '_>, At<'_, '_>)], metric: &str) -> Vec<Comparison> {
    let Some((first, _)) = pairs.first() else {
        return Vec::new();
    };
    let members: Vec<(&str, &Cell, &Cell)> = pairs
        .iter()
        .map(|(a, b)| (a.group, a.cell, b.cell))
        .collect();
    let better = first.results.better(metric);
    first.results.view.family(&members, metric, better)
}

/// An estimate as a value of a table, empty where there is none.
pub fn shown(estimate: Option<Estimate>, unit: &str) -> Value {
    estimate.map_or(Value::Empty, |e| Value::Estimate(e, unit.to_owned()))
}

/// The result of a function of two values of the same round.
pub fn combined(
    a: &BTreeMap<u32, f64>,
    b: &BTreeMap<u32, f64>,
    of: impl Fn(f64, f64) -> f64,
) -> BTreeMap<u32, f64> {
    let both = |(round, a): (&u32, &f64)| Some((*round, of(*a, *b.get(round)?)));
    a.iter().filter_map(both).collect()
}

/// a / b of what was computed by round.
pub fn ratio_of(a: &BTreeMap<u32, f64>, b: &BTreeMap<u32, f64>) -> Option<Estimate> {
    let both = |(round, a): (&u32, &f64)| Some((*a, *b.get(round)?));
    let (a, b): (Vec<f64>, Vec<f64>) = a.iter().filter_map(both).unzip();
    stats::paired_ratio(&a, &b, defaults::LEVEL).ok()
}

/// The result of a function of the values of several cells, by round: for rounds in which all have one, where it is finite.
pub fn together(columns: &[BTreeMap<u32, f64>], of: impl Fn(&[f64]) -> f64) -> BTreeMap<u32, f64> {
    let value = |round: &u32| {
        let values: Option<Vec<f64>> = columns.iter().map(|c| c.get(round).copied()).collect();
        Some((*round, of(&values?))).filter(|(_, value)| value.is_finite())
    };
    let rounds = columns.first().into_iter().flat_map(BTreeMap::keys);
    rounds.filter_map(value).collect()
}

/// Geometric mean of ratios, computed by round. One that ended before it had an interval is left out, so that it does not shorten the others.
pub fn mean_ratio(ratios: &[BTreeMap<u32, f64>]) -> Option<Estimate> {
    let known = ratios.iter().filter(|ratio| median_of(ratio).is_some());
    let known: Vec<_> = known.cloned().collect();
    median_of(&together(&known, |ratios| {
        let logs = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>();
        (logs / ratios.len() as f64).exp()
    }))
}

/// Median of what was computed by round.
pub fn median_of(by_round: &BTreeMap<u32, f64>) -> Option<Estimate> {
    let values: Vec<f64> = by_round.values().copied().collect();
    stats::median(&values, defaults::LEVEL).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rounds_that_all_have_are_put_together() {
        let of = |values: &[(u32, f64)]| values.iter().copied().collect::<BTreeMap<u32, f64>>();
        let columns = [
            of(&[(1, 6.0), (2, 8.0), (3, 1.0)]),
            of(&[(1, 2.0), (3, 0.0), (4, 1.0)]),
        ];
        assert_eq!(together(&columns, |v| v[0] / v[1]), of(&[(1, 3.0)]));
        assert!(together(&[], |_| 1.0).is_empty());
    }
}
