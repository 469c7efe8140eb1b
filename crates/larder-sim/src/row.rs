//! Results as rows: one for each trace, rule and size.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::load::Counts;
use super::run::Tally;

/// One result. Only what does not depend on the machine: two runs of one trace give equal rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the trace, as given.
    pub trace: String,
    /// Its format.
    pub format: String,
    /// What is in it.
    pub counts: Counts,
    /// The rule.
    pub policy: String,
    /// Blocks of the cache.
    pub size: usize,
    /// The size as requested: a number or a share.
    pub asked: String,
    /// The counts.
    pub tally: Tally,
}

impl Row {
    /// Share of the uses that were hits, in percent.
    #[must_use]
    pub fn hit_percent(&self) -> f64 {
        self.tally.hit_ratio() * 100.0
    }
}

/// A row with its place between LRU and OPT.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placed {
    /// The result.
    #[serde(flatten)]
    pub row: Row,
    /// Hits in percent of the uses.
    pub hit_percent: f64,
    /// Share of the way from LRU's hits to OPT's, in percent: 0 is LRU, 100 is OPT, less than 0 is below LRU. None when
    /// one of the two is not among the rows, or both are equal.
    pub gap_closed_percent: Option<f64>,
}

/// Finds each row's place between LRU and OPT of the same trace and size. The order stays. O(rows).
///
/// ```
/// use larder_sim::{Row, Tally, place};
///
/// let row = |policy: &str, hits| Row {
///     trace: "t".into(), format: "txt".into(), counts: Default::default(), policy: policy.into(), size: 4, asked: "4".into(),
///     tally: Tally { hits, misses: 100 - hits, ..Tally::default() },
/// };
/// let placed = place(&[row("lru", 20), row("fifo", 15), row("2q", 30), row("opt", 40)]);
/// let shares: Vec<_> = placed.iter().map(|p| p.gap_closed_percent).collect();
/// assert_eq!(shares, [Some(0.0), Some(-25.0), Some(50.0), Some(100.0)]);
/// ```
#[must_use]
pub fn place(rows: &[Row]) -> Vec<Placed> {
    /// Hits of LRU and of OPT.
    type Ends = (Option<u64>, Option<u64>);
    let mut ends: HashMap<(&str, usize), Ends> = HashMap::new();
    for row in rows {
        let end = ends.entry((&row.trace, row.size)).or_default();
        match row.policy.as_str() {
            "lru" => end.0 = Some(row.tally.hits),
            "opt" => end.1 = Some(row.tally.hits),
            _ => {}
        }
    }
    rows.iter()
        .map(|row| {
            let closed = match ends.get(&(row.trace.as_str(), row.size)) {
                Some((Some(lru), Some(opt))) if opt > lru => {
                    let gain = row.tally.hits as f64 - *lru as f64;
                    Some(gain / (opt - lru) as f64 * 100.0)
                }
                _ => None,
            };
            Placed {
                hit_percent: row.hit_percent(),
                gap_closed_percent: closed,
                row: row.clone(),
            }
        })
        .collect()
}

/// Mean share of the gap that each rule closes over all cells that have one, best first: rule, mean, least, cells.
#[must_use]
pub fn standing(placed: &[Placed]) -> Vec<(String, f64, f64, usize)> {
    let mut order: Vec<&str> = Vec::new();
    for p in placed {
        if !order.contains(&p.row.policy.as_str()) {
            order.push(&p.row.policy);
        }
    }
    let mut all: Vec<(String, f64, f64, usize)> = order
        .into_iter()
        .filter_map(|policy| {
            let shares: Vec<f64> = placed
                .iter()
                .filter(|p| p.row.policy == policy)
                .filter_map(|p| p.gap_closed_percent)
                .collect();
            let least = shares.iter().copied().reduce(f64::min)?;
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            Some((policy.to_owned(), mean, least, shares.len()))
        })
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}
