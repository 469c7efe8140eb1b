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

// Three rooms, and what a user holds above them. A room uses only those below it:
//
//     cache, builder > helper, handle, file > io > state > table > key, error, stats, sync, limits
//
// `table` says which block is in which frame, and lets threads in without a lock. `state` is what is known under the cache's lock; it
// makes no call of the storage and waits for no block. `io` has that lock, the storage, and all that waits.
mod builder;
mod cache;
mod error;
mod file;
mod handle;
mod helper;
mod io;
mod key;
mod limits;
#[cfg(all(test, shuttle))]
mod shuttle_tests;
mod state;
mod stats;
mod sync;
mod table;

pub use builder::BlockCacheBuilder;
pub use cache::BlockCache;
pub use error::CacheError;
pub use file::CachedFile;
pub use handle::CacheHandle;
#[cfg(feature = "io-uring")]
pub use io::Uring;
pub use io::{Files, MemoryStorage, Part, Storage};
pub use key::{FileId, TenantId};
pub use state::{Access, AccessKind};
pub use stats::{CacheStats, FileStats};
pub use table::{BlockMut, BlockRef};

#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/block-cache.md")]
    struct BlockCache;
}
