//! Which cells run, quick and full: a group for each workload.

use super::work::ALL;
use super::workload::About;
use super::{INTERPRETERS, OURS, WHOLE, contestants};
use crate::contestants::heaps::libraries;
use crate::experiments::allocators::{PEERS, preloaded_cells};
use crate::frame::{Planner, cross};
use crate::measure::{Plan, PlanRequest};
use crate::model::{Cell, Params};

/// How much more the full form does.
const FULL: u64 = 25;

/// Numbers of threads of a workload.
fn threads(workload: &About, quick: bool) -> &'static [i64] {
    match (workload.alone, quick) {
        (true, _) => &[1],
        (false, true) => &[4],
        (false, false) => &[1, 2, 4, 8],
    }
}

/// The plan.
pub(super) fn plan(request: &PlanRequest<'_>) -> Plan {
    let contestants = contestants();
    let names: Vec<&str> = contestants.iter().map(|c| c.name()).collect();
    let (libraries, skipped) = libraries(&names);
    let mut plan = Planner::new(request, &contestants, (6, 6, 0.05), (10, 21, 0.02));
    for line in skipped {
        plan.skip(line.what, line.why);
    }
    let quick = plan.quick();
    for workload in ALL {
        let whole = WHOLE.into_iter().filter(|_| workload.name == INTERPRETERS);
        let allocators = OURS.into_iter().chain(PEERS).chain(whole);
        let allocators: Vec<&str> = allocators.filter(|name| names.contains(name)).collect();
        let ops = workload.ops * if quick { 1 } else { FULL };
        let params = |threads: &i64| {
            let params = Params::new().with_text("workload", workload.name);
            params.with("threads", *threads).with("ops", ops as i64)
        };
        let params: Vec<Params> = threads(workload, quick).iter().map(params).collect();
        let mut cells = cross(&allocators, &params);
        for params in params {
            cells.extend(preloaded_cells(&Cell::new("malloc", params), &libraries));
        }
        // A cell takes some 15 ms with its process in the quick form, a third of a second in the full one.
        let seconds = plan.either(0.016, 0.09) * (cells.len() + 1) as f64;
        plan.group(workload.name, "ns_per_op", "malloc", seconds, cells);
    }
    if quick {
        plan.skip(
            "1, 2 and 8 threads",
            "the quick form runs each workload for some milliseconds with 4 threads; run with --full for all",
        );
    }
    plan.finish()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ALLOC_WORKLOADS;
    use super::*;
    use crate::experiments::tests::plan_of;
    use crate::measure::Depth;

    #[test]
    fn each_workload_is_a_group() {
        for depth in [Depth::Quick, Depth::Full] {
            assert_eq!(plan_of(&ALLOC_WORKLOADS, depth).groups.len(), ALL.len());
        }
    }

    #[test]
    fn full_has_four_numbers_of_threads_and_quick_is_short() {
        let larson = plan_of(&ALLOC_WORKLOADS, Depth::Full)
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
        let guess: Duration = plan_of(&ALLOC_WORKLOADS, Depth::Quick)
            .groups
            .iter()
            .map(|g| g.round_guess * g.min_rounds)
            .sum();
        assert!(guess < Duration::from_secs(15), "{guess:?}");
    }
}
