//! One contestant over its cluster sizes, as the samples have it.

use crate::measure::RunView;
use crate::model::Cell;
use crate::stats::sweep::Sweep;

/// The cells of one contestant in one group, by ascending cluster size.
#[derive(Debug, Clone)]
pub(super) struct Curve<'a> {
    view: &'a RunView<'a>,
    group: String,
    /// Cluster size and cell.
    cells: Vec<(i64, Cell)>,
}

impl<'a> Curve<'a> {
    pub(super) fn new(view: &'a RunView<'a>, group: &str, contestant: &str) -> Self {
        let mut cells: Vec<(i64, Cell)> = view
            .cells(group)
            .into_iter()
            .filter(|cell| cell.contestant == contestant && !cell.twin)
            .filter_map(|cell| Some((cell.params.int("pages").ok()?, cell.clone())))
            .collect();
        cells.sort_by_key(|(pages, _)| *pages);
        Self {
            view,
            group: group.to_owned(),
            cells,
        }
    }

    pub(super) fn cells(&self) -> &[(i64, Cell)] {
        &self.cells
    }

    pub(super) fn at(&self, pages: i64) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|(k, _)| *k == pages)
            .map(|(_, cell)| cell)
    }

    /// The cell with the lowest median cost.
    pub(super) fn best(&self, metric: &str) -> Option<(i64, &Cell)> {
        self.cells
            .iter()
            .filter_map(|(k, cell)| Some((*k, cell, self.view.middle(&self.group, cell, metric)?)))
            .min_by(|a, b| a.2.total_cmp(&b.2))
            .map(|(k, cell, _)| (k, cell))
    }

    /// The rounds in which every size ran: `rounds[round][size]`.
    pub(super) fn rounds(&self, metric: &str) -> Vec<Vec<f64>> {
        let columns: Vec<Vec<(u32, f64)>> = self
            .cells
            .iter()
            .map(|(_, cell)| self.view.values(&self.group, cell, metric))
            .collect();
        let Some(first) = columns.first() else {
            return Vec::new();
        };
        first
            .iter()
            .filter_map(|(round, _)| {
                columns
                    .iter()
                    .map(|column| {
                        column
                            .iter()
                            .find(|(other, _)| other == round)
                            .map(|(_, value)| *value)
                    })
                    .collect()
            })
            .collect()
    }

    /// Sizes as the statistics want them.
    pub(super) fn sizes(&self) -> Vec<f64> {
        self.cells.iter().map(|(k, _)| *k as f64).collect()
    }

    /// The sweep, `None` when no round is complete.
    pub(super) fn sweep(&self, metric: &str) -> Option<Sweep> {
        Sweep::new(&self.sizes(), &self.rounds(metric)).ok()
    }

    /// For every size the cost of `other` in the same rounds: the curve of a contestant without a cluster size.
    pub(super) fn flat(&self, other: &Cell, metric: &str) -> Vec<Vec<f64>> {
        let of_other = self.view.values(&self.group, other, metric);
        let complete = self.complete_rounds(metric);
        of_other
            .iter()
            .filter(|(round, _)| complete.contains(round))
            .map(|(_, value)| vec![*value; self.cells.len()])
            .collect()
    }

    fn complete_rounds(&self, metric: &str) -> Vec<u32> {
        let columns: Vec<Vec<u32>> = self
            .cells
            .iter()
            .map(|(_, cell)| {
                self.view
                    .values(&self.group, cell, metric)
                    .into_iter()
                    .map(|(round, _)| round)
                    .collect()
            })
            .collect();
        let Some(first) = columns.first() else {
            return Vec::new();
        };
        first
            .iter()
            .copied()
            .filter(|round| columns.iter().all(|column| column.contains(round)))
            .collect()
    }
}
