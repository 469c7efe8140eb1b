//! Blocks of files kept in memory, and the rules that choose which one leaves.
//!
//! [`BlockCache`] keeps blocks of files in page buffers. [`policy`] has the replacement rules, in one form that the cache, the
//! simulator and a mount share. [`replay`] drives a rule with a sequence of requests and counts; it is the core of the simulator.
//!
//! ```
//! use larder::cache::{BlockCache, FileId, MemoryStorage};
//!
//! let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).build()?;
//! let file = cache.file(FileId(1))?;
//! let mut handle = cache.handle();                     // a thread's way in
//! handle.write(&file, 0)?[..5].copy_from_slice(b"hello");
//! file.sync()?;                                        // written, and safe
//! assert_eq!(&handle.read(&file, 0)?[..5], b"hello");  // a hit
//! # Ok::<(), larder::cache::CacheError>(())
//! ```

mod blocks;
pub use larder_policy::{self as policy, replay};

pub use blocks::{
    Access, AccessKind, BlockCache, BlockCacheBuilder, BlockMut, BlockRef, CacheError, CacheHandle,
    CacheStats, CachedFile, DirectFiles, FailingStorage, FileId, FileStats, Files, MemoryStorage,
    ReadPart, Storage, StorageCall, TenantId, WritePart,
};
#[cfg(feature = "io-uring")]
pub use blocks::{Descriptors, Uring};
