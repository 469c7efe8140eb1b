//! A file that somebody has opened.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use super::cache::Shared;
use super::error::CacheError;
use super::key::{FileId, Key, MOST_INDEX};
use super::stats::FileStats;

/// An opened file of a cache. Opening it again, or cloning this, gives another opener, who is told of failed writes by himself.
///
/// ```
/// # use larder::cache::{BlockCache, FileId, MemoryStorage};
/// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// let file = cache.file(FileId(5))?;
/// cache.handle().overwrite(&file, 0)?.fill(1);
/// assert_eq!(cache.stats().dirty, 1);
/// file.sync()?;
/// assert_eq!(cache.stats().dirty, 0);
/// # Ok::<(), larder::cache::CacheError>(())
/// ```
pub struct CachedFile {
    shared: Arc<Shared>,
    id: FileId,
    number: u32,
    /// Failures of the file that this opener knows of.
    seen: AtomicU64,
}

impl Clone for CachedFile {
    fn clone(&self) -> Self {
        let seen = self.seen.load(Ordering::Relaxed);
        Self::new(Arc::clone(&self.shared), self.id, self.number, seen)
    }
}

impl CachedFile {
    pub(super) fn new(shared: Arc<Shared>, id: FileId, number: u32, seen: u64) -> Self {
        Self {
            shared,
            id,
            number,
            seen: AtomicU64::new(seen),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The file, as the storage knows it.
    ///
    /// ```
    /// # use larder::cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// assert_eq!(cache.file(FileId(5))?.id(), FileId(5));
    /// # Ok::<(), larder::cache::CacheError>(())
    /// ```
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Writes the file's dirty blocks and syncs the storage. When it returns without an error, all that was written to the file
    /// before is safe. A block that could not be written stays dirty, and the next call tries it again. It waits for blocks
    /// that somebody is changing: a thread that holds one of the file's [`BlockMut`](super::BlockMut) waits for itself.
    ///
    /// # Errors
    /// [`CacheError::Write`] and [`CacheError::Sync`]: also for a write that failed earlier, when room was made; each opener
    /// is told of it once.
    pub fn sync(&self) -> Result<(), CacheError> {
        let syncing = Arc::clone(&self.shared.inner().files[self.number as usize].syncing);
        let _one_at_a_time = syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.shared.write_back(Some(self.number));
        self.shared.sync(self.number, self.id);
        let inner = self.shared.inner();
        let opened = &inner.files[self.number as usize];
        let before = self.seen.swap(opened.failures, Ordering::Relaxed);
        written?;
        if opened.lost {
            return Err(CacheError::Lost { file: self.id });
        }
        match opened.failure.clone() {
            Some(source) if before != opened.failures => Err(CacheError::Sync {
                file: self.id,
                source,
            }),
            _ => Ok(()),
        }
    }

    /// Says how long the file is: what lies behind in its last block is not written back, and reads as zeroes. Taking a block to
    /// be changed makes the file as long as this block again, so that nothing written is lost: say the end after writing, and
    /// let the storage end there too. Unless it is said, files end with their blocks.
    ///
    /// ```
    /// # use larder::cache::{BlockCache, FileId, Files};
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
        self.shared.inner().files[self.number as usize].end = bytes;
    }

    /// Forgets blocks of the file, dirty or not, without writing them: what lies under the cache has changed.
    ///
    /// ```
    /// # use larder::cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(5))?;
    /// cache.handle().overwrite(&file, 8)?.fill(1);
    /// file.invalidate(8..9)?;
    /// assert_eq!(cache.handle().read(&file, 8)?[0], 0);
    /// # Ok::<(), larder::cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Held`] at the first block that somebody holds; those before it are forgotten.
    pub fn invalidate(&self, blocks: Range<u64>) -> Result<(), CacheError> {
        let mut inner = self.shared.inner();
        let last = blocks.end.min(MOST_INDEX + 1);
        let first = Key::new(self.number, blocks.start.min(MOST_INDEX));
        let inside = |key: Key| {
            key != Key::NONE
                && key.file() == self.number
                && (first.index()..last).contains(&key.index())
        };
        let frames = 0..self.shared.frames.len() as u32;
        let mut here: Vec<(Key, u32)> = frames
            .map(|frame| (self.shared.frames.key(frame), frame))
            .filter(|&(key, _)| inside(key))
            .collect();
        here.sort_unstable();
        for (key, frame) in here {
            let Some(page) = self.shared.frames.try_claim(frame) else {
                return Err(CacheError::Held {
                    file: self.id,
                    index: key.index(),
                });
            };
            inner.forget(&self.shared, frame);
            drop(page);
        }
        Ok(())
    }

    /// The file ends at `bytes`: blocks behind it are forgotten, and what lies behind it in its last block is zeroed. The storage
    /// is left as it is; what it has behind the end is not read. A file that has [lost](CacheError::Lost) blocks and is truncated
    /// to 0 begins anew.
    ///
    /// # Errors
    /// As [`invalidate`](Self::invalidate), and those of [`CacheHandle::write`](super::CacheHandle::write) for the last block.
    pub fn truncate(&self, bytes: u64) -> Result<(), CacheError> {
        let size = self.shared.block_size() as u64;
        self.invalidate(bytes.div_ceil(size)..u64::MAX)?;
        self.set_end(bytes);
        if bytes == 0 {
            let mut inner = self.shared.inner();
            let opened = &mut inner.files[self.number as usize];
            (opened.lost, opened.left_unsynced) = (false, false);
        }
        let within = (bytes % size) as usize;
        if within != 0 {
            let mut handle = super::CacheHandle::new(&self.shared);
            handle.write(self, bytes / size)?[within..].fill(0);
            self.set_end(bytes);
        }
        Ok(())
    }

    /// Hits and misses of this file, by all its openers.
    ///
    /// ```
    /// # use larder::cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(5))?;
    /// cache.handle().read(&file, 0)?;
    /// assert_eq!(file.stats().misses, 1);
    /// # Ok::<(), larder::cache::CacheError>(())
    /// ```
    pub fn stats(&self) -> FileStats {
        self.shared.inner().files[self.number as usize].stats
    }
}
