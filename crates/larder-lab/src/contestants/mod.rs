//! The implementations that are measured against each other, and what they time themselves with.

pub mod block_cache;
pub mod getpid;
pub mod heaps;
pub mod ids;
pub mod kernel_ids;
pub mod mapping;
pub mod parrot;
pub mod supply;
pub mod timing;
