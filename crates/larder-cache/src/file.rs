//! A file that is open.

use std::ops::Range;
use std::sync::{Arc, PoisonError, atomic::AtomicU64 as Tokens};

use super::cache::{PATIENCE, Shared};
use super::error::CacheError;
use super::frames::Claimed;
use super::inner::Inner;
use super::key::{FileId, Key, MOST_INDEX};
use super::opened::Opening;
use super::stats::FileStats;
use super::sync::{AtomicU64, Ordering};
use super::write_back::Passing;
use larder_policy::Frame;

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
    id: FileId,
    number: u32,
    /// When it got its number.
    born: u64,
    /// This opener's own, in the whole process: what a handle knows it by.
    token: u64,
    /// Failures of the file that this opener knows of.
    seen: AtomicU64,
}

/// 0 is no opener's.
static TOKENS: Tokens = Tokens::new(1);

impl Clone for CachedFile {
    fn clone(&self) -> Self {
        self.shared.inner().open_again(self.number);
        let seen = self.seen.load(Ordering::Relaxed);
        let opening = Opening {
            number: self.number,
            born: self.born,
            failures: seen,
        };
        Self::new(Arc::clone(&self.shared), self.id, opening)
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        self.shared.inner().close(self.number);
    }
}

impl CachedFile {
    /// For an opener that was counted already.
    pub(super) fn new(shared: Arc<Shared>, id: FileId, opening: Opening) -> Self {
        Self {
            shared,
            id,
            number: opening.number,
            born: opening.born,
            token: TOKENS.fetch_add(1, Ordering::Relaxed),
            seen: AtomicU64::new(opening.failures),
        }
    }

    #[inline(always)]
    pub(super) fn token(&self) -> u64 {
        self.token
    }

    pub(super) fn born(&self) -> u64 {
        self.born
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn number(&self) -> u32 {
        self.number
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
        self.id
    }

    /// Writes the file's dirty blocks and syncs the storage. When it returns without an error, all that was written to
    /// the file before is safe. A block that could not be written stays dirty, and the next call tries it again. It
    /// waits for blocks that another thread is changing: a thread that holds one of the file's
    /// [`BlockMut`](super::BlockMut) waits for itself.
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
            Some(failure) if before != opened.failures => Err(failure),
            _ => Ok(()),
        }
    }

    /// Says how long the file is: what lies behind is not written back, and reads as zeroes from now on. Taking a block to
    /// be changed makes the file as long as this block again, so that nothing written is lost: say the end after writing, and
    /// let the storage end there too. Unless it is said, files end with their blocks.
    ///
    /// It waits for the holder of the last block, and of any block that was inside and is behind now: a thread that
    /// holds one of them waits for itself. Looks up as many blocks as the file loses, or looks at each frame once if
    /// that is less: so it is the first time.
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
        let shared = &*self.shared;
        let size = shared.block_size() as u64;
        let mut held: Option<(Key, Claimed<'_>, Passing<'_>)> = None;
        loop {
            // It does not wait for the cache's lock with a block in hand that was not looked at under it, nor for two blocks.
            let mut inner = shared.inner();
            let before = inner.files[self.number as usize].end;
            // Behind its end it has nothing but zeroes already.
            let cut = self.resident(&(bytes / size..before.div_ceil(size)));
            if cut.len() > 1 {
                // One barrier for all of them.
                inner.stir(shared);
            }
            let mut busy = None;
            for (key, frame) in cut {
                let mine = held.as_mut().filter(|(had, ..)| *had == key);
                let mut other = None;
                let page = match mine {
                    Some((_, page, _)) => page,
                    None => match shared.frames.try_claim(frame) {
                        Some(page) => other.insert(page),
                        None => {
                            busy = Some((key, frame));
                            break;
                        }
                    },
                };
                let within = bytes.saturating_sub(key.index() * size);
                page[within as usize..].fill(0);
                // The next change makes the file longer again.
                shared.changed.take(frame);
            }
            let Some((key, frame)) = busy else {
                let first = bytes.div_ceil(size);
                if first <= MOST_INDEX {
                    inner.unsynced.cut_left(Key::new(self.number, first));
                }
                let opened = &mut inner.files[self.number as usize];
                opened.end = bytes;
                if bytes == 0 {
                    opened.left_unsynced = None;
                }
                return;
            };
            drop(inner);
            drop(held.take());
            let page = shared.frames.claim(frame, key);
            held = page.map(|page| (key, page, Passing::new(shared)));
        }
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
        self.forget(blocks, |_| {})
    }

    /// All of them or, if a guard holds one, none. With `then` under the same lock, before the first is forgotten.
    fn forget(&self, blocks: Range<u64>, then: impl FnOnce(&mut Inner)) -> Result<(), CacheError> {
        let shared = &*self.shared;
        let mut inner = shared.inner();
        let mut patience = PATIENCE;
        loop {
            let here = self.resident(&blocks);
            // One barrier for all of them.
            inner.stir(shared);
            let mut claimed = Vec::with_capacity(here.len());
            let busy = here.into_iter().find(|&(_, frame)| {
                let page = shared.frames.try_claim(frame);
                let busy = page.is_none();
                claimed.extend(page.map(|page| (frame, page)));
                busy
            });
            match busy {
                None => {
                    then(&mut inner);
                    for (frame, page) in claimed {
                        shared.changed.take(frame);
                        inner.forget(shared, frame, true);
                        drop(page);
                    }
                    return Ok(());
                }
                Some((_, frame)) if inner.moving.has(frame) => {
                    drop(claimed);
                    shared.wait_for_load(inner);
                    inner = shared.inner();
                }
                Some((key, _)) => {
                    drop(claimed);
                    if !shared.passes(&mut patience) {
                        return Err(CacheError::Held {
                            file: self.id,
                            index: key.index(),
                        });
                    }
                    inner = shared.give_way(inner);
                }
            }
        }
    }

    /// The blocks of a range that are in memory, in order. Under the cache's lock.
    fn resident(&self, blocks: &Range<u64>) -> Vec<(Key, Frame)> {
        let Shared { table, frames, .. } = &*self.shared;
        let blocks = blocks.start..blocks.end.min(MOST_INDEX + 1);
        if blocks.is_empty() {
            return Vec::new();
        }
        // Few blocks are looked up, of many each frame is asked.
        if blocks.end - blocks.start <= frames.len() as u64 / 8 {
            let keys = blocks.map(|index| Key::new(self.number, index));
            return keys
                .filter_map(|key| table.find(frames, key).map(|frame| (key, frame)))
                .collect();
        }
        let all = (0..frames.len() as Frame).map(|frame| (frames.key(frame), frame));
        let inside = |key: Key| {
            key != Key::NONE && key.file() == self.number && blocks.contains(&key.index())
        };
        let mut here: Vec<(Key, Frame)> = all.filter(|&(key, _)| inside(key)).collect();
        here.sort_unstable();
        here
    }

    /// The file ends at `bytes`: blocks behind it are forgotten, and what lies behind it in its last block is zeroed. The storage
    /// is left as it is; what it has behind the end is not read. A file that has [lost](CacheError::Lost) blocks and is truncated
    /// to 0 begins anew.
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
    /// As [`invalidate`](Self::invalidate): the file is as long as before then. Those of
    /// [`CacheHandle::write`](super::CacheHandle::write) for the last block: the file ends at `bytes` all the same.
    pub fn truncate(&self, bytes: u64) -> Result<(), CacheError> {
        let size = self.shared.block_size() as u64;
        let number = self.number as usize;
        let first = bytes.div_ceil(size).min(MOST_INDEX + 1);
        // Not before all blocks behind the end are in hand: what is written back of them until then is written whole. And nothing that is
        // written later is meant by what is dropped here.
        self.forget(first..u64::MAX, |inner| {
            if first <= MOST_INDEX {
                inner.unsynced.cut(Key::new(self.number, first));
            }
            let opened = &mut inner.files[number];
            opened.end = bytes;
            if bytes == 0 {
                (opened.lost, opened.left_unsynced) = (false, None);
            }
        })?;
        let within = (bytes % size) as usize;
        if within != 0 {
            let mut handle = super::CacheHandle::new(&self.shared);
            let mut last = handle.write(self, bytes / size)?;
            last[within..].fill(0);
            // The next change makes the file longer again.
            self.shared.changed.take(last.frame());
            // To take it made the file longer; what others wrote behind it in the meantime stays.
            let end = &mut self.shared.inner().files[number].end;
            if *end == bytes.next_multiple_of(size) {
                *end = bytes;
            }
        }
        Ok(())
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
        self.shared.inner().file_stats(self.number)
    }
}
