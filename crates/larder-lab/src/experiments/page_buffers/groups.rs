//! The groups of a run: how they are called, and the one that the answers rest on.

use std::collections::BTreeSet;

use crate::frame::{At, Curve, Results};
use crate::published;

/// The metric that judges: CPU time of a page's life.
pub(super) const COST: &str = "ns_per_page";
pub(super) const WHOLE: &str = "whole-clusters";
pub(super) const PARTS: &str = "parts";
pub(super) const RELEASE: &str = "give-back";
pub(super) const GROWTH: &str = "growth";
/// The contestant of that group.
pub(super) const GROWING: &str = "pool-growth";

/// The pool's two forms.
pub(super) const OURS: [&str; 2] = ["pool", "pool-handle"];

/// Name of the group of one total.
pub(super) fn total_group(total: i64) -> String {
    format!("total-{total}")
}

/// The totals of 2001, ascending.
pub(super) fn totals_of_2001() -> BTreeSet<i64> {
    let rows = published::walfield_elapsed().iter();
    rows.map(|row| i64::from(row.allocations)).collect()
}

/// The pool sizes of 2001, ascending; 0 is unbuffered.
pub(super) fn sizes_of_2001() -> BTreeSet<i64> {
    let rows = published::walfield_elapsed().iter();
    rows.map(|row| i64::from(row.pool_pages)).collect()
}

/// The totals that were measured, ascending, with their groups.
pub(super) fn totals<'a>(results: &Results<'a>) -> Vec<(i64, &'a str)> {
    let groups = results.view.groups().into_iter();
    let total = |name: &'a str| Some((name.strip_prefix("total-")?.parse().ok()?, name));
    let mut totals: Vec<(i64, &str)> = groups.filter_map(total).collect();
    totals.sort_unstable();
    totals
}

/// The cell of a row of the tables of 2001.
pub(super) fn row<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
    pages: i64,
) -> Option<At<'r, 'a>> {
    match pages {
        0 => results.find(group, "unbuffered", &[]),
        _ => results.find(group, "cluster", &[("pages", pages)]),
    }
}

/// The sizes of one contestant.
pub(super) fn sizes<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
    contestant: &'r str,
) -> Curve<'r, 'a> {
    results.curve(group, contestant, "pages")
}

/// The sweep that the answers rest on: that of the most cluster sizes, of equals the one of the largest total.
pub(super) struct Main<'r, 'a> {
    pub(super) total: i64,
    pub(super) group: &'a str,
    pub(super) clusters: Curve<'r, 'a>,
    pub(super) unbuffered: Option<At<'r, 'a>>,
}

impl<'r, 'a> Main<'r, 'a> {
    pub(super) fn of(results: &'r Results<'a>) -> Option<Self> {
        let sweeps = totals(results).into_iter().map(|(total, group)| Self {
            total,
            group,
            clusters: sizes(results, group, "cluster"),
            unbuffered: row(results, group, 0),
        });
        sweeps.max_by_key(|sweep| (sweep.clusters.cells.len(), sweep.total))
    }
}
