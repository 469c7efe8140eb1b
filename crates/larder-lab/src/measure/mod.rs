//! Rounds, processes and stopping: how samples are taken.

mod experiment;
mod view;

pub use experiment::{Contestant, Depth, Experiment, Group, Plan, PlanRequest};
pub use view::{Comparison, RunView};
