//! One run against another: by the ratios inside each, and by times only on the same machine.

use std::collections::BTreeMap;

use serde::Serialize;

use super::RunView;
use crate::model::{Better, Cell, RunRecord};
use crate::stats::{self, Estimate, Verdict, defaults};

/// One cell in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Group.
    pub group: String,
    /// Cell.
    pub cell: Cell,
    /// The metric by which the group is judged.
    pub metric: String,
    /// Cell to reference in the first run; `None` with too few rounds.
    pub before: Option<Estimate>,
    /// The same in the second run.
    pub after: Option<Estimate>,
    /// `after / before`.
    pub change: Option<Estimate>,
    /// What became of the second run's cell against its reference.
    pub verdict: Verdict,
    /// Medians of the metric itself, first and second run; only on the same machine.
    pub times: Option<(f64, f64)>,
}

/// Two runs of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changes {
    /// Cells that both runs have, without the references.
    pub changes: Vec<Change>,
    /// Cells that only one run has.
    pub unmatched: usize,
    /// Why times are not compared; `None` when they are.
    pub no_times: Option<String>,
}

/// Compares two runs of one experiment.
///
/// What is compared is the ratio of each cell to its group's reference: both were taken in the same rounds, so
/// the machine and its mood are divided out. The change of a ratio is the Hodges-Lehmann shift between the two
/// runs' per-round log ratios. It counts only beyond the A/A floors of both runs together, because either run may
/// be off by its own.
///
/// `better` tells the good direction of a metric.
#[must_use]
pub fn changes(a: &RunRecord, b: &RunRecord, better: impl Fn(&str) -> Better) -> Changes {
    let (of_a, of_b) = (RunView::new(a), RunView::new(b));
    let no_times = why_no_times(a, b);
    let mut changes = Vec::new();
    let mut unmatched = 0;
    for group in of_a.groups() {
        let Some((reference, metric)) = common_reference(a, b, group) else {
            unmatched += of_a.cells(group).len();
            continue;
        };
        let after: Vec<&Cell> = of_b.cells(group);
        for cell in of_a.cells(group) {
            if cell == reference || cell.twin {
                continue;
            }
            if !after.contains(&cell) {
                unmatched += 1;
                continue;
            }
            let same = of_a.same_within().max(of_b.same_within());
            let floors = of_a
                .floor(group, metric)
                .zip(of_b.floor(group, metric))
                .map(|(x, y)| x + y);
            let change = shift_of_ratios(&of_a, &of_b, group, cell, reference, metric);
            let verdict = match (&change, floors) {
                (Some(c), Some(floor)) => stats::verdict(c, floor, better(metric), same),
                _ => Verdict::Refused,
            };
            let middles = of_a
                .middle(group, cell, metric)
                .zip(of_b.middle(group, cell, metric));
            changes.push(Change {
                group: group.to_owned(),
                cell: cell.clone(),
                metric: metric.to_owned(),
                before: of_a.ratio(group, cell, reference, metric),
                after: of_b.ratio(group, cell, reference, metric),
                change,
                verdict,
                times: middles.filter(|_| no_times.is_none()),
            });
        }
        unmatched += after
            .iter()
            .filter(|c| !c.twin && !of_a.cells(group).contains(c))
            .count();
    }
    Changes {
        changes,
        unmatched,
        no_times,
    }
}

/// A group's reference and metric, where both runs have the same.
fn common_reference<'a>(
    a: &'a RunRecord,
    b: &RunRecord,
    group: &str,
) -> Option<(&'a Cell, &'a str)> {
    let of_a = a.groups.iter().find(|g| g.name == group)?;
    let of_b = b.groups.iter().find(|g| g.name == group)?;
    (of_a.reference == of_b.reference && of_a.metric == of_b.metric)
        .then_some((&of_a.reference, of_a.metric.as_str()))
}

fn shift_of_ratios(
    a: &RunView<'_>,
    b: &RunView<'_>,
    group: &str,
    cell: &Cell,
    reference: &Cell,
    metric: &str,
) -> Option<Estimate> {
    let logs = |view: &RunView<'_>| {
        let (x, y) = view.pairs(group, cell, reference, metric);
        x.iter()
            .zip(&y)
            .map(|(x, y)| (x / y).ln())
            .collect::<Vec<f64>>()
    };
    let shift = stats::shift(&logs(b), &logs(a), defaults::LEVEL).ok()?;
    Some(Estimate {
        value: shift.value.exp(),
        lo: shift.lo.exp(),
        hi: shift.hi.exp(),
        ..shift
    })
}

/// Times of two machines are never compared.
fn why_no_times(a: &RunRecord, b: &RunRecord) -> Option<String> {
    if a.machine.fingerprint == b.machine.fingerprint {
        return None;
    }
    let mut different: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for name in ["cpu.model", "kernel.release", "memory.total", "cpu.online"] {
        let (x, y) = (a.machine.text(name), b.machine.text(name));
        if x != y {
            different.insert(name, (x, y));
        }
    }
    let list: Vec<String> = different
        .iter()
        .map(|(name, (x, y))| format!("{name}: {x} and {y}"))
        .collect();
    Some(if list.is_empty() {
        format!(
            "the machines differ ({} and {}), so only ratios are compared",
            a.machine.fingerprint, b.machine.fingerprint
        )
    } else {
        format!(
            "the machines differ ({}), so only ratios are compared",
            list.join("; ")
        )
    })
}
