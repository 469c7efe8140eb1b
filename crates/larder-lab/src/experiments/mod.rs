//! The experiments, one file (or folder) each.

pub mod alloc_sweep;
pub mod alloc_workloads;
mod allocators;
pub mod arenas;
pub mod block_cache;
pub mod id_space;
pub mod object_caches;
pub mod page_buffers;
pub mod page_pool;
pub mod process_ids;
pub mod programs;
pub mod replacement;
mod scratch;
pub mod simulator;
pub mod use_once;
pub mod zero_fill;

use crate::measure::Experiment;

/// Every experiment, in the order in which `measure` runs them when nobody names one.
#[must_use]
pub fn all() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(page_buffers::PageBuffers),
        Box::new(page_pool::PagePool),
        Box::new(zero_fill::ZeroFill),
        Box::new(id_space::IdSpaces),
        Box::new(process_ids::ProcessIds),
        Box::new(object_caches::ObjectCaches),
        Box::new(alloc_sweep::AllocSweep),
        Box::new(alloc_workloads::AllocWorkloads),
        Box::new(arenas::Arenas),
        Box::new(block_cache::BlockCaches),
        Box::new(use_once::UseOnce),
        Box::new(replacement::Replacement),
        Box::new(simulator::Simulator),
        Box::new(programs::Programs),
    ]
}

/// The experiment of a name, for instance to read a stored run again.
#[must_use]
pub fn find(name: &str) -> Option<Box<dyn Experiment>> {
    all().into_iter().find(|e| e.name() == name)
}

/// The plan of an experiment for a machine of which nothing is known.
#[cfg(test)]
fn plan_of(experiment: &dyn Experiment, depth: crate::measure::Depth) -> crate::measure::Plan {
    experiment.plan(&crate::measure::PlanRequest {
        depth,
        machine: &crate::model::MachineRecord::default(),
        seed: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Depth;

    #[test]
    fn groups_hold_their_reference_and_each_cell_of_a_contestant_once() {
        for (experiment, depth) in all()
            .iter()
            .flat_map(|e| [Depth::Quick, Depth::Full].map(|depth| (e, depth)))
        {
            let contestants = experiment.contestants();
            for group in plan_of(experiment.as_ref(), depth).groups {
                let name = format!("{}, {}", experiment.name(), group.name);
                assert!(group.cells.contains(&group.reference), "{name}");
                for cell in &group.cells {
                    let known = contestants.iter().any(|c| c.name() == cell.contestant);
                    assert!(known, "{name}: {cell}");
                }
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len(), "{name}");
            }
        }
    }
}
