//! When a group has enough rounds. Significance is never a reason.

use std::collections::BTreeMap;

use super::Group;
use crate::model::{Cell, Sample, StopReason};
use crate::stats::stopping::{Stopping, half_width};

/// The stopping rule of one group.
#[derive(Debug)]
pub(super) struct Rule {
    stopping: Stopping,
    metric: &'static str,
    reference: Cell,
}

impl Rule {
    /// The rule of a group that takes at most `max_rounds` rounds.
    pub(super) fn new(group: &Group, max_rounds: u32) -> Self {
        Self {
            stopping: Stopping::new(group.min_rounds.min(max_rounds), max_rounds, group.target),
            metric: group.metric,
            reference: group.reference.clone(),
        }
    }

    /// Looks at a group after a complete round, if this is a round to look at.
    ///
    /// `samples` may hold those of other groups and of later rounds; `cells` are those that still run.
    pub(super) fn decide(
        &mut self,
        group: &str,
        rounds: u32,
        cells: &[Cell],
        samples: &[Sample],
    ) -> Option<StopReason> {
        if !self.stopping.is_look(rounds) {
            return None;
        }
        let level = self.stopping.level(rounds);
        let seen = samples
            .iter()
            .filter(|s| s.group == group && s.round < rounds);
        let widest = self.widest(cells, seen, level);
        self.stopping.decide(rounds, widest)
    }

    /// The widest interval of a cell against the reference, the twin included: it is a comparison too.
    /// `None` when one of them has none. A cell that does not report the metric has nothing to be precise about.
    fn widest<'s>(
        &self,
        cells: &[Cell],
        samples: impl Iterator<Item = &'s Sample>,
        level: f64,
    ) -> Option<f64> {
        let mut values: BTreeMap<&Cell, BTreeMap<u32, f64>> = BTreeMap::new();
        for s in samples {
            if let Some(v) = s.measures.get(self.metric) {
                values.entry(&s.cell).or_default().insert(s.round, v);
            }
        }
        let reference = values.get(&self.reference)?;
        let mut widest = None;
        for cell in cells.iter().filter(|c| **c != self.reference) {
            let Some(own) = values.get(cell) else {
                continue;
            };
            let (a, b): (Vec<f64>, Vec<f64>) = own
                .iter()
                .filter_map(|(round, v)| Some((*v, *reference.get(round)?)))
                .unzip();
            let width = half_width(&a, &b, level)?;
            widest = Some(widest.map_or(width, |w: f64| w.max(width)));
        }
        widest
    }
}
