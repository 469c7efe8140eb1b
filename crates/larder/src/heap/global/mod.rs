//! The heap of the whole program: what stands behind [`Larder`] and the malloc that can be preloaded.
//!
//! Each thread has a [`Heap`](super::Heap) of its own that a thread-local word points to; its fast path is that of a
//! heap plus the load of the word. Threads that have none (not yet, no more, or by the [mode](HeapMode)) use the CPUs'
//! stocks. What the making of the family itself allocates comes from a small static buffer (`bootstrap`), so an allocation
//! may come at any time: before `main`, while the family is being made, at a thread's end.
//!
//! All functions follow malloc's contract: null for no memory, never a panic and never an abort for want of memory.

mod bootstrap;
mod checked;
mod countdown;
#[cfg(feature = "debug-heap")]
mod debugged;
mod fault;
mod front;
mod guarded;
mod hardened;
mod larder;
pub(crate) mod marked;
mod misuse;
mod mode;
mod profiled;
mod reaper;
mod retention;
mod slot;
mod state;
mod stats;

pub use front::{make, ready_stacks};
pub use larder::Larder;
pub use mode::HeapMode;
pub use profiled::write_profile;
pub use reaper::reaper_interval;
pub use retention::{cache_bytes, decay_time};
pub use stats::{ClassStats, GlobalStats};
