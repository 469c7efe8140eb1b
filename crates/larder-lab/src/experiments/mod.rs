//! The experiments, one file (or folder) each.

use crate::measure::Experiment;

/// Every experiment, in the order in which `measure` runs them.
#[must_use]
pub fn all() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}

/// The experiment of a name, for instance to read a stored run again.
#[must_use]
pub fn find(name: &str) -> Option<Box<dyn Experiment>> {
    all().into_iter().find(|e| e.name() == name)
}
