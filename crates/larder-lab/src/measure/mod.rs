//! Rounds, processes and stopping: how samples are taken.

mod between;
pub(crate) mod callgrind;
mod experiment;
mod filter;
mod interrupt;
mod launch;
mod means;
mod options;
mod order;
mod progress;
mod runner;
mod select;
mod stop;
mod usage;
mod view;
mod worker;

pub use between::{Change, Changes, ContestantChange, changes, changes_of};
pub use experiment::{Contestant, Depth, Experiment, Group, Plan, PlanRequest};
pub use filter::{BadFilter, FactorFilter};
pub use interrupt::Interrupt;
pub use launch::{InProcess, LaunchError, Launcher, OwnProcess};
pub use options::Options;
pub use order::permutation;
pub use progress::{Bar, Progress, Silent};
pub use runner::Runner;
pub use select::BadSelection;
pub(crate) use select::no_such;
pub use usage::Usage;
pub use view::{Comparison, RunView, SweepView};
pub(crate) use worker::serve;
pub use worker::work;
