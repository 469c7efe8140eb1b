//! The goal row and the setting that the run supports.

use crate::measure::RunView;
use crate::model::{Goal, Recommendation};
use crate::stats::defaults::LEVEL;

use super::curve::Curve;
use super::findings::{COST, totals};
use super::plan::{cell, total_group};
use crate::frame::words::{Bound, ratio, spans};

/// His largest total, which the goal is stated for.
const GOAL_TOTAL: u64 = 1_048_576;

/// A give-back call of more pages than this flushes the whole TLB once instead of page by page on x86, and the
/// library takes no smaller clusters on its own.
const FLUSH_CEILING: i64 = 33;

/// Our pool against unbuffered and against the best cluster.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    let totals = totals(view);
    if totals.is_empty() {
        return Vec::new();
    }
    if !totals.contains(&GOAL_TOTAL) {
        return ["pool", "pool-handle"]
            .into_iter()
            .flat_map(not_measured)
            .collect();
    }
    let total = GOAL_TOTAL;
    let group = total_group(total);
    let unbuffered = cell("unbuffered", total, None);
    let clusters = Curve::new(view, &group, "cluster");
    let mut goals = Vec::new();
    for ours in ["pool", "pool-handle"] {
        let curve = Curve::new(view, &group, ours);
        let what = format!("Walfield's workload, {ours}");
        let Some((pages, our_cell)) = default_or_best(&curve) else {
            goals.push(Bound::AtLeast(20.0).goal(
                what,
                "unbuffered",
                None,
                None,
                format!("{ours} did not run"),
            ));
            continue;
        };
        let what = format!("{what} with clusters of {pages} pages");
        let held = |other| {
            Some((
                view.middle(&group, our_cell, "held_bytes")?,
                view.middle(&group, other, "held_bytes")?,
            ))
        };
        goals.push(Bound::AtLeast(20.0).goal(
            what.clone(),
            "times faster than unbuffered mmap",
            view.ratio(&group, &unbuffered, our_cell, COST),
            held(&unbuffered),
            "",
        ));
        if let Some((best, best_cell)) = clusters.best(COST) {
            goals.push(Bound::Below(1.0).goal(
                what,
                format!("the best cluster of the sweep ({best} pages)"),
                view.ratio(&group, our_cell, best_cell, COST),
                held(best_cell),
                "",
            ));
        }
    }
    goals
}

/// Both goals of one contestant, where the run has other totals only.
fn not_measured(ours: &str) -> [Goal; 2] {
    let what = format!("Walfield's workload, {ours}");
    let needed = format!("{GOAL_TOTAL} allocations");
    let command = format!(
        "page-buffers --full --group {} --where pages=16,64,1024",
        total_group(GOAL_TOTAL)
    );
    [
        (Bound::AtLeast(20.0), "times faster than unbuffered mmap"),
        (Bound::Below(1.0), "the best cluster of the sweep"),
    ]
    .map(|(bound, against)| bound.needs(what.as_str(), against, &needed, &command))
}

/// The pool at the size that the library takes when nobody chooses, else at its best: choosing the best of a sweep
/// for ourselves alone would flatter us.
fn default_or_best<'c>(curve: &'c Curve<'_>) -> Option<(i64, &'c crate::model::Cell)> {
    curve
        .at(64)
        .map(|cell| (64, cell))
        .or_else(|| curve.best(COST))
}

/// The cluster size that the pool's own sweep supports, at the largest total of the run: the smallest that cannot be
/// told from the best. The pool recycles its pages, so sizes above the TLB flush ceiling often cost the same, and
/// the smallest of them holds the least memory.
pub(super) fn recommendation(view: &RunView<'_>) -> Option<Recommendation> {
    let total = totals(view).last().copied()?;
    let curve = Curve::new(view, &total_group(total), "pool");
    let sweep = curve.sweep(COST)?;
    let set = sweep.optimum_set(LEVEL, Some(&curve.sizes())).ok()?;
    let sizes: Vec<i64> = set
        .members
        .iter()
        .filter_map(|i| Some(curve.cells().get(*i)?.0))
        .collect();
    let chosen = sizes
        .iter()
        .copied()
        .find(|k| *k > FLUSH_CEILING)
        .or_else(|| sizes.first().copied())?;
    let index = curve.cells().iter().position(|(k, _)| *k == chosen)?;
    let evidence = set.ratios.get(index).copied();
    let best = curve.cells().get(set.best)?.0;
    Some(Recommendation {
        key: "pages.cluster_pages".to_owned(),
        value: chosen.to_string(),
        because: format!(
            "PagePool with clusters of {} pages cannot be told from the best ({best}); {chosen} is the smallest of \
             them{}{}.",
            spans(&curve.sizes(), &set.members),
            if sizes.first() == Some(&chosen) {
                ""
            } else {
                " above the TLB flush ceiling of 33"
            },
            evidence
                .map(|e| format!(" and costs {} of it", ratio(&e)))
                .unwrap_or_default()
        ),
        evidence,
    })
}
