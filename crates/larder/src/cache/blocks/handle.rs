//! A thread's way into the cache.

use std::sync::{PoisonError, TryLockError};

use super::cache::Shared;
use super::error::CacheError;
use super::file::CachedFile;
use super::guard::{BlockMut, BlockRef};
use super::inner::Claimed;
use super::key::{Key, MOST_INDEX};
use super::stream::Streams;
use crate::cache::policy::{Frame, Reason};

/// Uses that are reported to the rule at once.
const BATCH: usize = 64;

/// A use that was not reported yet.
#[derive(Debug, Clone, Copy)]
struct Use {
    frame: Frame,
    request: u32,
    key: Key,
}

/// Reads and writes blocks for one thread. It keeps the uses that found their block, and reports them to the rule by 64, before a
/// miss and when it is dropped, so that a hit does not touch what threads share.
///
/// ```
/// # use larder::cache::{BlockCache, FileId, MemoryStorage};
/// let cache = BlockCache::builder(MemoryStorage::default()).read_ahead(0).build()?;
/// let file = cache.file(FileId(1))?;
/// std::thread::scope(|threads| {
///     for _ in 0..2 {
///         threads.spawn(|| {
///             let mut handle = cache.handle();
///             (0..100).all(|index| handle.read(&file, index).is_ok())
///         });
///     }
/// });
/// assert_eq!(cache.stats().misses, 100);
/// assert_eq!(cache.stats().hits, 100);
/// # Ok::<(), larder::cache::CacheError>(())
/// ```
pub struct CacheHandle<'c> {
    shared: &'c Shared,
    uses: Vec<Use>,
    streams: Streams,
    request: u32,
    /// Uses belong to the same request until somebody says otherwise.
    joined: bool,
}

impl<'c> CacheHandle<'c> {
    pub(super) fn new(shared: &'c Shared) -> Self {
        Self {
            shared,
            uses: Vec::with_capacity(BATCH),
            streams: Streams::new(),
            request: 0,
            joined: false,
        }
    }

    /// All uses within `work` belong to one request, as the blocks of one `read` call do: rules that care take several uses of a
    /// block by one request for one.
    ///
    /// ```
    /// # use larder::cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// # let file = cache.file(FileId(1))?;
    /// let mut handle = cache.handle();
    /// let sum = handle.request(|handle| {
    ///     let first = handle.read(&file, 0)?[4095];
    ///     Ok::<_, larder::cache::CacheError>(first + handle.read(&file, 1)?[0])
    /// })?;
    /// assert_eq!(sum, 0);
    /// # Ok::<(), larder::cache::CacheError>(())
    /// ```
    pub fn request<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.request = self.request.wrapping_add(1);
        let before = core::mem::replace(&mut self.joined, true);
        let out = work(self);
        self.joined = before;
        out
    }

    /// A block to be read; read from the storage if it is not in memory. If another thread is reading it, this one waits; so it
    /// does while another one changes the block. A thread must not ask for a block that it holds already: it may wait for itself.
    ///
    /// # Errors
    /// [`CacheError`]: an index that no file has, all blocks held, the storage or the pool failed.
    pub fn read(&mut self, file: &CachedFile, index: u64) -> Result<BlockRef<'c>, CacheError> {
        let key = self.key(file, index)?;
        loop {
            if let Some(frame) = self.shared.table.find(key)
                && let Some(block) = self.held(frame, key)
            {
                self.used(frame, key);
                return Ok(block);
            }
            self.report();
            if let Some((_, page)) = self.load(file, key, Reason::Demand)? {
                return Ok(BlockRef::new(Claimed::downgrade(page)));
            }
        }
    }

    /// A block to be changed: read from the storage if it is not in memory.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(&mut self, file: &CachedFile, index: u64) -> Result<BlockMut<'c>, CacheError> {
        self.change(file, index, Reason::Demand)
    }

    /// A block to be written from front to end: not read from the storage. It holds zeroes if it was not in memory, else what it
    /// held.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn overwrite(&mut self, file: &CachedFile, index: u64) -> Result<BlockMut<'c>, CacheError> {
        self.change(file, index, Reason::Write)
    }

    fn change(
        &mut self,
        file: &CachedFile,
        index: u64,
        reason: Reason,
    ) -> Result<BlockMut<'c>, CacheError> {
        let key = self.key(file, index)?;
        let (frame, page) = loop {
            if let Some(frame) = self.shared.table.find(key) {
                let page = self.shared.claim(frame);
                if self.shared.table.key(frame) == key && page.is_some() {
                    self.used(frame, key);
                    break (frame, page);
                }
                drop(page);
            }
            self.report();
            if let Some(loaded) = self.load(file, key, reason)? {
                break loaded;
            }
        };
        let mut inner = self.shared.inner();
        inner.dirty.insert(key, frame);
        let start = index * self.shared.block_size() as u64;
        let opened = &mut inner.files[key.file() as usize];
        if opened.end <= start {
            opened.end = start + self.shared.block_size() as u64;
        }
        Ok(BlockMut::new(page))
    }

    /// Reads the block in, unless somebody else has begun to: then there is nothing, and the caller looks again.
    fn load(
        &mut self,
        file: &CachedFile,
        key: Key,
        reason: Reason,
    ) -> Result<Option<(Frame, Claimed<'c>)>, CacheError> {
        let ahead = match reason {
            Reason::Write => 0,
            _ => self.streams.missed(key, self.shared.read_ahead),
        };
        self.shared.load(file, key, reason, self.request, ahead)
    }

    fn key(&mut self, file: &CachedFile, index: u64) -> Result<Key, CacheError> {
        debug_assert!(
            core::ptr::eq(file.shared(), self.shared),
            "file of another cache"
        );
        if !self.joined {
            self.request = self.request.wrapping_add(1);
        }
        if index > MOST_INDEX {
            return Err(CacheError::Index {
                index,
                most: MOST_INDEX,
            });
        }
        Ok(Key::new(file.number(), index))
    }

    /// The block, if it is in this frame now that nobody can take it out.
    fn held(&self, frame: Frame, key: Key) -> Option<BlockRef<'c>> {
        let lock = &self.shared.frames[frame as usize];
        let page = match lock.try_read() {
            Ok(page) => page,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => lock.read().unwrap_or_else(PoisonError::into_inner),
        };
        (self.shared.table.key(frame) == key && page.is_some()).then(|| BlockRef::new(page))
    }

    fn used(&mut self, frame: Frame, key: Key) {
        self.uses.push(Use {
            frame,
            request: self.request,
            key,
        });
        if self.uses.len() >= BATCH {
            self.report();
        }
    }

    /// Tells the rule of all uses so far. Happens by itself before a miss, after 64 hits, and at the end.
    pub fn report(&mut self) {
        if self.uses.is_empty() {
            return;
        }
        let mut inner = self.shared.inner();
        for Use {
            frame,
            request,
            key,
        } in self.uses.drain(..)
        {
            inner.hit(self.shared, frame, key, request);
        }
    }
}

impl Drop for CacheHandle<'_> {
    fn drop(&mut self) {
        self.report();
    }
}
