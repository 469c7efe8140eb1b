//! A block cache: blocks of files kept in memory, under a replacement rule.
//!
//! [`BlockCache`] keeps blocks of files in page buffers of [`larder`]. Each block is read once for all threads, a hit takes no lock,
//! and dirty blocks are written back in order. A [rule](larder_policy) chooses which block leaves when another one comes; what lies
//! below is a [`Storage`]: files of the system, memory, or a type of your own.
//!
//! ```
//! use larder_cache::{BlockCache, FileId, MemoryStorage};
//!
//! let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).build()?;
//! let file = cache.file(FileId(1))?;
//! let mut handle = cache.handle();                     // a thread's way in
//! handle.write(&file, 0)?[..5].copy_from_slice(b"hello");
//! file.sync()?;                                        // written, and safe
//! assert_eq!(&handle.read(&file, 0)?[..5], b"hello");  // a hit
//! # Ok::<(), larder_cache::CacheError>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ahead;
mod batch;
mod builder;
mod cache;
mod changed;
mod check;
mod direct;
mod epochs;
mod error;
mod failing;
mod file;
mod files;
mod frames;
mod free;
mod guard;
mod handle;
mod inner;
mod key;
mod latch;
mod lists;
mod load;
#[cfg(all(test, loom))]
mod loom_tests;
mod memory;
mod narrow;
mod now;
mod numbered;
mod opened;
mod pins;
mod round;
mod rule;
mod shadows;
#[cfg(all(test, shuttle))]
mod shuttle_tests;
mod stats;
mod storage;
mod stream;
mod sync;
mod table;
mod unsynced;
#[cfg(feature = "io-uring")]
mod uring;
mod victims;
mod write_back;

pub use batch::{ReadPart, WritePart};
pub use builder::BlockCacheBuilder;
pub use cache::BlockCache;
pub use direct::DirectFiles;
pub use error::CacheError;
pub use failing::{FailingStorage, StorageCall};
pub use file::CachedFile;
pub use files::Files;
pub use frames::BlockRef;
pub use guard::BlockMut;
pub use handle::CacheHandle;
pub use inner::{Access, AccessKind};
pub use key::{FileId, TenantId};
pub use memory::MemoryStorage;
pub use stats::{CacheStats, FileStats};
pub use storage::Storage;
#[cfg(feature = "io-uring")]
pub use uring::{Descriptors, Uring};

#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/block-cache.md")]
    struct BlockCache;
}
