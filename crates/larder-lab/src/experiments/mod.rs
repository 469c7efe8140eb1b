//! The experiments, one file (or folder) each.

pub mod alloc_sweep;
pub mod alloc_workloads;
mod allocators;
pub mod arenas;
pub mod block_cache;
pub mod id_space;
pub mod malloc_processes;
pub mod object_caches;
pub mod page_buffers;
pub mod page_pool;
pub mod process_ids;
pub mod programs;
pub mod replacement;
mod scratch;
pub mod simulator;
pub mod sqlite;
pub mod use_once;
pub mod use_once_mounted;
pub mod zero_fill;

use crate::measure::Experiment;

/// Every experiment, in the order in which `measure` runs them when none is named.
#[must_use]
pub fn all() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(page_buffers::PAGE_BUFFERS),
        Box::new(page_pool::PAGE_POOL),
        Box::new(zero_fill::ZERO_FILL),
        Box::new(id_space::ID_SPACE),
        Box::new(process_ids::PROCESS_IDS),
        Box::new(object_caches::OBJECT_CACHES),
        Box::new(alloc_sweep::ALLOC_SWEEP),
        Box::new(alloc_workloads::ALLOC_WORKLOADS),
        Box::new(arenas::ARENAS),
        Box::new(block_cache::BLOCK_CACHE),
        Box::new(sqlite::SQLITE),
        Box::new(use_once::USE_ONCE),
        Box::new(use_once_mounted::USE_ONCE_MOUNTED),
        Box::new(replacement::REPLACEMENT),
        Box::new(simulator::SIMULATOR),
        Box::new(malloc_processes::MALLOC_PROCESSES),
        Box::new(programs::PROGRAMS),
    ]
}

/// The experiment of a name, for instance to read a stored run again.
#[must_use]
pub fn find(name: &str) -> Option<Box<dyn Experiment>> {
    all().into_iter().find(|e| e.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Depth, Plan, PlanRequest};
    use crate::model::MachineRecord;

    /// What an experiment plans for a machine of which nothing is known.
    pub(super) fn plan_of(experiment: &dyn Experiment, depth: Depth) -> Plan {
        experiment.plan(&PlanRequest {
            depth,
            machine: &MachineRecord::default(),
            seed: 1,
        })
    }

    /// Groups hold their reference and no cell twice, and every cell has a contestant.
    pub(super) fn is_whole(experiment: &dyn Experiment, plan: &Plan) {
        let contestants = experiment.contestants();
        for group in &plan.groups {
            assert!(group.cells.contains(&group.reference), "{}", group.name);
            let mut cells = group.cells.clone();
            cells.sort();
            cells.dedup();
            assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
            for cell in cells {
                let known = contestants.iter().any(|c| c.name() == cell.contestant);
                assert!(known, "{cell}");
            }
        }
    }

    #[test]
    fn every_plan_is_whole() {
        for experiment in all() {
            for depth in [Depth::Quick, Depth::Full] {
                is_whole(&*experiment, &plan_of(&*experiment, depth));
            }
        }
    }
}
