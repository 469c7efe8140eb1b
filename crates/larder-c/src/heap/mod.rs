//! Heaps: memory of any size.

pub(crate) mod bulk;
pub(crate) mod classes;
mod front;
pub(crate) mod heap_stats;
pub(crate) mod limits;
pub(crate) mod one_owner;
