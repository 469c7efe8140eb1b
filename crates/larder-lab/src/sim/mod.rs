//! The simulator: traces in, hit ratios out.
//!
//! A trace of any format becomes [`Record`]s.

mod record;

pub use record::{Kind, MOST_FILES, MOST_PAGES, Record, block_of};
