//! The simulator: traces in, hit ratios out.
//!
//! A [`Trace`] of any [`Format`] becomes [`Record`]s. [`Loaded`] has them in memory, by dense numbers of blocks. [`sweep`] replays
//! them under replacement rules of [`larder_policy`] and sizes, each a [`Job`], and returns an [`Outcome`] for each; OPT is one of
//! the [`choices`]. [`lru_curve`] and [`sample`] make miss-ratio curves, [`write_part`] and [`Merger`] sweep in parts, and
//! [`workload`] makes synthetic traces, and [`machine`] models the disk behind a cache.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod detect;
mod error;
mod format;
mod input;
mod intern;
mod load;
pub mod machine;
mod merge;
mod mrc;
mod options;
mod originals;
mod parser;
mod part;
mod read;
mod record;
mod row;
mod run;
mod sink;
mod size;
mod source;
mod spill;
pub mod workload;
mod write;

pub use error::{Place, SimError};
pub use format::Format;
pub use input::Meter;
pub use intern::Interner;
pub use load::{Chunk, Counts, Loaded, Loader, room};
pub use merge::{MOST_PART_BYTES, Merger};
pub use mrc::{
    Curve, Difference, FixedSize, Knee, Sample, Stack, difference, fixed_rate, fixed_size,
    lru_curve, sample,
};
pub use options::ReadOptions;
pub use originals::Originals;
pub use part::{Header, Line, Plan, PlannedCell, write_part};
pub use record::{Kind, Record, block_of};
pub use row::{Answer, DEFAULT, Placed, Row, answers, place, standing};
pub use run::{
    Cell, CellError, Choice, Job, NextUse, Opt, OptHeap, Outcome, Tally, Watch, choices,
    knows_the_future, make, names, on_disk, stream, sweep,
};
pub use size::Size;
pub use source::Trace;
pub use spill::SpillTo;
pub use write::{Encoder, Lost, Output, WRITABLE};
