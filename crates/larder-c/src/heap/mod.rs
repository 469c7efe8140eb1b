//! Heaps: memory of any size.

pub(crate) mod classes;
mod front;
pub(crate) mod one_owner;
