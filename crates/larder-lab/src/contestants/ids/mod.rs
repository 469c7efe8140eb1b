//! Sources of identifiers, which hand out numbers that are not taken, one type per file.
//!
//! [`IdSource`] is what a workload of one thread sees, [`shared::SharedIds`] what several threads see. Both are type
//! parameters and never trait objects, so that a pair of three nanoseconds is not measured through a virtual call.

mod bits;
#[cfg(feature = "peers")]
mod blaze;
mod eager;
pub mod heap;
#[cfg(feature = "peers")]
mod hibit;
#[cfg(feature = "peers")]
mod id_pool;
mod live;
mod ordered;
mod ours;
mod pidmap;
mod ring;
mod rng;
#[cfg(feature = "peers")]
mod roaring;
pub mod shared;
#[cfg(feature = "peers")]
mod slab;
#[cfg(feature = "peers")]
mod slotmap;
mod stack;
mod start;
mod tree;

#[cfg(feature = "peers")]
pub use blaze::Blaze;
pub use eager::Eager;
#[cfg(feature = "peers")]
pub use hibit::{Hibit, HibitLevels, Levels};
#[cfg(feature = "peers")]
pub use id_pool::Pool;
pub use live::Live;
pub use ordered::{FreeSet, Ordered, OrderedSet};
pub use ours::Made;
pub use pidmap::Pidmap;
pub use ring::Ring;
pub use rng::Rng;
#[cfg(feature = "peers")]
pub use roaring::{RoaringFree, RoaringTaken};
#[cfg(feature = "peers")]
pub use slab::SlabIds;
#[cfg(feature = "peers")]
pub use slotmap::SlotMapIds;
pub use stack::Stack;
pub use start::Start;
pub use tree::Tree;

/// A source of identifiers of one thread. The lower half of an identifier is its place in `0..count`; the upper half is
/// zero, or a generation.
pub trait IdSource: Sized {
    /// What it is, for a list of contestants.
    const ABOUT: &'static str = "";

    /// A source in the given state.
    ///
    /// # Errors
    /// What it cannot hold, and no memory.
    fn start(start: &Start) -> anyhow::Result<Self>;

    /// An identifier that is not taken; `None` when all are taken.
    fn alloc(&mut self) -> Option<u64>;

    /// Takes an identifier back; `false` when it sees that the identifier was not taken.
    fn free(&mut self, id: u64) -> bool;

    /// Bytes held, by its own account; `None` where the crate does not tell.
    fn bytes(&self) -> Option<usize> {
        None
    }

    /// The identifier of a place that is taken at the start.
    #[must_use]
    fn first(index: u32) -> u64 {
        u64::from(index)
    }

    /// Whether it notices every identifier that is freed twice.
    const CHECKS: bool = true;
}

#[cfg(test)]
mod tests;
