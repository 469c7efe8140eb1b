//! The simulator: traces in, hit ratios out.
//!
//! A [`Trace`] of any [`Format`] becomes [`Record`]s.

mod detect;
mod error;
mod format;
mod input;
mod read;
mod record;
mod sink;
mod source;

pub use error::{Place, TraceError};
pub use format::Format;
pub use input::Meter;
pub use record::{Kind, MOST_FILES, MOST_PAGES, Record, block_of};
pub use source::{BATCH, ReadOptions, Trace};
