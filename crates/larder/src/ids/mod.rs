//! Identifiers: numbers of a range, each of which is allocated to one owner at a time.

mod error;
mod map;
mod owned;
mod range;
pub mod rule;
mod space;

pub use error::IdError;
pub use owned::{Allocated, Ids, Runs};
pub use range::IdRange;
pub use rule::Rule;
pub use space::{Crossing, IdSpace, Shape, SharedRule, SpaceConfig, SpaceIter, SpaceStats};
