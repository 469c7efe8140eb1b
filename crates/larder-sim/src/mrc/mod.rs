//! Miss-ratio curves: the hits of every size at once, exact and from samples.

mod curve;
mod mini;
mod shards;
mod stack;

pub use curve::{Curve, Difference, Knee, difference};
pub use mini::{Sample, sample};
pub use shards::{FixedSize, fixed_rate, fixed_size};
pub use stack::{Stack, lru_curve};
