//! Which cells run, quick and full: a group for each workload.

use std::time::Duration;

use crate::contestants::heaps::{PRELOADED, libraries};
use crate::measure::{Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

use super::work::{ALL, About};

/// The library's allocators, where this build has them.
pub(super) const OURS: [&str; 3] = ["heap", "classes", "global"];

/// Today's allocators.
pub(super) const PEERS: [&str; 5] = ["malloc", "mimalloc", "jemalloc", "rpmalloc", "snmalloc"];

/// Heaps that die whole: only for interpreters.
pub(super) const WHOLE: [&str; 2] = ["heap-whole", "mimalloc-heap"];

/// The workload in which heaps of their own take part.
pub(super) const INTERPRETERS: &str = "interpreters";

/// Threads of a workload.
fn threads(workload: &About, quick: bool) -> &'static [i64] {
    match (workload.alone, quick) {
        (true, _) => &[1],
        (false, true) => &[4],
        (false, false) => &[1, 2, 4, 8],
    }
}

/// How much more the full form does.
const FULL: u64 = 25;

fn cell(contestant: &str, workload: &About, threads: i64, quick: bool) -> Cell {
    let ops = workload.ops * if quick { 1 } else { FULL };
    let params = Params::new()
        .with_text("workload", workload.name)
        .with("threads", threads)
        .with("ops", i64::try_from(ops).unwrap_or(i64::MAX));
    Cell::new(contestant, params)
}

/// The plan. `names` are the contestants that this build has.
pub(super) fn plan(request: &PlanRequest<'_>, names: &[&str]) -> Plan {
    let quick = request.depth == Depth::Quick;
    let (libraries, skipped) = libraries(names);
    let mut plan = Plan {
        groups: Vec::new(),
        skipped,
    };
    for workload in ALL {
        let mut cells = Vec::new();
        for &threads in threads(workload, quick) {
            let whole = WHOLE.iter().filter(|_| workload.name == INTERPRETERS);
            let allocators = OURS.iter().chain(&PEERS).chain(whole);
            cells.extend(
                allocators
                    .filter(|name| names.contains(name))
                    .map(|name| cell(name, workload, threads, quick)),
            );
            let like = cell("malloc", workload, threads, quick);
            cells.extend(libraries.iter().map(|library| {
                Cell::new(PRELOADED, like.params.clone().with_text("library", library))
            }));
        }
        let first = threads(workload, quick)[0];
        // A cell takes some 15 ms with its process in the quick form, a third of a second in the full one.
        let each = if quick { 0.015 } else { 0.09 };
        let (min_rounds, max_rounds, target) = if quick { (6, 6, 0.05) } else { (10, 21, 0.02) };
        plan.groups.push(Group {
            name: workload.name.to_owned(),
            reference: cell("malloc", workload, first, quick),
            metric: "ns_per_op",
            round_guess: Duration::from_secs_f64(each * (cells.len() + 1) as f64),
            cells,
            min_rounds,
            max_rounds,
            target,
        });
    }
    if quick {
        plan.skipped.push(Skipped {
            what: "1, 2 and 8 threads".to_owned(),
            why: "the quick form runs each workload for some milliseconds with 4 threads; run with --full for all".to_owned(),
        });
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MachineRecord;

    fn plan_of(depth: Depth) -> Plan {
        let machine = MachineRecord::default();
        let contestants = super::super::contestants::all();
        let names: Vec<_> = contestants.iter().map(|c| c.name()).collect();
        let request = PlanRequest {
            depth,
            machine: &machine,
            seed: 1,
        };
        plan(&request, &names)
    }

    #[test]
    fn each_workload_is_a_group_with_its_reference_and_no_cell_twice() {
        for depth in [Depth::Quick, Depth::Full] {
            let groups = plan_of(depth).groups;
            assert_eq!(groups.len(), 15);
            for group in groups {
                assert!(group.cells.contains(&group.reference), "{}", group.name);
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
                let contestants = super::super::contestants::all();
                for cell in cells {
                    assert!(
                        contestants.iter().any(|c| c.name() == cell.contestant),
                        "{cell}"
                    );
                }
            }
        }
    }

    #[test]
    fn full_has_four_numbers_of_threads_and_quick_is_short() {
        let larson = plan_of(Depth::Full)
            .groups
            .into_iter()
            .find(|g| g.name == "larson")
            .expect("planned");
        for threads in [1, 2, 4, 8] {
            assert!(
                larson
                    .cells
                    .iter()
                    .any(|c| c.params.int("threads").ok() == Some(threads))
            );
        }
        let guess: Duration = plan_of(Depth::Quick)
            .groups
            .iter()
            .map(|g| g.round_guess * g.min_rounds)
            .sum();
        assert!(guess < Duration::from_secs(15), "{guess:?}");
    }
}
