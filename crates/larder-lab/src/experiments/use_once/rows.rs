//! Reading the record: his table beside the model's.

use crate::measure::RunView;
use crate::model::Cell;
use crate::published;

use super::plan::{DBENCH, FIELD, SEEDS, VANILLA};

/// The cells of a group by a rule with a value of a factor; twins left out.
pub(super) fn cells<'a>(view: &RunView<'a>, group: &str, rule: &str) -> Vec<&'a Cell> {
    view.cells(group)
        .into_iter()
        .filter(|cell| cell.contestant == rule && !cell.twin)
        .collect()
}

/// A measure of the first cell for which `wanted` holds.
pub(super) fn measure(
    view: &RunView<'_>,
    group: &str,
    rule: &str,
    name: &str,
    wanted: impl Fn(&Cell) -> bool,
) -> Option<f64> {
    cells(view, group, rule)
        .into_iter()
        .filter(|cell| wanted(cell))
        .find_map(|cell| view.middle(group, cell, name))
}

/// True if a whole-number factor has this value.
pub(super) fn is(cell: &Cell, factor: &str, value: i64) -> bool {
    cell.params.int(factor).is_ok_and(|found| found == value)
}

/// The middle of a measure over the three seeds; none unless all three are there.
pub(super) fn of_seeds(view: &RunView<'_>, rule: &str, clients: i64, name: &str) -> Option<f64> {
    let values: Option<Vec<f64>> = SEEDS
        .iter()
        .map(|&seed| {
            measure(view, DBENCH, rule, name, |cell| {
                is(cell, "clients", clients) && is(cell, "seed", seed)
            })
        })
        .collect();
    let mut values = values?;
    values.sort_by(f64::total_cmp);
    values.get(SEEDS.len() / 2).copied()
}

/// The span of the three seeds, in percent of their middle.
pub(super) fn spread(view: &RunView<'_>, rule: &str, clients: i64, name: &str) -> Option<f64> {
    let values: Vec<f64> = SEEDS
        .iter()
        .filter_map(|&seed| {
            measure(view, DBENCH, rule, name, |cell| {
                is(cell, "clients", clients) && is(cell, "seed", seed)
            })
        })
        .collect();
    let middle = of_seeds(view, rule, clients, name)?;
    let (least, most) = values
        .iter()
        .fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
    (middle > 0.0).then(|| 100.0 * (most - least) / middle)
}

/// His middle of three, MB/s.
pub(super) fn published_middle(kernel: &str, clients: i64) -> Option<f64> {
    let mut runs: Vec<f64> = published::lord_dbench()
        .iter()
        .filter(|row| row.kernel == kernel && i64::from(row.clients) == clients)
        .map(|row| row.throughput_mb_s)
        .collect();
    runs.sort_by(f64::total_cmp);
    runs.get(runs.len() / 2).copied()
}

/// Percent that the patch changes, in his table.
pub(super) fn his_change(clients: i64) -> Option<f64> {
    let before = published_middle("vanilla", clients)?;
    Some(100.0 * (published_middle("use-once", clients)? / before - 1.0))
}

/// Percent that a rule changes the modelled throughput against vanilla.
pub(super) fn change(view: &RunView<'_>, rule: &str, clients: i64) -> Option<f64> {
    let before = of_seeds(view, VANILLA, clients, "modelled_mb_per_s")?;
    let after = of_seeds(view, rule, clients, "modelled_mb_per_s")?;
    (before > 0.0).then(|| 100.0 * (after / before - 1.0))
}

/// A measure over the seeds that ran.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seeds {
    /// By seed.
    pub(super) values: Vec<(i64, f64)>,
    pub(super) middle: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Seeds {
    fn of(mut values: Vec<(i64, f64)>) -> Option<Self> {
        values.sort_by_key(|(seed, _)| *seed);
        let mut sorted: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            middle: *sorted.get(sorted.len() / 2)?,
            least: *sorted.first()?,
            most: *sorted.last()?,
            values,
        })
    }

    /// The middle, with the least and the most where there is more than one.
    pub(super) fn text(&self, decimals: usize, unit: &str) -> String {
        let Self {
            middle,
            least,
            most,
            ..
        } = self;
        let span = if self.values.len() > 1 {
            format!(" [{least:.decimals$}, {most:.decimals$}]")
        } else {
            String::new()
        };
        format!("{middle:.decimals$}{unit}{span}")
    }
}

/// A measure of a rule of the whole field.
pub(super) fn of_field(view: &RunView<'_>, rule: &str, clients: i64, name: &str) -> Option<Seeds> {
    let values = cells(view, FIELD, rule)
        .into_iter()
        .filter(|cell| is(cell, "clients", clients))
        .filter_map(|cell| {
            Some((
                cell.params.int("seed").ok()?,
                view.middle(FIELD, cell, name)?,
            ))
        })
        .collect();
    Seeds::of(values)
}

/// The span of his three runs, in percent of their middle.
pub(super) fn his_spread(kernel: &str, clients: i64) -> Option<f64> {
    let runs: Vec<f64> = published::lord_dbench()
        .iter()
        .filter(|row| row.kernel == kernel && i64::from(row.clients) == clients)
        .map(|row| row.throughput_mb_s)
        .collect();
    let most = runs.iter().copied().reduce(f64::max)?;
    let least = runs.iter().copied().reduce(f64::min)?;
    Some(100.0 * (most - least) / published_middle(kernel, clients)?)
}
