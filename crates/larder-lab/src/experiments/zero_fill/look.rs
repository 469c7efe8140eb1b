//! The samples of a run as the parts of this experiment ask for them. Nothing here fails: what is missing is `None`.

use std::collections::BTreeMap;

use crate::measure::RunView;
use crate::model::{Better, Cell, RunRecord};
use crate::stats::{self, Estimate, Verdict, defaults};

/// A ratio with its word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compared {
    pub(super) ratio: Estimate,
    pub(super) verdict: Verdict,
}

/// A run, looked at.
pub(super) struct Look<'a> {
    pub(super) view: RunView<'a>,
}

/// A factor that a cell must have, as text.
type Want<'w> = (&'w str, &'w str);

impl<'a> Look<'a> {
    pub(super) fn new(run: &'a RunRecord) -> Self {
        Self {
            view: RunView::new(run),
        }
    }

    /// The cell of a contestant with these factors, whatever its others (counts of repetitions differ by depth).
    pub(super) fn cell(
        &self,
        group: &str,
        contestant: &str,
        want: &[Want<'_>],
    ) -> Option<&'a Cell> {
        self.view.cells(group).into_iter().find(|cell| {
            !cell.twin
                && cell.contestant == contestant
                && want.iter().all(|(name, value)| {
                    cell.params
                        .iter()
                        .any(|(n, factor)| n == *name && factor.to_string() == *value)
                })
        })
    }

    /// The four loops of a way.
    pub(super) fn four(&self, way: &str) -> Option<&'a Cell> {
        self.cell(super::cells::TIMINGS, way, &[("loops", "four")])
    }

    /// A block of the groups of whole blocks.
    pub(super) fn block(&self, group: &str, way: &str, pages: i64, touch: i64) -> Option<&'a Cell> {
        let (pages, touch) = (pages.to_string(), touch.to_string());
        self.cell(group, way, &[("pages", &pages), ("touch", &touch)])
    }

    /// The median of a cell's metric; without interval where there are too few rounds.
    pub(super) fn estimate(&self, group: &str, cell: &Cell, metric: &str) -> Option<Estimate> {
        let values: Vec<f64> = self.plain(group, cell, metric);
        settle(&values)
    }

    pub(super) fn plain(&self, group: &str, cell: &Cell, metric: &str) -> Vec<f64> {
        self.view
            .values(group, cell, metric)
            .into_iter()
            .map(|(_, value)| value)
            .collect()
    }

    /// A number computed in each round in which all of these were measured, settled over the rounds.
    pub(super) fn over_rounds(
        &self,
        group: &str,
        of: &[(&Cell, &str)],
        compute: impl Fn(&[f64]) -> Option<f64>,
    ) -> Option<Estimate> {
        settle(&self.by_round(group, of, compute))
    }

    fn by_round(
        &self,
        group: &str,
        of: &[(&Cell, &str)],
        compute: impl Fn(&[f64]) -> Option<f64>,
    ) -> Vec<f64> {
        let columns: Vec<BTreeMap<u32, f64>> = of
            .iter()
            .map(|(cell, metric)| self.view.values(group, cell, metric).into_iter().collect())
            .collect();
        let Some(first) = columns.first() else {
            return Vec::new();
        };
        first
            .keys()
            .filter_map(|round| {
                let row: Option<Vec<f64>> = columns.iter().map(|c| c.get(round).copied()).collect();
                compute(&row?).filter(|v| v.is_finite())
            })
            .collect()
    }

    /// `a / b` by rounds, lower is better.
    pub(super) fn compare(
        &self,
        group: &str,
        a: &Cell,
        b: &Cell,
        metric: &str,
    ) -> Option<Compared> {
        let found = self.view.compare(group, a, b, metric, Better::Lower);
        if let Some(ratio) = found.ratio {
            return Some(Compared {
                ratio,
                verdict: found.verdict,
            });
        }
        let ratio = self.over_rounds(group, &[(a, metric), (b, metric)], |row| {
            (row[1] > 0.0).then(|| row[0] / row[1])
        })?;
        Some(Compared {
            ratio,
            verdict: Verdict::Refused,
        })
    }

    /// The word for a ratio that was computed otherwise, with the floor of a group.
    pub(super) fn judge(&self, group: &str, metric: &str, ratio: &Estimate) -> Verdict {
        match self.view.floor(group, metric) {
            Some(floor) if ratio.hi > ratio.lo => {
                stats::verdict(ratio, floor, Better::Lower, self.view.same_within())
            }
            _ => Verdict::Refused,
        }
    }
}

/// The median with its interval; under six values the bare median, which prints without an interval.
pub(super) fn settle(values: &[f64]) -> Option<Estimate> {
    stats::median(values, defaults::LEVEL)
        .ok()
        .or_else(|| stats::middle_of(values).map(|value| exact(value, values.len())))
}

/// A number without an interval.
pub(super) fn exact(value: f64, n: usize) -> Estimate {
    Estimate {
        value,
        lo: value,
        hi: value,
        n,
        level: defaults::LEVEL,
    }
}

/// An estimate in another unit. A negative factor turns the ends around.
pub(super) fn scaled(e: &Estimate, by: f64) -> Estimate {
    let (a, b) = (e.lo * by, e.hi * by);
    Estimate {
        value: e.value * by,
        lo: a.min(b),
        hi: a.max(b),
        ..*e
    }
}

/// `a / b` of two estimates that were not measured in pairs: the widest ratio that their intervals allow, which is
/// never too narrow. `None` unless both are wholly positive.
pub(super) fn wide_ratio(a: &Estimate, b: &Estimate) -> Option<Estimate> {
    (a.lo > 0.0 && b.lo > 0.0).then(|| Estimate {
        value: a.value / b.value,
        lo: a.lo / b.hi,
        hi: a.hi / b.lo,
        n: a.n.min(b.n),
        level: a.level.min(b.level),
    })
}

/// Adds what one part says to the whole.
pub(super) fn append(whole: &mut crate::model::Analysis, part: crate::model::Analysis) {
    whole.findings.extend(part.findings);
    whole.answers.extend(part.answers);
    whole.goals.extend(part.goals);
    whole.sections.extend(part.sections);
    whole.recommendations.extend(part.recommendations);
    whole.warnings.extend(part.warnings);
}
