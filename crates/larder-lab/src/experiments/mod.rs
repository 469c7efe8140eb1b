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
pub mod use_once;
pub mod zero_fill;

use crate::measure::Experiment;

/// Every experiment: those of a run without names first, then those that run by name only.
#[must_use]
pub fn all() -> Vec<Box<dyn Experiment>> {
    let mut all = without_names();
    all.extend(by_name());
    all
}

/// Those that take longer than a run without names has time for.
fn by_name() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(arenas::Arenas),
        Box::new(block_cache::BlockCaches),
        Box::new(programs::Programs),
        Box::new(use_once::UseOnce),
    ]
}

/// What `measure` runs when nobody names an experiment, in its order.
#[must_use]
pub fn without_names() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(page_buffers::PageBuffers),
        Box::new(page_pool::PagePool),
        Box::new(zero_fill::ZeroFill),
        Box::new(id_space::IdSpaces),
        Box::new(process_ids::ProcessIds),
        Box::new(object_caches::ObjectCaches),
        Box::new(alloc_workloads::AllocWorkloads),
    ]
}

/// The experiment of a name, for instance to read a stored run again.
#[must_use]
pub fn find(name: &str) -> Option<Box<dyn Experiment>> {
    all().into_iter().find(|e| e.name() == name)
}
