//! Runs against runs: by the ratios inside each, and by times only on the same machine.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{RunView, means};
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
    /// The change of the second run's cell against its reference.
    pub verdict: Verdict,
    /// Medians of the metric itself, first and second run; only on the same machine.
    pub times: Option<(f64, f64)>,
}

/// One contestant in both sides: its mean over cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContestantChange {
    /// Contestant.
    pub contestant: String,
    /// Cells behind the mean.
    pub cells: usize,
    /// Geometric mean of `after / before` over the cells, against the middle contestant of each group.
    pub change: Estimate,
    /// p-value that nothing changed, adjusted for the number of contestants.
    pub p: f64,
    /// The change of the contestant.
    pub verdict: Verdict,
}

/// Two sides of runs of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changes {
    /// Contestants, first those that changed most surely.
    pub contestants: Vec<ContestantChange>,
    /// Contestants that are references and changed: ratios to them are corrected for it.
    pub changed_references: Vec<String>,
    /// Cells that both runs have, without the references.
    pub changes: Vec<Change>,
    /// Cells that only one run has.
    pub unmatched: usize,
    /// Why times are not compared; `None` when they are.
    pub no_times: Option<String>,
}

/// Compares two runs of one experiment: [`changes_of`] with one run a side.
#[must_use]
pub fn changes(a: &RunRecord, b: &RunRecord, better: impl Fn(&str) -> Better) -> Changes {
    changes_of(&[a], &[b], better)
}

/// Compares runs of one experiment, taken before, with runs taken after.
///
/// What is compared is the ratio of each cell to its group's reference: both were taken in the same rounds, so
/// the state of the machine is divided out. First comes each contestant's mean over its cells, with Holm over the
/// contestants. A cell may be called changed only where its contestant is, and only beyond the A/A floors of both runs
/// together, because either run may be off by its own. Every interval knows the scatter from run to run.
///
/// `better` gives the good direction of a metric.
#[must_use]
pub fn changes_of(
    before: &[&RunRecord],
    after: &[&RunRecord],
    better: impl Fn(&str) -> Better,
) -> Changes {
    let sides =
        [before, after].map(|runs| runs.iter().map(|r| RunView::new(r)).collect::<Vec<_>>());
    let all: Vec<&RunView<'_>> = sides.iter().flatten().collect();
    let (Some(a), Some(_)) = (before.first(), after.first()) else {
        return Changes {
            contestants: Vec::new(),
            changed_references: Vec::new(),
            changes: Vec::new(),
            unmatched: 0,
            no_times: None,
        };
    };
    let no_times = all.iter().find_map(|v| why_no_times(a, v.run()));
    let alone = all.len() == 2;
    let judged: BTreeMap<&str, (&Cell, &str)> = sides[0][0]
        .groups()
        .into_iter()
        .filter_map(|g| Some((g, common_reference(&all, g)?)))
        .collect();
    let points = sides.each_ref().map(|runs| {
        runs.iter()
            .map(|v| points(v, &judged, alone))
            .collect::<Vec<_>>()
    });
    let of_group = |group: &str| better(judged[group].1);
    let means = means::means(&points[0], &points[1], |k| k.1 == judged[k.0].0, of_group);
    // A single quick run never reaches a finer claim than its own; several together do.
    let same = if alone {
        all.iter().map(|v| v.same_within()).fold(0.0, f64::max)
    } else {
        defaults::SAME_WITHIN_FULL
    };
    // With one run a side, a disturbed run looks like a change.
    let noisy = alone && all.iter().any(|v| v.run().noise.noisy);
    let contestants = contestants(&means, same, noisy, |name| {
        let mut ways = judged.iter().filter(|(g, _)| {
            let cells = sides[0][0].cells(g);
            cells.iter().any(|c| c.contestant == name)
        });
        match ways.clone().find(|(g, _)| of_group(g) == Better::Lower) {
            Some(_) => Better::Lower,
            None => ways.next().map_or(Better::Neither, |(g, _)| of_group(g)),
        }
    });
    let changed = |name: &str| {
        contestants
            .iter()
            .any(|c| c.contestant == name && is_change(&c.verdict))
    };
    let changed_references: BTreeSet<&str> = judged
        .values()
        .map(|(r, _)| r.contestant.as_str())
        .filter(|name| changed(name))
        .collect();

    let mut changes = Vec::new();
    let (mut unmatched, mut seen) = (0, BTreeSet::new());
    for view in &all {
        for group in view.groups() {
            for cell in view.cells(group) {
                if cell.twin || !seen.insert((group, cell)) {
                    continue;
                }
                let Some((reference, metric)) = judged.get(group) else {
                    unmatched += 1;
                    continue;
                };
                if cell == *reference {
                    continue;
                }
                if !all.iter().all(|v| v.cells(group).contains(&cell)) {
                    unmatched += 1;
                    continue;
                }
                let correction = match changed_references.contains(reference.contestant.as_str()) {
                    true => means.centres.get(group).copied().unwrap_or(0.0),
                    false => 0.0,
                };
                let change = if alone {
                    let shift = shift_of_ratios(&all, group, cell, reference, metric);
                    let spread = means.by_contestant.get(cell.contestant.as_str());
                    shift
                        .zip(spread)
                        .map(|(s, m)| wider(&s, m.spread, correction))
                } else {
                    shift_of_runs(&points, (group, cell), &means, correction)
                };
                let floor = if alone {
                    let each = all.iter().map(|v| v.floor(group, metric));
                    each.sum::<Option<f64>>()
                } else {
                    Some(0.0)
                };
                let verdict = match (&change, floor) {
                    (Some(c), Some(floor)) => {
                        match stats::verdict(c, floor, better(metric), same) {
                            v if is_change(&v) && !changed(&cell.contestant) => {
                                Verdict::Inconclusive
                            }
                            v => v,
                        }
                    }
                    _ => Verdict::Refused,
                };
                let side = |i: usize| {
                    let logs: Vec<f64> = points[i]
                        .iter()
                        .filter_map(|p| Some(p.get(&(group, cell))?.log))
                        .collect();
                    if sides[i].len() == 1 {
                        sides[i][0].ratio(group, cell, reference, metric)
                    } else {
                        of_runs(&logs)
                    }
                };
                let middle = |views: &[RunView<'_>]| {
                    let each: Option<Vec<f64>> = views
                        .iter()
                        .map(|v| v.middle(group, cell, metric))
                        .collect();
                    stats::middle_of(&each?)
                };
                changes.push(Change {
                    group: group.to_owned(),
                    cell: cell.clone(),
                    metric: (*metric).to_owned(),
                    before: side(0),
                    after: side(1),
                    change,
                    verdict,
                    times: middle(&sides[0])
                        .zip(middle(&sides[1]))
                        .filter(|_| no_times.is_none()),
                });
            }
        }
    }
    let changed_references = changed_references.into_iter().map(str::to_owned).collect();
    Changes {
        contestants,
        changed_references,
        changes,
        unmatched,
        no_times,
    }
}

fn is_change(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

/// The contestants in words. The interval alone is one comparison; for a change Holm has to agree.
fn contestants(
    means: &means::Means<'_>,
    same: f64,
    noisy: bool,
    better: impl Fn(&str) -> Better,
) -> Vec<ContestantChange> {
    let mut list: Vec<ContestantChange> = means
        .by_contestant
        .iter()
        .map(|(name, mean)| {
            let verdict = match stats::verdict(&mean.change, 0.0, better(name), same) {
                v if is_change(&v) && (noisy || mean.p > 1.0 - defaults::LEVEL) => {
                    Verdict::Inconclusive
                }
                v => v,
            };
            ContestantChange {
                contestant: (*name).to_owned(),
                cells: mean.cells,
                change: mean.change,
                p: mean.p,
                verdict,
            }
        })
        .collect();
    list.sort_by(|x, y| {
        let rank = |c: &ContestantChange| !is_change(&c.verdict);
        rank(x).cmp(&rank(y)).then(x.p.total_cmp(&y.p))
    });
    list
}

/// The log ratios of a run's cells to their references, where there are rounds enough.
fn points<'a>(
    view: &RunView<'a>,
    judged: &BTreeMap<&'a str, (&'a Cell, &'a str)>,
    alone: bool,
) -> means::Points<'a> {
    let mut points = means::Points::new();
    for (group, (reference, metric)) in judged {
        for cell in view.cells(group) {
            let (x, y) = view.pairs(group, cell, reference, metric);
            let Ok(logs) = stats::log_ratios(&x, &y) else {
                continue;
            };
            let enough = !alone || stats::hodges_lehmann(&logs, defaults::LEVEL).is_ok();
            let Ok(moments) = stats::moments(&logs) else {
                continue;
            };
            if enough && logs.len() >= defaults::RUNS_ROUNDS {
                let se2 = moments.se.powi(2).max(defaults::LEAST_ERROR.powi(2));
                let log = stats::centre(&logs);
                points.insert((*group, cell), means::Point { log, se2 });
            }
        }
    }
    points
}

/// An interval from inside two runs, widened to the scatter between runs.
fn wider(e: &Estimate, spread: f64, correction: f64) -> Estimate {
    let by = spread.sqrt();
    let middle = e.value.ln();
    Estimate {
        value: (middle - correction).exp(),
        lo: (middle - correction - by * (middle - e.lo.ln())).exp(),
        hi: (middle - correction + by * (e.hi.ln() - middle)).exp(),
        ..*e
    }
}

/// A cell's mean over several runs, with the interval of their scatter.
fn of_runs(logs: &[f64]) -> Option<Estimate> {
    let m = stats::moments(logs).ok()?;
    let t = stats::special::student_quantile(0.5 + defaults::LEVEL / 2.0, m.n as f64 - 1.0);
    Some(means::interval(m.mean, t * m.se, m.n))
}

/// The change of a cell between two sides of several runs: the runs' own scatter, and no less than what their rounds
/// and their contestant's scatter say.
fn shift_of_runs(
    sides: &[Vec<means::Points<'_>>; 2],
    key: means::Key<'_>,
    means: &means::Means<'_>,
    correction: f64,
) -> Option<Estimate> {
    let of = |side: &[means::Points<'_>]| -> Option<(f64, f64, f64)> {
        let points: Option<Vec<means::Point>> = side.iter().map(|p| p.get(&key).copied()).collect();
        let points = points?;
        let n = points.len() as f64;
        let mean = points.iter().map(|p| p.log).sum::<f64>() / n;
        let squares = points.iter().map(|p| (p.log - mean).powi(2)).sum();
        Some((
            mean,
            squares,
            points.iter().map(|p| p.se2).sum::<f64>() / (n * n),
        ))
    };
    let spread = means.by_contestant.get(key.1.contestant.as_str())?.spread;
    let ((x, xx, x_in), (y, yy, y_in)) = (of(&sides[0])?, of(&sides[1])?);
    let n = sides.each_ref().map(|s| s.len() as f64);
    let own = n[0] + n[1] - 2.0;
    let share = 1.0 / n[0] + 1.0 / n[1];
    let weight = defaults::RUNS_WEIGHT;
    let square = ((xx + yy) * share + weight * spread * (x_in + y_in)) / (own + weight);
    let t = stats::special::student_quantile(0.5 + defaults::LEVEL / 2.0, means.df);
    let runs = sides[0].len().min(sides[1].len());
    Some(means::interval(y - x - correction, t * square.sqrt(), runs))
}

/// A group's reference and metric, where all runs have the same.
fn common_reference<'a>(runs: &[&RunView<'a>], group: &str) -> Option<(&'a Cell, &'a str)> {
    let of = |view: &RunView<'a>| {
        let found = view.run().groups.iter().find(|g| g.name == group)?;
        Some((&found.reference, found.metric.as_str()))
    };
    let first = of(runs.first()?)?;
    runs.iter().all(|v| of(v) == Some(first)).then_some(first)
}

fn shift_of_ratios(
    runs: &[&RunView<'_>],
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
    let [a, b] = runs else { return None };
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
