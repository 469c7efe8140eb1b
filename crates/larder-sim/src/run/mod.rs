//! Cells: a rule with a size, driven by a trace.

mod cell;
mod opt;
mod opt_heap;
mod parts;
mod rules;
mod sweep;

pub use cell::{Cell, CellError, Tally};
pub use opt::{NextUse, Opt};
pub use opt_heap::OptHeap;
pub(crate) use rules::OPT;
pub use rules::{Choice, choices, knows_the_future, make, names};
pub use sweep::{Job, Outcome, Watch, on_disk, stream, sweep};
