//! What can go wrong with a cache.

use std::io;
use std::sync::Arc;

use crate::key::FileId;
use larder::pages::PoolError;
use larder_policy::PolicyError;

/// Why a cache could not do what was asked. Its text says what to do about it. Cloning it is cheap: an error of the storage is shared.
///
/// ```
/// use larder_cache::{BlockCache, CacheError, FileId, MemoryStorage};
/// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// let file = cache.file(FileId(1))?;
/// match cache.handle().read(&file, u64::MAX) {
///     Err(CacheError::Index { index, most }) => assert!(index > most),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), CacheError>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The rule could not be had.
    #[error("block cache: {0}")]
    Policy(#[from] PolicyError),
    /// A size that no cache can have.
    #[error(
        "block cache: {bytes} bytes were asked for; it must be 1 block of {block} to {most} bytes"
    )]
    Size {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes of a block.
        block: usize,
        /// Most bytes, as the builder said.
        most: usize,
    },
    /// Tenants would have all blocks for themselves, and the others none.
    #[error(
        "block cache: of {frames} blocks tenants would have {limited} for themselves, and the others none; lower a limit or raise the cache's size"
    )]
    Limits {
        /// Blocks of the cache.
        frames: usize,
        /// The sum of the tenants' limits, in blocks.
        limited: usize,
    },
    /// A share of the cache that is none.
    #[error("block cache: a share of {share} may be dirty; it must be 0 to 1")]
    Share {
        /// The share.
        share: f64,
    },
    /// The cache's pool of pages could not be made.
    #[error("block cache: {0}")]
    Pool(String),
    /// There is no page for a block.
    #[error("block cache: no page for a block: {0}")]
    Pages(#[from] PoolError),
    /// All blocks are held.
    #[error(
        "block cache: all {frames} blocks are held or being read; drop some guards or raise the cache's size"
    )]
    Pinned {
        /// Blocks of the cache.
        frames: usize,
    },
    /// A block that must go is held.
    #[error("block cache: block {index} of file {} is held; drop its guard first", file.0)]
    Held {
        /// The file.
        file: FileId,
        /// The block.
        index: u64,
    },
    /// A block has as many guards for reading as it can have.
    #[error(
        "block cache: block {index} of file {} has {most} guards; drop some first", file.0
    )]
    Guards {
        /// The file.
        file: FileId,
        /// The block.
        index: u64,
        /// Most guards of a block at a time.
        most: u32,
    },
    /// A block that no file can have.
    #[error(
        "block cache: block {index} was asked for; the last one that a file can have is {most}"
    )]
    Index {
        /// The block.
        index: u64,
        /// The last one there can be.
        most: u64,
    },
    /// A file that was opened in another cache.
    #[error("block cache: file {} was opened in another cache; open it in this one", file.0)]
    Foreign {
        /// The file.
        file: FileId,
    },
    /// More files than the cache can number.
    #[error("block cache: {most} files are open already")]
    Files {
        /// Most files.
        most: u32,
    },
    /// The storage could not read.
    #[error("block cache: reading block {index} of file {}: {source}", file.0)]
    Read {
        /// The file.
        file: FileId,
        /// The block.
        index: u64,
        /// What the storage said.
        source: Arc<io::Error>,
    },
    /// The storage could not write; the block stays dirty, and the next sync tries again.
    #[error("block cache: writing block {index} of file {}: {source}", file.0)]
    Write {
        /// The file.
        file: FileId,
        /// The block.
        index: u64,
        /// What the storage said.
        source: Arc<io::Error>,
    },
    /// The storage could not make safe what was written.
    #[error("block cache: syncing file {}: {source}", file.0)]
    Sync {
        /// The file.
        file: FileId,
        /// What the storage said.
        source: Arc<io::Error>,
    },
    /// The storage failed to sync blocks that had been written and had left since: they cannot be written again.
    #[error(
        "block cache: file {} has lost blocks: the storage failed to sync them after they had left; truncate it to 0 and write it anew", file.0
    )]
    Lost {
        /// The file.
        file: FileId,
    },
    /// There is no memory for the cache's own tables.
    #[error("block cache: no memory for tables of {frames} blocks")]
    Memory {
        /// Blocks asked for.
        frames: usize,
    },
}
