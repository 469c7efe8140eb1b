//! What a recorder gets: the uses of blocks, in the order in which the rule learns of them.

use crate::key::FileId;
use larder_policy::{Block, Reason};

/// A use of a block, or what else becomes of it, as [`BlockCache::record`](crate::BlockCache::record) reports it.
///
/// ```
/// # use larder_cache::{BlockCache, FileId, MemoryStorage};
/// # use std::sync::{Arc, Mutex};
/// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// let all = Arc::new(Mutex::new(Vec::new()));
/// let log = Arc::clone(&all);
/// cache.record(Some(Box::new(move |access| log.lock().unwrap().push(access))));
/// let file = cache.file(FileId(1))?;
/// let mut handle = cache.handle();
/// handle.read(&file, 7)?;
/// handle.read(&file, 7)?;
/// drop(handle);
/// let hits: Vec<bool> = all.lock().unwrap().iter().map(|access| access.hit).collect();
/// assert_eq!(hits, [false, true]);
/// # Ok::<(), larder_cache::CacheError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The file.
    pub file: FileId,
    /// Index of the block in it.
    pub index: u64,
    /// The identity by which the rule knows the block.
    pub block: Block,
    /// The request that it belongs to.
    pub request: u32,
    /// What was done with it.
    pub kind: AccessKind,
    /// It was in memory.
    pub hit: bool,
}

/// What is done with a block, in the words of `larder sim`.
///
/// ```
/// use larder_cache::AccessKind;
/// assert_eq!(AccessKind::Readahead.name(), "readahead");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// It is used, and read if it is not in memory. So are all hits.
    Read,
    /// It is written whole, and was not in memory.
    Write,
    /// It is read ahead; that is no use.
    Readahead,
    /// It is forgotten: invalidated, truncated, or it came and could not be read or kept. No use either.
    Remove,
}

impl AccessKind {
    /// Its name in a trace.
    ///
    /// ```
    /// assert_eq!(larder_cache::AccessKind::Write.name(), "write");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Readahead => "readahead",
            Self::Remove => "remove",
        }
    }
}

impl From<Reason> for AccessKind {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Demand => Self::Read,
            Reason::Write => Self::Write,
            Reason::Readahead => Self::Readahead,
        }
    }
}

/// What is called for every use.
pub(crate) type Recorder = Box<dyn FnMut(Access) + Send>;
