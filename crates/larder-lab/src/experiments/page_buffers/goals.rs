//! The goals, and the setting that the run supports.

use super::groups::{COST, GROWING, GROWTH, OURS, sizes, total_group, totals, totals_of_2001};
use crate::frame::words::{Bound, ratio, spans};
use crate::frame::{Results, each, goal};
use crate::model::{Goal, Recommendation};
use crate::stats::defaults::LEVEL;

/// The pool's cluster size in the goals: what the library takes without a setting.
pub(super) const POOL_SIZE: i64 = 64;

/// The total that the goals are stated for, where one of them can be measured only.
const GOAL_TOTAL: i64 = 1_048_576;

/// A give-back call of more pages than this flushes the whole TLB once instead of page by page on x86, and the
/// library takes no smaller clusters on its own.
const FLUSH_CEILING: i64 = 33;

/// Both forms of the pool against unbuffered and against the best cluster, at the largest of Walfield's totals that was
/// measured.
pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    let (times, below) = (Bound::AtLeast(20.0), Bound::Below(1.0));
    let (mmap, sweep) = (
        "times faster than unbuffered mmap",
        "the best cluster of the sweep",
    );
    let known = totals_of_2001();
    let mut measured = totals(results).into_iter();
    let what = |total, other| format!("page buffers, {total} allocations, to {other}");
    let Some((total, group)) = measured.rfind(|(total, _)| known.contains(total)) else {
        let needed = format!("{GOAL_TOTAL} allocations");
        let group = total_group(GOAL_TOTAL);
        let command = format!("page-buffers --full --group {group} --where pages=16,64,1024");
        let goal = |bound: Bound, other, against: &str| {
            bound.needs(what(GOAL_TOTAL, other), against, &needed, &command)
        };
        return vec![goal(times, "mmap", mmap), goal(below, "clusters", sweep)];
    };
    let unbuffered = results.find(group, "unbuffered", &[]);
    let best = sizes(results, group, "cluster").best(COST);
    let best_called = best.map_or(sweep.to_owned(), |(n, _)| format!("{sweep} ({n} pages)"));
    let best = best.map(|(_, at)| at);
    // The best of a sweep of its own would flatter the pool.
    let forms = OURS.map(|name| {
        let pool = sizes(results, group, name);
        let chosen = pool.at(POOL_SIZE).map(|at| (POOL_SIZE, at));
        let (pages, ours) = chosen.or(pool.best(COST)).unzip();
        let pages = pages.map_or(String::new(), |n| format!(" with clusters of {n} pages"));
        (name, format!("{name}{pages}"), ours)
    });
    let faster = forms.iter().map(|(name, cell, ours)| {
        let faster = goal(times, what(total, "mmap"), unbuffered, *ours, name, COST);
        let held_bytes = faster.held_bytes.map(|(theirs, ours)| (ours, theirs));
        let against = mmap.to_owned();
        let faster = Goal {
            against,
            held_bytes,
            ..faster
        };
        (cell.clone(), faster)
    });
    let cheaper = forms.iter().map(|(_, cell, ours)| {
        let cheaper = goal(below, what(total, "clusters"), *ours, best, "cluster", COST);
        let against = best_called.clone();
        (cell.clone(), Goal { against, ..cheaper })
    });
    [each(times, faster), each(below, cheaper)]
        .into_iter()
        .flatten()
        .collect()
}

/// The cluster size that a growing pool supports: the smallest that cannot be distinguished from the best. Sizes above the TLB
/// flush ceiling often cost the same, and the smallest of them holds the least memory.
pub(super) fn recommendation(results: &Results<'_>) -> Option<Recommendation> {
    let pool = sizes(results, GROWTH, GROWING);
    let set = pool
        .sweep(COST)?
        .optimum_set(LEVEL, Some(&pool.settings()))
        .ok()?;
    let mut members = set.members.iter();
    let chosen = members.find(|i| pool.cells.get(**i).is_some_and(|(k, _)| *k > FLUSH_CEILING));
    let index = *chosen.or(set.members.first())?;
    let (value, best) = (pool.cells.get(index)?.0, pool.cells.get(set.best)?.0);
    let evidence = set.ratios.get(index).copied();
    let because = match set.members.as_slice() {
        [_] => format!("A PagePool grows cheapest by clusters of {value} pages."),
        several => {
            let ceiling = match several.first() {
                Some(first) if *first == index => "",
                _ => "; up to 33 the kernel flushes the TLB page by page",
            };
            let cost = evidence.map_or_else(String::new, |e| {
                format!("; {value} costs {} of the best", ratio(&e))
            });
            format!(
                "{value} is the smallest equal to the best. PagePool grows at the same cost by clusters of {} pages (best: {best}){ceiling}{cost}.",
                spans(&pool.settings(), several)
            )
        }
    };
    Some(Recommendation {
        key: "pages.cluster_pages".to_owned(),
        value: value.to_string(),
        because,
        evidence,
    })
}
