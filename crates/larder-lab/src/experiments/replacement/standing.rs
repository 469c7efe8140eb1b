//! What a rule's hits are worth in one cell.

use crate::measure::RunView;
use crate::model::Cell;

use super::HITS;
use super::plan::{DEFAULT, LRU, OPT, all_cells};

/// One trace and size, with the hits of all rules in percent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    pub(super) trace: &'static str,
    pub(super) size: i64,
    pub(super) hits: Vec<(String, f64)>,
}

impl Standing {
    pub(super) fn of(&self, rule: &str) -> Option<f64> {
        let found = self.hits.iter().find(|(name, _)| name == rule)?;
        Some(found.1)
    }

    /// Share of the way from LRU to OPT, in percent; none where both are equal.
    pub(super) fn gap(&self, rule: &str) -> Option<f64> {
        let (lru, opt) = (self.of(LRU)?, self.of(OPT)?);
        (opt > lru).then_some(100.0 * (self.of(rule)? - lru) / (opt - lru))
    }

    /// The best of the rules that could be chosen beside the default.
    pub(super) fn best(&self) -> Option<(&str, f64)> {
        self.hits
            .iter()
            .filter(|(name, _)| name != DEFAULT && name != OPT)
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(name, hits)| (name.as_str(), *hits))
    }

    /// Points by which the default is behind the best other rule; less than 0 where it is ahead.
    pub(super) fn behind(&self) -> Option<f64> {
        Some(self.best()?.1 - self.of(DEFAULT)?)
    }
}

fn is(cell: &Cell, trace: &str, size: i64) -> bool {
    !cell.twin
        && cell.params.text("trace").is_ok_and(|name| name == trace)
        && cell.params.int("size").is_ok_and(|found| found == size)
}

/// Every cell of a group that ran, in the order of the plan.
pub(super) fn standings(view: &RunView<'_>, group: &str) -> Vec<Standing> {
    let cells = view.cells(group);
    all_cells(group)
        .into_iter()
        .map(|(trace, size)| Standing {
            trace,
            size,
            hits: cells
                .iter()
                .filter(|cell| is(cell, trace, size))
                .filter_map(|cell| {
                    let hits = view.middle(group, cell, HITS)?;
                    Some((cell.contestant.clone(), hits))
                })
                .collect(),
        })
        .filter(|standing| !standing.hits.is_empty())
        .collect()
}

/// The mean of a rule's shares of the way, over all cells; none where one of them lacks it.
pub(super) fn mean_gap(standings: &[Standing], rule: &str) -> Option<f64> {
    let gaps: Option<Vec<f64>> = standings.iter().map(|s| s.gap(rule)).collect();
    let gaps = gaps.filter(|gaps| !gaps.is_empty())?;
    Some(gaps.iter().sum::<f64>() / gaps.len() as f64)
}
