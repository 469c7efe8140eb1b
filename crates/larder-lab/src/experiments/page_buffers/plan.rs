//! Which cells run, quick and full.

use std::time::Duration;

use crate::measure::{Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};
use crate::published;

use super::workload::allocations_of;

/// The total of the quick form. His smallest is eight times as much; the cost of a page does not depend on it as long
/// as it is larger than the cluster.
pub(super) const QUICK_TOTAL: u64 = 8192;

/// Pool sizes of the quick form: every region of his table, and all from 14 to 20, where 17 and 18 stood out.
const QUICK_SIZES: [i64; 21] = [
    1, 2, 4, 8, 14, 15, 16, 17, 18, 19, 20, 24, 30, 32, 64, 128, 256, 512, 1024, 4096, 8192,
];

/// Sizes of the clusters that go back whole, on both sides of the TLB flush ceiling and of the caches.
const WHOLE_SIZES: [i64; 14] = [1, 4, 16, 24, 32, 34, 48, 64, 96, 128, 256, 512, 1024, 4096];

/// Sizes of clusters that are populated by the call that maps them.
const POPULATE_SIZES: [i64; 8] = [1, 16, 34, 64, 128, 512, 1024, 4096];

/// Sizes at which a cluster's life is timed in parts.
const PART_SIZES: [i64; 6] = [1, 16, 64, 512, 2048, 8192];

/// Pages per give-back call, around the 33 single-page flushes that x86 kernels make before they flush everything.
const RELEASE_SIZES: [i64; 10] = [8, 16, 24, 31, 32, 33, 34, 35, 36, 48];

/// Pool sizes of ours in the quick form.
const QUICK_POOL_SIZES: [i64; 5] = [34, 64, 128, 512, 4096];

/// Guess of one page's life when nothing is known of the machine: for the progress bar, and for the share of the time that
/// this experiment gets beside others. In virtual machines it is 5 to 10 us.
const GUESS_NS: u64 = 8_000;

/// Name of the group of one total.
pub(super) fn total_group(total: u64) -> String {
    format!("total-{total}")
}

/// The other groups' names.
pub(super) const WHOLE: &str = "whole-clusters";
pub(super) const PARTS: &str = "parts";
pub(super) const RELEASE: &str = "give-back";

/// His pool sizes in order, without the 0 of unbuffered.
pub(super) fn pool_sizes() -> Vec<i64> {
    let mut sizes: Vec<i64> = published::walfield_elapsed()
        .iter()
        .map(|row| i64::from(row.pool_pages))
        .filter(|&pages| pages > 0)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// His totals in order.
pub(super) fn totals() -> Vec<u64> {
    let mut totals: Vec<u64> = published::walfield_elapsed()
        .iter()
        .map(|row| u64::from(row.allocations))
        .collect();
    totals.sort_unstable();
    totals.dedup();
    totals
}

/// A cell of the workload.
pub(super) fn cell(contestant: &str, total: u64, pages: Option<i64>) -> Cell {
    let params = Params::new().with("total", i64::try_from(total).unwrap_or(i64::MAX));
    let params = match pages {
        Some(pages) => params.with("pages", pages),
        None => params,
    };
    Cell::new(contestant, params)
}

/// The plan. `names` are the contestants that this build has.
pub(super) fn plan(request: &PlanRequest<'_>, names: &[&str]) -> Plan {
    let quick = request.depth == Depth::Quick;
    let mut plan = Plan::default();
    let sweeps: Vec<(u64, Vec<i64>)> = if quick {
        vec![(QUICK_TOTAL, QUICK_SIZES.to_vec())]
    } else {
        totals()
            .into_iter()
            .map(|total| (total, pool_sizes()))
            .collect()
    };
    for (total, sizes) in sweeps {
        let mut cells = vec![cell("unbuffered", total, None)];
        cells.extend(sizes.iter().map(|&k| cell("cluster", total, Some(k))));
        let ours = if quick {
            QUICK_POOL_SIZES.to_vec()
        } else {
            sizes.clone()
        };
        for contestant in ["pool", "pool-handle"] {
            cells.extend(ours.iter().map(|&k| cell(contestant, total, Some(k))));
        }
        for peer in ["malloc", "mimalloc", "jemalloc"] {
            cells.push(cell(peer, total, None));
        }
        plan.groups.push(group(
            total_group(total),
            cells,
            cell("unbuffered", total, None),
            allocations_of(total),
            quick,
        ));
    }
    let total = if quick { QUICK_TOTAL } else { 65_536 };
    let mut cells = vec![cell("unbuffered", total, None)];
    cells.extend(WHOLE_SIZES.map(|k| cell("cluster-whole", total, Some(k))));
    cells.extend(POPULATE_SIZES.map(|k| cell("cluster-populate", total, Some(k))));
    plan.groups.push(group(
        WHOLE.to_owned(),
        cells,
        cell("unbuffered", total, None),
        allocations_of(total) / 3,
        quick,
    ));
    let mut cells = Vec::new();
    for life in ["life-by-page", "life-whole", "life-populate"] {
        cells.extend(PART_SIZES.map(|k| cell(life, total, Some(k))));
    }
    plan.groups.push(group(
        PARTS.to_owned(),
        cells,
        cell("life-whole", total, Some(64)),
        total / 2,
        quick,
    ));
    let calls = if quick { 300 } else { 1000 };
    plan.groups.push(group(
        RELEASE.to_owned(),
        RELEASE_SIZES
            .map(|k| cell("release", calls, Some(k)))
            .to_vec(),
        cell("release", calls, Some(33)),
        calls * 15,
        quick,
    ));
    for group in &mut plan.groups {
        group
            .cells
            .retain(|cell| names.contains(&cell.contestant.as_str()));
    }
    #[cfg(not(feature = "peers"))]
    plan.skipped.push(Skipped {
        what: "mimalloc and jemalloc".to_owned(),
        why: "this program was built without them; build with the default features to compare with them".to_owned(),
    });
    if quick {
        plan.skipped.push(Skipped {
            what: "Walfield's five totals".to_owned(),
            why: format!(
                "the quick form takes {QUICK_TOTAL} pages and {} of his 37 pool sizes; run with --full for all",
                QUICK_SIZES.len()
            ),
        });
    }
    plan
}

fn group(name: String, cells: Vec<Cell>, reference: Cell, pages: u64, quick: bool) -> Group {
    // Most cells pay the kernel for every page; the few that do not make the guess a little long.
    let ns = GUESS_NS * pages * cells.len() as u64;
    let (min_rounds, max_rounds, target) = if quick { (6, 10, 0.05) } else { (10, 15, 0.02) };
    Group {
        name,
        metric: "ns_per_page",
        reference,
        cells,
        min_rounds,
        max_rounds,
        target,
        round_guess: Duration::from_nanos(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MachineRecord;

    fn plan_of(depth: Depth) -> Plan {
        let machine = MachineRecord::default();
        let names = super::super::contestants::all();
        let names: Vec<_> = names.iter().map(|c| c.name()).collect();
        plan(
            &PlanRequest {
                depth,
                machine: &machine,
                seed: 1,
            },
            &names,
        )
    }

    #[test]
    fn full_has_his_totals_and_his_sizes() {
        let plan = plan_of(Depth::Full);
        for total in [65_536, 131_072, 262_144, 524_288, 1_048_576] {
            let group = plan
                .groups
                .iter()
                .find(|group| group.name == total_group(total))
                .expect("each of his totals is a group");
            let clusters = group.cells.iter().filter(|c| c.contestant == "cluster");
            assert_eq!(clusters.count(), 37);
            assert!(
                group.min_rounds >= 10,
                "a standard deviation of at least ten runs"
            );
        }
    }

    #[test]
    fn cells_are_unique_and_hold_their_reference() {
        for depth in [Depth::Quick, Depth::Full] {
            for group in plan_of(depth).groups {
                assert!(group.cells.contains(&group.reference), "{}", group.name);
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
                assert!(group.min_rounds >= 6);
            }
        }
    }

    #[test]
    fn quick_holds_the_sizes_that_the_findings_need_and_fits() {
        let plan = plan_of(Depth::Quick);
        let group = &plan.groups[0];
        for k in [16, 17, 18, 19] {
            assert!(group.cells.contains(&cell("cluster", QUICK_TOTAL, Some(k))));
        }
        let guess: Duration = plan
            .groups
            .iter()
            .map(|group| group.round_guess * (group.min_rounds + 1))
            .sum();
        assert!(guess < Duration::from_secs(60), "{guess:?}");
    }

    #[test]
    fn his_sizes_come_from_his_table() {
        let sizes = pool_sizes();
        assert_eq!((sizes.len(), sizes[0], sizes[36]), (37, 1, 65_536));
        assert!(QUICK_SIZES.iter().all(|k| sizes.contains(k)));
    }
}
