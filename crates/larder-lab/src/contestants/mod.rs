//! The implementations that are compared, and the tools with which they time themselves.

pub mod block_cache;
pub mod getpid;
pub mod heaps;
pub mod ids;
pub mod kernel_ids;
pub mod mapping;
pub mod parrot;
pub mod supply;
pub mod timing;
