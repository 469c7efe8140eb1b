//! A file that is open.

use std::ops::Range;
use std::sync::{Arc, atomic::AtomicU64 as Tokens};

use crate::error::CacheError;
use crate::io::Shared;
use crate::key::FileId;
use crate::state::Opening;
use crate::stats::FileStats;
use crate::sync::{AtomicU64, Ordering};

/// An opened file of a cache. Opening it again, or cloning this, gives another opener. Each opener reports failed
/// writes separately.
///
/// ```
/// # use larder_cache::{BlockCache, FileId, MemoryStorage};
/// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// let file = cache.file(FileId(5))?;
/// cache.handle().overwrite(&file, 0)?.fill(1);
/// assert_eq!(cache.stats().dirty, 1);
/// file.sync()?;
/// assert_eq!(cache.stats().dirty, 0);
/// # Ok::<(), larder_cache::CacheError>(())
/// ```
pub struct CachedFile {
    shared: Arc<Shared>,
    opening: Opening,
    /// This opener's own, in the whole process: what a handle knows it by.
    token: u64,
    /// Failures of the file that this opener knows of.
    seen: AtomicU64,
}

/// 0 is no opener's.
static TOKENS: Tokens = Tokens::new(1);

impl Clone for CachedFile {
    fn clone(&self) -> Self {
        self.shared.state().open_again(self.number());
        let mut opening = self.opening.clone();
        opening.failures = self.seen.load(Ordering::Relaxed);
        Self::new(Arc::clone(&self.shared), opening)
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        self.shared.state().close(self.number());
    }
}

impl CachedFile {
    /// For an opener that was counted already.
    pub(crate) fn new(shared: Arc<Shared>, opening: Opening) -> Self {
        Self {
            shared,
            token: TOKENS.fetch_add(1, Ordering::Relaxed),
            seen: AtomicU64::new(opening.failures),
            opening,
        }
    }

    #[inline(always)]
    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    pub(crate) fn born(&self) -> u64 {
        self.opening.born
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn number(&self) -> u32 {
        self.opening.number
    }

    /// The file, as the storage knows it.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// assert_eq!(cache.file(FileId(5))?.id(), FileId(5));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn id(&self) -> FileId {
        self.opening.id
    }

    /// Writes the file's dirty blocks and syncs the storage. When it returns without an error, all that was written to
    /// the file before is safe. A block that could not be written stays dirty, and the next call tries it again. It
    /// waits for blocks that another thread is changing: a thread that holds one of the file's
    /// [`BlockMut`](crate::BlockMut) waits for itself. What other threads append meanwhile it leaves to the next call.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(1))?;
    /// cache.handle().overwrite(&file, 0)?.fill(7);
    /// file.sync()?;
    /// assert_eq!((cache.stats().dirty, cache.stats().written), (0, 1));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Write`] and [`CacheError::Sync`]: also for a write that failed earlier, when room was made; each
    /// opener reports it once, the latest if there were several. [`CacheError::Lost`], until the file is truncated to 0.
    pub fn sync(&self) -> Result<(), CacheError> {
        self.shared.sync(self.number(), self.id(), &self.seen)
    }

    /// Writes the file's dirty blocks, and does not sync the storage: after a crash of this program they are there, after a
    /// power cut perhaps. Waits as [`sync`](Self::sync) does.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let (file, other) = (cache.file(FileId(1))?, cache.file(FileId(2))?);
    /// cache.handle().overwrite(&file, 0)?.fill(7);
    /// cache.handle().overwrite(&other, 0)?.fill(7);
    /// file.write_back()?;
    /// assert_eq!((file.stats().dirty, other.stats().dirty), (0, 1));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Write`], the first there was; the other blocks are written all the same, but those behind it with which
    /// the storage's file would grow. The next [`sync`](Self::sync) of each opener reports it too.
    pub fn write_back(&self) -> Result<(), CacheError> {
        self.shared.write_back(Some(self.number()))
    }

    /// Where the file ends, in bytes; `None` as long as that was not said, by [`open_at`](crate::BlockCache::open_at),
    /// [`set_end`](Self::set_end) or [`truncate`](Self::truncate).
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let (file, other) = (cache.open_at(FileId(1), 10)?, cache.file(FileId(2))?);
    /// assert_eq!((file.end(), other.end()), (Some(10), None));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn end(&self) -> Option<u64> {
        let end = self.shared.state().file(self.number()).end();
        (end != u64::MAX).then_some(end)
    }

    /// Says how long the file is: what lies behind is not written back, and reads as zeroes from now on. Taking a block to
    /// be changed makes the file as long as this block again, so that nothing written is lost: say the end after writing, and
    /// let the storage end there too. Unless it is said, files end with their blocks.
    ///
    /// It waits for the holder of the last block, and of any block that was inside and is behind now: a thread that
    /// holds one of them waits for itself. Until it returns, other threads may find zeroes behind the end already and have
    /// them written; [`truncate`](Self::truncate) says the end and cuts in one step. Looks up as many blocks as the file loses, or looks
    /// at each block that the file has in memory if these are fewer.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, Files};
    /// # let path = std::env::temp_dir().join(format!("larder-end-{}", std::process::id()));
    /// let files = Files::default();
    /// files.add(FileId(5), std::fs::File::create_new(&path)?);
    /// let cache = BlockCache::builder(files).build()?;
    /// let file = cache.file(FileId(5))?;
    /// cache.handle().overwrite(&file, 0)?.fill(1);
    /// file.set_end(10);
    /// file.sync()?;
    /// assert_eq!(std::fs::read(&path)?, [1; 10]);
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_end(&self, bytes: u64) {
        self.shared.set_end(self.number(), bytes);
    }

    /// Forgets blocks of the file, dirty or not, without writing them: what lies under the cache has changed. Waits for those that
    /// the cache is reading or writing just now.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(5))?;
    /// cache.handle().overwrite(&file, 8)?.fill(1);
    /// file.invalidate(8..9)?;
    /// assert_eq!(cache.handle().read(&file, 8)?[0], 0);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Held`] names the first block of which there is a guard; none is forgotten then.
    pub fn invalidate(&self, blocks: Range<u64>) -> Result<(), CacheError> {
        self.shared.forget(self.number(), self.id(), blocks)
    }

    /// The file ends at `bytes`: blocks behind it are forgotten, and what lies behind it in its last block is zeroed, in one step: what
    /// another thread writes when it knows the new end stays. A file that has [lost](CacheError::Lost) blocks and is truncated to 0
    /// begins anew.
    ///
    /// The storage is left as it is, and what it has behind the end is not read. Let the storage end there too before the file becomes
    /// longer again: blocks that the storage still has would be in the file again.
    ///
    /// It waits for threads that hold the block in which the file is to end, so a thread that holds that one waits for itself; and reads
    /// this block if it is not in memory. Looks up as many blocks as [`set_end`](Self::set_end) does.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(5))?;
    /// let mut handle = cache.handle();
    /// for index in 0..3 {
    ///     handle.overwrite(&file, index)?.fill(1);
    /// }
    /// file.truncate(10)?;
    /// assert_eq!(cache.stats().resident, 1);
    /// assert_eq!(handle.read(&file, 0)?[9..11], [1, 0]);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`invalidate`](Self::invalidate), for blocks behind the end, and those of
    /// [`CacheHandle::write`](crate::CacheHandle::write) for the last block: the file is as long as before then.
    pub fn truncate(&self, bytes: u64) -> Result<(), CacheError> {
        self.shared.truncate(&self.opening, bytes)
    }

    /// Forgets all of the file, which no longer exists: nothing of it is written, and no sync misses it. Waits for threads
    /// that read, change or write a block of it, so a thread that holds one waits for itself. Dirty blocks that it
    /// forgets are counted in [`FileStats::discarded`].
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(5))?;
    /// cache.handle().overwrite(&file, 8)?.fill(1);
    /// file.discard();
    /// let stats = cache.stats();
    /// assert_eq!((stats.resident, stats.written, stats.discarded), (0, 0, 1));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn discard(&self) {
        self.shared.discard(self.number());
    }

    /// What this file has counted, by all its openers.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(5))?;
    /// cache.handle().read(&file, 0)?;
    /// assert_eq!(file.stats().misses, 1);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn stats(&self) -> FileStats {
        self.shared.state().file_stats(self.number())
    }
}
