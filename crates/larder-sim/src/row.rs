//! Results as rows: one for each trace, rule and size.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::load::Counts;
use super::machine::DiskCounts;
use super::run::{OPT, Tally, knows_the_future};

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
    /// What the disk did, where one was modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskCounts>,
}

impl Row {
    /// Share of the uses that were hits, in percent.
    #[must_use]
    pub fn hit_percent(&self) -> f64 {
        self.tally.hit_ratio() * 100.0
    }

    /// What is compared: rows of one cell differ in the rule alone.
    fn cell(&self) -> (&str, &str, usize) {
        (&self.trace, &self.asked, self.size)
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
    /// Misses that the rule saves of LRU's, in percent of them; None without LRU or where it misses nothing.
    pub misses_saved_percent: Option<f64>,
    /// Hits that are missing to OPT's, in percent of the uses; None without OPT.
    pub below_opt_percent: Option<f64>,
    /// Whether no rule of the trace and size hits more often, OPT aside. Of equal ones it is LRU, then the default, then the first.
    pub best: bool,
}

/// The rule that a block cache has when none is named.
pub const DEFAULT: &str = "adaptive";

/// What the rows of one trace and size say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Answer<'a> {
    /// The best rule, OPT aside.
    pub best: &'a Placed,
    /// Hits that are missing to the best rule's under the [`DEFAULT`], in percent of the uses; None if it is not among the rules.
    pub default_behind_percent: Option<f64>,
}

/// The answer for each trace and size, in the rows' order; none where there is one rule alone to choose from.
///
/// ```
/// use larder_sim::{Row, Tally, answers, place};
///
/// let row = |policy: &str, hits| Row {
///     trace: "t".into(), format: "txt".into(), counts: Default::default(), policy: policy.into(), size: 4, asked: "4".into(),
///     tally: Tally { hits, misses: 100 - hits, ..Tally::default() }, disk: None,
/// };
/// let placed = place(&[row("lru", 20), row("2q", 60), row("adaptive", 58), row("opt", 80)]);
/// let answer = answers(&placed)[0];
/// assert_eq!(answer.best.row.policy, "2q");
/// assert_eq!(answer.best.misses_saved_percent.map(f64::round), Some(50.0));
/// assert_eq!(answer.best.below_opt_percent.map(f64::round), Some(20.0));
/// assert_eq!(answer.default_behind_percent.map(f64::round), Some(2.0));
/// ```
#[must_use]
pub fn answers(placed: &[Placed]) -> Vec<Answer<'_>> {
    placed
        .iter()
        .filter(|p| p.best)
        .filter_map(|best| {
            let mut others = placed
                .iter()
                .filter(|p| p.row.cell() == best.row.cell() && !knows_the_future(&p.row.policy))
                .peekable();
            let alone = others.clone().nth(1).is_none();
            let default = others.find(|p| p.row.policy == DEFAULT);
            (!alone).then(|| Answer {
                best,
                default_behind_percent: default.map(|d| best.hit_percent - d.hit_percent),
            })
        })
        .collect()
}

/// Finds each row's place between LRU and OPT of the same trace and size. The order stays. O(rows).
///
/// ```
/// use larder_sim::{Row, Tally, place};
///
/// let row = |policy: &str, hits| Row {
///     trace: "t".into(), format: "txt".into(), counts: Default::default(), policy: policy.into(), size: 4, asked: "4".into(),
///     tally: Tally { hits, misses: 100 - hits, ..Tally::default() }, disk: None,
/// };
/// let placed = place(&[row("lru", 20), row("fifo", 15), row("2q", 30), row("opt", 40)]);
/// let shares: Vec<_> = placed.iter().map(|p| p.gap_closed_percent).collect();
/// assert_eq!(shares, [Some(0.0), Some(-25.0), Some(50.0), Some(100.0)]);
/// ```
#[must_use]
pub fn place(rows: &[Row]) -> Vec<Placed> {
    #[derive(Default)]
    struct Marks<'a> {
        lru: Option<&'a Tally>,
        opt: Option<&'a Tally>,
        best: Option<&'a Row>,
    }
    let before = |row: &Row| (row.tally.hits, row.policy == "lru", row.policy == DEFAULT);
    let mut marks: HashMap<(&str, &str, usize), Marks> = HashMap::new();
    for row in rows {
        let marks = marks.entry(row.cell()).or_default();
        match row.policy.as_str() {
            "lru" => marks.lru = Some(&row.tally),
            OPT => marks.opt = Some(&row.tally),
            _ => {}
        }
        if !knows_the_future(&row.policy)
            && marks.best.is_none_or(|best| before(row) > before(best))
        {
            marks.best = Some(row);
        }
    }
    rows.iter()
        .map(|row| {
            let Marks { lru, opt, best } = &marks[&row.cell()];
            let closed = lru.zip(*opt).filter(|(lru, opt)| opt.hits > lru.hits);
            let saved = lru.filter(|lru| lru.misses > 0);
            Placed {
                hit_percent: row.hit_percent(),
                gap_closed_percent: closed.map(|(lru, opt)| {
                    let gain = row.tally.hits as f64 - lru.hits as f64;
                    gain / (opt.hits - lru.hits) as f64 * 100.0
                }),
                misses_saved_percent: saved
                    .map(|lru| (1.0 - row.tally.misses as f64 / lru.misses as f64) * 100.0),
                below_opt_percent: opt.map(|opt| opt.hit_ratio() * 100.0 - row.hit_percent()),
                best: best.is_some_and(|best| std::ptr::eq(best, row)),
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
