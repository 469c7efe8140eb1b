//! Blocks of files in page buffers.

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
