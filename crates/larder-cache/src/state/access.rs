//! What a recorder gets: the uses of blocks, and what else the rule is told of or asks for, in the order in which that happens.

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
    /// It was used, and in memory.
    pub hit: bool,
}

/// What is done with a block, or becomes of it, in the words of `larder sim`.
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
    /// It was changed, and was clean: it stays until it is written. No use.
    Dirty,
    /// It was written. No use.
    Clean,
    /// A thread held it, or it was being read, when the rule looked for room for the next block that comes: it could not leave. No use.
    Held,
    /// [Time](crate::BlockCache::maintain) passed for the rule. This is about no block: file, index and block are 0.
    Tick,
}

impl AccessKind {
    /// It says how a block is, or that time passed, and not what was done with it.
    ///
    /// ```
    /// use larder_cache::AccessKind;
    /// assert!(AccessKind::Dirty.is_state() && !AccessKind::Remove.is_state());
    /// ```
    pub fn is_state(self) -> bool {
        self as u8 >= Self::Dirty as u8
    }

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
            Self::Dirty => "dirty",
            Self::Clean => "clean",
            Self::Held => "held",
            Self::Tick => "tick",
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
