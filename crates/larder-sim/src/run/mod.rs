//! Cells: a rule with a size, driven by a trace.

mod cell;
mod opt;
mod opt_heap;
mod rules;
mod sweep;

pub use cell::{Cell, Tally};
pub use opt::{NextUse, Opt};
pub use opt_heap::OptHeap;
pub use rules::{Choice, choices, make, names};
pub(crate) use rules::{OPT, OPT_HEAP};
pub use sweep::{Job, Outcome, Watch, stream, sweep};
