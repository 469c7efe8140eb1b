//! Page buffers from clusters of tunable size (Walfield 2001), with today's suppliers beside them.

mod contestants;
mod parts;
mod workload;

pub use workload::{ALLOCS, PER_TURN, allocations_of};
