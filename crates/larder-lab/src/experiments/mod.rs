//! The experiments, one file (or folder) each.

pub mod alloc_workloads;
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
        Box::new(id_space::ID_SPACE),
        Box::new(process_ids::PROCESS_IDS),
        Box::new(object_caches::ObjectCaches),
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
