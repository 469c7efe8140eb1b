//! One contestant over a factor: the cells of a sweep.

use std::collections::BTreeMap;

use super::results::{At, Results};
use crate::stats::defaults::LEVEL;
use crate::stats::sweep::{Crossover, Sweep, crossover};

/// The cells of one contestant in one group, by ascending value of a whole-number factor.
pub struct Curve<'r, 'a> {
    results: &'r Results<'a>,
    /// Value and cell.
    pub cells: Vec<(i64, At<'r, 'a>)>,
}

impl<'a> Results<'a> {
    /// The cells of a contestant over a factor. They may be none.
    pub fn curve<'r>(&'r self, group: &'r str, contestant: &'r str, factor: &str) -> Curve<'r, 'a> {
        let cells = self.of(group, contestant);
        let mut cells: Vec<(i64, At<'r, 'a>)> =
            cells.filter_map(|at| Some((at.int(factor)?, at))).collect();
        cells.sort_by_key(|(value, _)| *value);
        Curve {
            results: self,
            cells,
        }
    }
}

impl<'r, 'a> Curve<'r, 'a> {
    /// The cell at a value of the factor.
    pub fn at(&self, value: i64) -> Option<At<'r, 'a>> {
        let cell = self.cells.iter().find(|(own, _)| *own == value);
        cell.map(|(_, at)| *at)
    }

    /// The cell at the smallest value.
    pub fn first(&self) -> Option<(i64, At<'r, 'a>)> {
        self.cells.first().copied()
    }

    /// The cell at the largest value.
    pub fn last(&self) -> Option<(i64, At<'r, 'a>)> {
        self.cells.last().copied()
    }

    /// The cell with the lowest median of a cost.
    pub fn best(&self, metric: &str) -> Option<(i64, At<'r, 'a>)> {
        let known = self.cells.iter();
        known
            .filter_map(|cell| Some((*cell, cell.1.middle(metric)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(cell, _)| cell)
    }

    /// The values of the factor, as the statistics take them.
    pub fn settings(&self) -> Vec<f64> {
        self.cells.iter().map(|(value, _)| *value as f64).collect()
    }

    /// A cost in the rounds in which every cell has one, cell by cell.
    fn rounds(&self, metric: &str) -> BTreeMap<u32, Vec<f64>> {
        let columns = self.cells.iter().map(|(_, at)| at.by_round(metric));
        let columns: Vec<BTreeMap<u32, f64>> = columns.collect();
        let rounds = columns.first().into_iter().flat_map(BTreeMap::keys);
        let whole =
            |round| -> Option<Vec<f64>> { columns.iter().map(|c| c.get(round).copied()).collect() };
        rounds
            .filter_map(|round| Some((*round, whole(round)?)))
            .collect()
    }

    /// The statistics of the sweep; `None` where no round is complete.
    pub fn sweep(&self, metric: &str) -> Option<Sweep> {
        let rounds: Vec<Vec<f64>> = self.rounds(metric).into_values().collect();
        Sweep::new(&self.settings(), &rounds).ok()
    }

    /// Where the cost crosses that of a cell without the factor, which is the same at every value.
    pub fn crossing(&self, other: &At<'_, '_>, metric: &str) -> Option<Crossover> {
        let flat = other.by_round(metric);
        let (own, flat): (Vec<Vec<f64>>, Vec<Vec<f64>>) = self
            .rounds(metric)
            .into_iter()
            .filter_map(|(round, costs)| {
                let flat = vec![*flat.get(&round)?; costs.len()];
                Some((costs, flat))
            })
            .unzip();
        let seed = self.results.view.run().seed;
        crossover(&self.settings(), &own, &flat, LEVEL, seed).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cell, Measures, Metric, Params, RunRecord, Sample};

    const METRICS: &[Metric] = &[Metric::cost("ns", "ns", "")];

    /// Seven rounds in which a page from a cluster of 1, 8 and 64 costs 4, 1 and 16; without a cluster it costs 2.
    fn run() -> RunRecord {
        let sizes = [(64, 16.0), (1, 4.0), (8, 1.0)];
        let clusters = sizes.map(|(pages, ns)| (Params::new().with("pages", pages), "cluster", ns));
        let all = clusters.into_iter().chain([(Params::new(), "none", 2.0)]);
        let all: Vec<(Params, &str, f64)> = all.collect();
        let sample = |round: u32, (params, name, ns): &(Params, &str, f64)| Sample {
            group: "g".to_owned(),
            cell: Cell::new(name, params.clone()),
            round,
            slot: 0,
            at_us: 0,
            measures: Measures::new().with("ns", ns * (1.0 + 0.001 * f64::from(round % 3))),
        };
        let samples = (0..7).flat_map(|round| all.iter().map(move |cell| sample(round, cell)));
        RunRecord {
            samples: samples.collect(),
            ..RunRecord::default()
        }
    }

    #[test]
    fn cells_ascend_and_the_best_is_the_cheapest() {
        let run = run();
        let results = Results::new(&run, METRICS);
        let curve = results.curve("g", "cluster", "pages");
        assert_eq!(curve.settings(), [1.0, 8.0, 64.0]);
        assert_eq!(curve.best("ns").map(|(pages, _)| pages), Some(8));
        assert_eq!(curve.first().map(|(pages, _)| pages), Some(1));
        assert_eq!(curve.last().map(|(pages, _)| pages), Some(64));
        assert_eq!(curve.sweep("ns").map(|sweep| sweep.best()), Some(1));
        assert!(results.curve("g", "none", "pages").sweep("ns").is_none());
    }

    #[test]
    fn a_round_that_lacks_a_cell_does_not_count() {
        let mut run = run();
        run.samples
            .retain(|s| s.round != 3 || s.cell.params.int("pages").ok() != Some(8));
        let results = Results::new(&run, METRICS);
        let curve = results.curve("g", "cluster", "pages");
        assert_eq!(curve.sweep("ns").map(|sweep| sweep.rounds()), Some(6));
    }

    #[test]
    fn a_curve_crosses_a_flat_cost_twice() {
        let run = run();
        let results = Results::new(&run, METRICS);
        let curve = results.curve("g", "cluster", "pages");
        let none = results.find("g", "none", &[]).expect("it ran");
        let Some(Crossover::Several(places)) = curve.crossing(&none, "ns") else {
            panic!("one ahead, then the other, then the first again");
        };
        let places: Vec<f64> = places.iter().map(|place| place.at.value.round()).collect();
        assert_eq!(places, [3.0, 13.0]);
    }
}
