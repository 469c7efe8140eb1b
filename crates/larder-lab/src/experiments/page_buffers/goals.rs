//! The goals, and the setting that the run supports.

use super::groups::{COST, Main, OURS, sizes, total_group, totals, totals_of_2001};
use crate::frame::words::{Bound, ratio, spans};
use crate::frame::{Results, goal};
use crate::model::{Goal, Recommendation};
use crate::stats::defaults::LEVEL;

/// The pool's cluster size in the goals: what the library takes where nobody chooses.
pub(super) const POOL_SIZE: i64 = 64;

/// The total that the goals are stated for, where one of them can be measured only.
const GOAL_TOTAL: i64 = 1_048_576;

/// A give-back call of more pages than this flushes the whole TLB once instead of page by page on x86, and the
/// library takes no smaller clusters on its own.
const FLUSH_CEILING: i64 = 33;

/// Those of both forms of the pool.
pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    OURS.into_iter()
        .flat_map(|name| of(results, name))
        .collect()
}

/// The pool against unbuffered and against the best cluster, at the largest of Walfield's totals that was measured.
fn of(results: &Results<'_>, name: &str) -> [Goal; 2] {
    let (times, mmap) = (Bound::AtLeast(20.0), "times faster than unbuffered mmap");
    let (below, sweep) = (Bound::Below(1.0), "the best cluster of the sweep");
    let known = totals_of_2001();
    let mut measured = totals(results).into_iter();
    let Some((total, group)) = measured.rfind(|(total, _)| known.contains(total)) else {
        let what = format!("Walfield's workload, {name}");
        let needed = format!("{GOAL_TOTAL} allocations");
        let group = total_group(GOAL_TOTAL);
        let command = format!("page-buffers --full --group {group} --where pages=16,64,1024");
        return [(times, mmap), (below, sweep)]
            .map(|(bound, against)| bound.needs(what.as_str(), against, &needed, &command));
    };
    // The best of a sweep of its own would flatter the pool.
    let pool = sizes(results, group, name);
    let ours = pool
        .at(POOL_SIZE)
        .map(|at| (POOL_SIZE, at))
        .or(pool.best(COST));
    let clusters = ours.map_or(String::new(), |(n, _)| {
        format!(" with clusters of {n} pages")
    });
    let what = format!("Walfield's workload, {total} allocations, {name}{clusters}");
    let ours = ours.map(|(_, at)| at);
    let unbuffered = results.find(group, "unbuffered", &[]);
    let best = sizes(results, group, "cluster").best(COST);
    let faster = goal(times, what.as_str(), unbuffered, ours, name, COST);
    let cheaper = goal(
        below,
        what.as_str(),
        ours,
        best.map(|(_, at)| at),
        "cluster",
        COST,
    );
    [
        Goal {
            against: mmap.to_owned(),
            held_bytes: faster.held_bytes.map(|(theirs, ours)| (ours, theirs)),
            ..faster
        },
        Goal {
            against: best.map_or(sweep.to_owned(), |(n, _)| format!("{sweep} ({n} pages)")),
            ..cheaper
        },
    ]
}

/// The cluster size that the pool's own sweep supports: the smallest that cannot be told from the best. The pool recycles its
/// pages, so sizes above the TLB flush ceiling often cost the same, and the smallest of them holds the least memory.
pub(super) fn recommendation(results: &Results<'_>) -> Option<Recommendation> {
    let main = Main::of(results)?;
    let pool = sizes(results, main.group, "pool");
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
        [_] => format!("PagePool is cheapest with clusters of {value} pages."),
        several => {
            let ceiling = match several.first() {
                Some(first) if *first == index => "",
                _ => " above the TLB flush ceiling of 33",
            };
            let cost =
                evidence.map_or_else(String::new, |e| format!(" and costs {} of it", ratio(&e)));
            format!(
                "PagePool with clusters of {} pages cannot be told from the best ({best}); {value} is the smallest of \
                 them{ceiling}{cost}.",
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
