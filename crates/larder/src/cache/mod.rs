//! Blocks of files kept in memory, and the rules that choose which one leaves.
//!
//! [`BlockCache`] keeps blocks of files in page buffers. [`policy`] has the replacement rules, in one form that the cache, the
//! simulator and a mount share. [`replay`] drives a rule with a sequence of requests and counts; it is the core of the simulator.

mod blocks;
pub mod policy;
pub mod replay;

pub use blocks::{
    Access, AccessKind, BlockCache, BlockCacheBuilder, BlockMut, BlockRef, CacheError, CacheHandle,
    CacheStats, CachedFile, DirectFiles, FailingStorage, FileId, FileStats, Files, MemoryStorage,
    ReadPart, Storage, StorageCall, TenantId, WritePart,
};
#[cfg(feature = "io-uring")]
pub use blocks::{Descriptors, Uring};
