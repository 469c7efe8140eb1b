//! The experiments, one file (or folder) each.

use crate::measure::Experiment;

/// Every experiment, in the order in which `measure` runs them.
#[must_use]
pub fn all() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}
