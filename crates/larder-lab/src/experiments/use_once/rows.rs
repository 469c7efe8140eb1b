//! Reading the record: a measure by rule and load, and Lord's tables.

use larder_policy::rules;

use super::contestants::OPT;
use super::metrics::READ;
use super::plan::{BUILD, CORRELATED, PATCHED, VANILLA};
use crate::frame::Results;
use crate::model::Value;
use crate::published;
use crate::stats::Estimate;

/// A measure over the seeds that ran, or over the runs of 2001.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seeds {
    /// By seed.
    pub(super) values: Vec<(i64, f64)>,
    pub(super) middle: f64,
    least: f64,
    most: f64,
}

impl Seeds {
    fn of(values: impl Iterator<Item = (i64, f64)>) -> Option<Self> {
        let values: Vec<(i64, f64)> = values.collect();
        let mut sorted: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            middle: *sorted.get(sorted.len() / 2)?,
            least: *sorted.first()?,
            most: *sorted.last()?,
            values,
        })
    }

    /// The change to another measure in percent: of the middles, with the least and the most of the seeds. None unless both
    /// ran with the same seeds.
    fn change(&self, after: &Self) -> Option<Self> {
        let percent = |before: f64, after: f64| 100.0 * (after / before - 1.0);
        let changes = self.values.iter().filter_map(|(seed, before)| {
            let (_, after) = after.values.iter().find(|(own, _)| own == seed)?;
            Some((*seed, percent(*before, *after)))
        });
        let by_seed = Self::of(changes)?;
        let all = by_seed.values.len();
        let middle = percent(self.middle, after.middle);
        let same = all == self.values.len() && all == after.values.len();
        (same && middle.is_finite()).then_some(Self { middle, ..by_seed })
    }

    /// The distance of the least and the most, in percent of the middle.
    pub(super) fn spread(&self) -> String {
        format!("{:.1} %", 100.0 * (self.most - self.least) / self.middle)
    }

    /// The middle, with the least and the most where there is more than one.
    pub(super) fn text(&self, decimals: usize, unit: &str) -> String {
        self.written(unit, |value| format!("{value:.decimals$}"))
    }

    /// A change in percent, with its sign.
    pub(super) fn signed(&self) -> String {
        self.written(" %", |value| format!("{value:+.1}"))
    }

    fn written(&self, unit: &str, of: impl Fn(f64) -> String) -> String {
        let span = match self.values.len() {
            1 => String::new(),
            _ => format!(" [{}, {}]", of(self.least), of(self.most)),
        };
        format!("{}{unit}{span}", of(self.middle))
    }

    /// For a chart.
    pub(super) fn estimate(&self) -> Estimate {
        Estimate {
            value: self.middle,
            lo: self.least,
            hi: self.most,
            n: self.values.len(),
            level: 1.0,
        }
    }
}

/// A measure of a rule with this many clients.
pub(super) fn of(
    results: &Results<'_>,
    group: &str,
    rule: &str,
    clients: i64,
    metric: &str,
) -> Option<Seeds> {
    let cells = results.of(group, rule);
    let cells = cells.filter(|at| at.int("clients") == Some(clients));
    Seeds::of(cells.filter_map(|at| Some((at.int("seed")?, at.middle(metric)?))))
}

/// What the patch changes of a measure with this many clients, in percent.
pub(super) fn change(
    results: &Results<'_>,
    group: &str,
    clients: i64,
    metric: &str,
) -> Option<Seeds> {
    let of = |rule| of(results, group, rule, clients, metric);
    of(VANILLA)?.change(&of(PATCHED)?)
}

/// A measure of a rule where a use is this many touches.
pub(super) fn touched(
    results: &Results<'_>,
    rule: &str,
    touches: i64,
    requests: &str,
) -> Option<f64> {
    let mut cells = results.of(CORRELATED, rule);
    let here = cells
        .find(|at| at.int("touches") == Some(touches) && at.text("requests") == Some(requests))?;
    here.middle(READ)
}

/// A measure of a build, with a search beside it or alone.
pub(super) fn built(
    results: &Results<'_>,
    rule: &str,
    metric: &str,
    with_search: bool,
) -> Option<f64> {
    let mut cells = results.of(BUILD, rule);
    let here = cells.find(|at| at.int("grep").is_some_and(|n| (n > 0) == with_search))?;
    here.middle(metric)
}

/// The rules that ran in a group, in the order of the library, then OPT.
pub(super) fn rules_of(results: &Results<'_>, group: &str) -> Vec<&'static str> {
    let all: Vec<&str> = rules().iter().map(|rule| rule.name).chain([OPT]).collect();
    results.present(group, &all)
}

/// Lord's three runs, MB/s. The kernel is `vanilla` or `use-once`.
pub(super) fn lords(kernel: &str, clients: i64) -> Option<Seeds> {
    let rows = published::lord_dbench().iter();
    let rows = rows.filter(|row| row.kernel == kernel && i64::from(row.clients) == clients);
    Seeds::of(rows.map(|row| (i64::from(row.run), row.throughput_mb_s)))
}

/// Percent that the patch changes in Lord's table.
pub(in crate::experiments) fn lords_change(clients: i64) -> Option<f64> {
    let changed = lords("vanilla", clients)?.change(&lords("use-once", clients)?)?;
    Some(changed.middle)
}

/// A number of Lord's kernel builds: the mean of the two.
pub(in crate::experiments) fn lords_build(
    kernel: &str,
    number: impl Fn(&published::LordBuild) -> f64,
) -> Option<f64> {
    let rows = published::lord_build().iter();
    let runs: Vec<f64> = rows
        .filter(|row| row.kernel == kernel)
        .map(number)
        .collect();
    (!runs.is_empty()).then(|| runs.iter().sum::<f64>() / runs.len() as f64)
}

/// A number as a value of a table; percents are texts with one decimal.
pub(super) fn shown(value: Option<f64>, unit: &str) -> Value {
    match (value, unit) {
        (None, _) => Value::Empty,
        (Some(value), "%") => Value::Text(format!("{value:.1} %")),
        (Some(value), unit) => Value::Number(value, unit.to_owned()),
    }
}

/// A change in percent as a value of a table.
pub(super) fn signed(value: Option<f64>) -> Value {
    value.map_or(Value::Empty, |v| Value::Text(format!("{v:+.1} %")))
}
