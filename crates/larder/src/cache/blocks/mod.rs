//! Blocks of files in page buffers.

mod ahead;
mod builder;
mod cache;
mod error;
mod file;
mod frames;
mod free;
mod guard;
mod handle;
mod inner;
mod key;
mod latch;
mod load;
#[cfg(all(test, loom))]
mod loom_tests;
mod rule;
mod shadows;
mod stats;
mod storage;
mod stream;
mod table;
mod write_back;

pub use builder::BlockCacheBuilder;
pub use cache::BlockCache;
pub use error::CacheError;
pub use file::CachedFile;
pub use frames::BlockRef;
pub use guard::BlockMut;
pub use handle::CacheHandle;
pub use inner::Access;
pub use key::FileId;
pub use stats::{CacheStats, FileStats};
pub use storage::{Files, MemoryStorage, Storage};
