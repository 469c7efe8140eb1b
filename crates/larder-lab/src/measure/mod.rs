//! Rounds, processes and stopping: how samples are taken.

mod experiment;

pub use experiment::{Contestant, Depth, Experiment, Group, Plan, PlanRequest};
