//! A whole table of comparisons with one reference.

use super::{Comparison, RunView};
use crate::model::{Better, Cell};
use crate::stats::{PairedTest, Verdict, defaults, holm, log_ratios};

/// A row of a table of comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableComparison<'a> {
    /// What is compared with the reference.
    pub cell: &'a Cell,
    /// Ratio, floor and verdict; faster and slower stand only where `p` allows them.
    pub comparison: Comparison,
    /// p-value after Holm over the rows; `None` where there was no ratio.
    pub p: Option<f64>,
}

impl<'a> RunView<'a> {
    /// Every cell of a group against its reference, the reference and its twin left out.
    ///
    /// As [`compare`](RunView::compare) for each, and then Holm (1979) over the rows: among forty rows that
    /// are equal in truth, one or two would else be called faster or slower. A row whose adjusted p-value is
    /// above 5 % becomes inconclusive.
    #[must_use]
    pub fn compare_all(
        &self,
        group: &str,
        metric: &str,
        better: Better,
    ) -> Vec<TableComparison<'a>> {
        let Some(reference) = self.reference(group) else {
            return Vec::new();
        };
        let mut rows: Vec<TableComparison<'a>> = self
            .cells(group)
            .into_iter()
            .filter(|cell| *cell != reference && !cell.twin)
            .map(|cell| TableComparison {
                cell,
                comparison: self.compare(group, cell, reference, metric, better),
                p: None,
            })
            .collect();
        let judged: Vec<usize> = (0..rows.len())
            .filter(|i| rows[*i].comparison.ratio.is_some())
            .collect();
        let alpha = 1.0 - defaults::LEVEL;
        let least = judged.iter().map(|i| rows[*i].comparison.n).min();
        let test = PairedTest::choose(least.unwrap_or(0), judged.len(), alpha);
        let raw: Vec<f64> = judged
            .iter()
            .map(|i| {
                let (own, of_reference) = self.pairs(group, rows[*i].cell, reference, metric);
                log_ratios(&own, &of_reference)
                    .and_then(|logs| test.p(&logs))
                    .unwrap_or(1.0)
            })
            .collect();
        for (i, p) in judged.into_iter().zip(holm(&raw)) {
            rows[i].p = Some(p);
            let verdict = &mut rows[i].comparison.verdict;
            if p > alpha && matches!(verdict, Verdict::Faster | Verdict::Slower) {
                *verdict = Verdict::Inconclusive;
            }
        }
        rows
    }
}
