//! Blocks of files kept in memory: the block cache of `larder`.

pub use larder::cache::{
    Access, AccessKind, BlockCache, BlockCacheBuilder, BlockMut, BlockRef, CacheError, CacheHandle,
    CacheStats, CachedFile, DirectFiles, FailingStorage, FileId, FileStats, Files, MemoryStorage,
    ReadPart, Storage, StorageCall, TenantId, WritePart,
};
#[cfg(feature = "io-uring")]
pub use larder::cache::{Descriptors, Uring};
