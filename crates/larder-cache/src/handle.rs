//! A thread's way into the cache.

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::error::CacheError;
use crate::file::CachedFile;
use crate::io::{Behind, Shared, Streams};
use crate::key::{Key, MOST_INDEX};
use crate::limits::{PINS, REPORT};
use crate::state::{Miss, Noted, Use};
use crate::table::{BlockMut, BlockRef, Claimed, Epoch, MOST_READERS, Missed, Pin, PinAt, TooMany};
use larder_policy::{Frame, Reason};

/// Uses after which they are reported in any case.
const MOST_USES: u8 = 192;

/// Reads and writes blocks for one thread at a time. It owns the cache with its other owners, so a struct can keep it beside its files,
/// and a thread can take it along; a guard borrows the file. It keeps the uses that found their block, and reports them to the rule by 64, before a
/// miss and when it is dropped, so that a hit does not touch what threads share.
///
/// ```
/// # use larder_cache::{BlockCache, FileId, MemoryStorage};
/// let cache = BlockCache::builder(MemoryStorage::default()).read_ahead(0).build()?;
/// let file = cache.file(FileId(1))?;
/// let readers = [0; 2].map(|_| {
///     let (mut handle, file) = (cache.handle(), file.clone());
///     std::thread::spawn(move || (0..100).all(|index| handle.read(&file, index).is_ok()))
/// });
/// readers.map(|reader| assert!(reader.join().unwrap()));
/// assert_eq!(cache.stats().misses, 100);
/// assert_eq!(cache.stats().hits, 100);
/// # Ok::<(), larder_cache::CacheError>(())
/// ```
pub struct CacheHandle {
    shared: Arc<Shared>,
    /// Most blocks that are read ahead.
    read_ahead: usize,
    /// The pin that the next block gets, or one that is never free.
    pin: PinAt,
    /// The number of the handle's pins.
    row: Option<u32>,
    /// As many as the index below can name, so that none is outside.
    uses: [Use; 256],
    used: u8,
    /// Uses of saturated blocks that were not pinned.
    unpinned: u8,
    streams: Streams,
    /// The token of the file that was used last, and the key of its first block.
    token: u64,
    first: Key,
    /// The latest birth of the files that were used. Uses that are not reported yet are of no file that was born later.
    since: u64,
    /// Uses and requests so far: what numbers a use that is its own request.
    turn: u64,
    /// As many of them as are not uses of saturated blocks of that file that are still to be counted.
    reported: u64,
    /// The number of the request to which all uses belong now.
    request: Option<u32>,
}

impl CacheHandle {
    pub(crate) fn new(shared: Arc<Shared>, read_ahead: usize) -> Self {
        let pins = shared.table().frames().pins();
        let row = pins.row().map(|(number, _)| number);
        Self {
            pin: pins.next(row),
            row,
            shared,
            read_ahead,
            uses: [Use::NONE; 256],
            used: 0,
            unpinned: 0,
            streams: Streams::new(),
            token: 0,
            first: Key::NONE,
            since: 0,
            turn: 0,
            reported: 0,
            request: None,
        }
    }

    /// All uses within `work` belong to one request, as the blocks of one `read` call do: rules that care take several uses of a
    /// block by one request for one.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// # let file = cache.file(FileId(1))?;
    /// let mut handle = cache.handle();
    /// let sum = handle.request(|handle| {
    ///     let first = handle.read(&file, 0)?[4095];
    ///     Ok::<_, larder_cache::CacheError>(first + handle.read(&file, 1)?[0])
    /// })?;
    /// assert_eq!(sum, 0);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn request<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.turn += 1;
        self.reported += 1;
        let before = self.request.replace(self.turn as u32);
        let out = work(self);
        self.request = before;
        out
    }

    /// A block to be read; read from the storage if it is not in memory. If another thread is reading it, this one waits; so it
    /// does while another one changes the block. A thread must not ask for a block that it holds already: it may wait for itself.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage, Storage};
    /// let storage = MemoryStorage::default();
    /// storage.write(FileId(1), 0, b"hello")?;
    /// let cache = BlockCache::builder(storage).build()?;
    /// let file = cache.file(FileId(1))?;
    /// assert_eq!(&cache.handle().read(&file, 0)?[..6], b"hello\0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError`]: an index that no file has, all blocks held, 32,768 guards of this one, the storage or the pool failed.
    // A call of its own would save and restore more than the work is.
    #[inline(always)]
    pub fn read<'f>(
        &mut self,
        file: &'f CachedFile,
        index: u64,
    ) -> Result<BlockRef<'f>, CacheError> {
        if file.token() != self.token || index > MOST_INDEX {
            return self.read_other_file(file, index);
        }
        let key = Key(self.first.0 | index);
        self.turn += 1;
        let (table, pin) = (file.shared().table(), self.pin(file));
        table.hit(key, pin, |missed| self.read_slow(file, key, missed))
    }

    /// The pin that the next block gets. The file is the one that was used last.
    #[inline(always)]
    fn pin<'f>(&self, file: &'f CachedFile) -> &'f Pin {
        debug_assert_eq!(file.token(), self.token);
        // SAFETY: the pin is one of the handle's cache. `key` noted the file's token when it saw that the file is of the same cache,
        // no other file has this token, and a file owns its cache. So the pins stay while the file is borrowed.
        unsafe { self.pin.get() }
    }

    /// Another file than the last time, or an index that no file has.
    #[cold]
    #[inline(never)]
    fn read_other_file<'f>(
        &mut self,
        file: &'f CachedFile,
        index: u64,
    ) -> Result<BlockRef<'f>, CacheError> {
        self.key(file, index)?;
        self.read(file, index)
    }

    /// A read that was no [hit](crate::table::Table::hit).
    #[inline(never)]
    fn read_slow<'f>(
        &mut self,
        file: &'f CachedFile,
        key: Key,
        missed: Missed,
    ) -> Result<BlockRef<'f>, CacheError> {
        match self.found(file, key, missed) {
            Ok(block) => Ok(block),
            Err(traced) => self.wait_or_load(file, key, traced, |handle| {
                let page = handle.load(file, key, Reason::Demand)?;
                Ok(page.map(Claimed::downgrade))
            }),
        }
    }

    /// A use that may have to be reported, or one that is counted since its block cannot be pinned. Else there is no block at
    /// all, or another thread changes it: then there is a trace of it.
    #[inline(always)]
    fn found<'f>(
        &mut self,
        file: &'f CachedFile,
        key: Key,
        mut missed: Missed,
    ) -> Result<BlockRef<'f>, bool> {
        let table = file.shared().table();
        if missed == Missed::Taken {
            self.pin = table.frames().pins().next(self.row);
            missed = match table.hit(key, self.pin(file), Err) {
                Ok(block) => return Ok(block),
                Err(missed) => missed,
            };
        }
        let frame = match missed {
            Missed::Absent => None,
            Missed::Taken => table.find(key),
            Missed::Pinned => Some(table.frames().unpin(self.pin(file))),
        };
        self.counted(file, key, frame)
    }

    /// [`found`](Self::found), without a pin.
    #[inline(always)]
    fn counted<'f>(
        &mut self,
        file: &'f CachedFile,
        key: Key,
        frame: Option<Frame>,
    ) -> Result<BlockRef<'f>, bool> {
        let table = file.shared().table();
        if let Some(frame) = frame
            && let Some((block, saturated)) = table.counted(frame, key)
        {
            if !saturated {
                self.reported += 1;
                self.note(frame, key);
                return Ok(block);
            }
            // Without reports the cache would not notice that the epoch is long enough to pin blocks.
            self.unpinned = self.unpinned.wrapping_add(1);
            let brief = self.row.is_some() && table.epochs().pinned() == Epoch::NEVER;
            if brief && self.unpinned.is_multiple_of(REPORT) {
                self.report_some();
            }
            return Ok(block);
        }
        self.reported += 1;
        Err(frame.is_some())
    }

    /// The block was not there, or another thread changes it. `load` brings it in, or nothing if another thread does. Without
    /// any trace of it there is no use in looking again before that.
    #[cold]
    #[inline(never)]
    fn wait_or_load<'f>(
        &mut self,
        file: &'f CachedFile,
        key: Key,
        mut traced: bool,
        mut load: impl FnMut(&mut Self) -> Result<Option<BlockRef<'f>>, CacheError>,
    ) -> Result<BlockRef<'f>, CacheError> {
        let table = file.shared().table();
        loop {
            let found = if traced { table.find(key) } else { None };
            traced = true;
            if let Some(frame) = found {
                match table.frames().read(frame, key) {
                    Ok(Some(block)) => {
                        self.note(frame, key);
                        return Ok(block);
                    }
                    Ok(None) => {}
                    Err(TooMany) => {
                        return Err(CacheError::Guards {
                            file: file.id(),
                            index: key.index(),
                            most: MOST_READERS,
                        });
                    }
                }
            }
            if let Some(block) = load(self)? {
                return Ok(block);
            }
        }
    }

    /// Blocks that follow each other, to be read by one [request](Self::request): their guards come behind those that `into`
    /// has. What is not in memory is read with one call of the storage, up to a megabyte at a time.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(1))?;
    /// let mut handle = cache.handle();
    /// handle.overwrite(&file, 5)?.fill(7);
    /// let mut blocks = Vec::new();
    /// handle.read_many(&file, 4..7, &mut blocks)?;
    /// assert_eq!(blocks.iter().map(|block| block[0]).collect::<Vec<_>>(), [0, 7, 0]);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`read`](Self::read), of any of them: `into` is as before then.
    pub fn read_many<'f>(
        &mut self,
        file: &'f CachedFile,
        blocks: Range<u64>,
        into: &mut Vec<BlockRef<'f>>,
    ) -> Result<(), CacheError> {
        let had = into.len();
        let done = self.request(|handle| handle.read_each(file, blocks, into, None));
        if done.is_err() {
            into.truncate(had);
        }
        done
    }

    /// A block to be read, if it is in memory and no thread reads or changes it just now: it waits for no thread and for no storage.
    /// Only a block that is there counts as used.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(1))?;
    /// let mut handle = cache.handle();
    /// assert!(handle.try_read(&file, 0)?.is_none());
    /// handle.read(&file, 0)?;
    /// assert!(handle.try_read(&file, 0)?.is_some());
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Index`], [`CacheError::Foreign`].
    pub fn try_read<'f>(
        &mut self,
        file: &'f CachedFile,
        index: u64,
    ) -> Result<Option<BlockRef<'f>>, CacheError> {
        let key = self.key(file, index)?;
        self.turn += 1;
        let pin = self.pin(file);
        let found = match file.shared().table().hit(key, pin, Err) {
            Ok(block) => Ok(block),
            Err(missed) => self.found(file, key, missed),
        };
        Ok(found.ok())
    }

    /// [`read_many`](Self::read_many), by a thread of the cache: this one goes on. `done` is called once, with the blocks or with what went
    /// wrong, also when the storage panics; by that thread, which does nothing else until it returns. Blocks behind those that this
    /// handle's reader may want next come too.
    ///
    /// A read that was begun keeps the cache and the file. At most [`read_threads`](crate::BlockCacheBuilder::read_threads) are under way;
    /// when 1024 more wait, or no thread can be had, the caller reads, and calls `done` before this returns. So call it with no
    /// guard and no lock that `done` wants.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(1))?;
    /// let mut handle = cache.handle();
    /// let (sender, replies) = std::sync::mpsc::channel();
    /// if handle.try_read(&file, 3)?.is_none() {
    ///     handle.start_read(&file, 3..5, move |blocks| {
    ///         let _ = sender.send(blocks.map(|blocks| blocks.len()));
    ///     });
    /// }
    /// assert_eq!(replies.recv().unwrap()?, 2);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn start_read(
        &mut self,
        file: &CachedFile,
        blocks: Range<u64>,
        done: impl FnOnce(Result<Vec<BlockRef<'_>>, CacheError>) + Send + 'static,
    ) {
        let first = match self.first_of(file, &blocks) {
            Ok(first) => first,
            Err(error) => return done(Err(error)),
        };
        // What it used before comes before this.
        self.report();
        self.turn += 1;
        self.reported += 1;
        let len = blocks.end.saturating_sub(blocks.start);
        let ahead = self.streams.missed(first, len, self.read_ahead);
        let (file, request) = (file.clone(), self.number());
        let read = move || {
            let mut blocks_read = Vec::new();
            let mut handle = Self::new(Arc::clone(file.shared()), 0);
            handle.request = Some(request);
            let read = || handle.read_each(&file, blocks.clone(), &mut blocks_read, Some(ahead));
            let read = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
                Err(CacheError::Read {
                    file: file.id(),
                    index: blocks.start,
                    source: Arc::new(io::Error::other("the storage panicked")),
                })
            });
            drop(handle);
            done(read.map(|()| blocks_read));
        };
        if let Err(read) = self.shared.readers().start(Box::new(read)) {
            read();
        }
    }

    /// Guards are taken in order, so that threads that keep to it do not wait for each other for ever: of the blocks that one
    /// miss brings, those behind one that was in memory already are let go, and looked for in their turn. How many are worth reading
    /// ahead is said, or seen from what the handle read before.
    fn read_each<'f>(
        &mut self,
        file: &'f CachedFile,
        blocks: Range<u64>,
        into: &mut Vec<BlockRef<'f>>,
        ahead: Option<usize>,
    ) -> Result<(), CacheError> {
        if blocks.is_empty() {
            return Ok(());
        }
        let mut key = self.first_of(file, &blocks)?;
        let last = Key(self.first.0 | (blocks.end - 1));
        let table = file.shared().table();
        // There is no pin for more, and no use in looking for one.
        let pinned = into.len() + PINS;
        // Those that were let go: their use is counted.
        let mut came = Vec::new().into_iter().peekable();
        while key <= last {
            if came.next_if_eq(&key).is_some()
                && let Some(frame) = table.find(key)
                && let Some((block, _)) = table.counted(frame, key)
            {
                into.push(block);
                key = Key(key.0 + 1);
                continue;
            }
            self.turn += 1;
            let found = match into.len() < pinned {
                true => match table.hit(key, self.pin(file), Err) {
                    Ok(block) => Ok(block),
                    Err(missed) => self.found(file, key, missed),
                },
                false => self.counted(file, key, table.find(key)),
            };
            let mut more = Vec::new();
            let mut let_go = Vec::new();
            let mut next = Key(key.0 + 1);
            let block = match found {
                Ok(block) => block,
                Err(traced) => self.wait_or_load(file, key, traced, |handle| {
                    handle.load_many(file, (key, last), ahead, |came, page| match page {
                        Some(page) => {
                            more.push(page.downgrade());
                            next = Key(next.0 + 1);
                        }
                        None => let_go.push(came),
                    })
                })?,
            };
            into.push(block);
            into.append(&mut more);
            if !let_go.is_empty() {
                let_go.extend(came);
                let_go.sort_unstable();
                came = let_go.into_iter().peekable();
            }
            key = next;
        }
        Ok(())
    }

    /// [`load`](Self::load), of a block and of those up to another.
    fn load_many<'f>(
        &mut self,
        file: &'f CachedFile,
        (key, last): (Key, Key),
        ahead: Option<usize>,
        came: impl FnMut(Key, Option<Claimed<'f>>),
    ) -> Result<Option<BlockRef<'f>>, CacheError> {
        let wanted = last.0 - key.0;
        let seen = || self.streams.missed(key, wanted + 1, self.read_ahead);
        let behind = Behind {
            wanted,
            ahead: ahead.unwrap_or_else(seen) as u64,
        };
        let loaded = self.report_miss(key, Reason::Demand, |miss, noted| {
            file.shared().load_many(miss, behind, noted, came)
        })?;
        Ok(loaded.map(Claimed::downgrade))
    }

    /// A block to be changed: read from the storage if it is not in memory.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// # let file = cache.file(FileId(1))?;
    /// let mut handle = cache.handle();
    /// handle.write(&file, 4)?[..5].copy_from_slice(b"hello");
    /// assert_eq!(&handle.read(&file, 4)?[..5], b"hello");
    /// assert_eq!(cache.stats().dirty, 1);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write<'f>(
        &mut self,
        file: &'f CachedFile,
        index: u64,
    ) -> Result<BlockMut<'f>, CacheError> {
        self.change(file, index, Reason::Demand, u64::MAX)
    }

    /// [`write`](Self::write), for a file whose end is somewhere in the block: the file ends at `end` or later, and not with
    /// the block. The guard has as many bytes as the file has of the block, so nothing behind the end is written, neither
    /// here nor to the storage. With [`BlockCache::open_at`](crate::BlockCache::open_at) this is how a file grows: an append
    /// takes the cache's lock once.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.open_at(FileId(1), 0)?;
    /// let mut handle = cache.handle();
    /// handle.write_until(&file, 0, 5)?.copy_from_slice(b"hello");
    /// handle.write_until(&file, 0, 11)?[5..].copy_from_slice(b", world"[..6].as_ref());
    /// assert_eq!(file.end(), Some(11));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write_until<'f>(
        &mut self,
        file: &'f CachedFile,
        index: u64,
        end: u64,
    ) -> Result<BlockMut<'f>, CacheError> {
        self.change(file, index, Reason::Demand, end)
    }

    /// A block to be written from front to end: not read from the storage. It holds zeroes if it was not in memory, else what it
    /// held.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// # let file = cache.file(FileId(1))?;
    /// let mut handle = cache.handle();
    /// handle.overwrite(&file, 4)?.fill(1);
    /// assert_eq!(handle.read(&file, 4)?[0], 1);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn overwrite<'f>(
        &mut self,
        file: &'f CachedFile,
        index: u64,
    ) -> Result<BlockMut<'f>, CacheError> {
        self.change(file, index, Reason::Write, u64::MAX)
    }

    /// [`overwrite`](Self::overwrite), for a file that ends at `end` or later, as [`write_until`](Self::write_until) says it.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.open_at(FileId(1), 0)?;
    /// assert_eq!(cache.handle().overwrite_until(&file, 0, 100)?.len(), 100);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn overwrite_until<'f>(
        &mut self,
        file: &'f CachedFile,
        index: u64,
        end: u64,
    ) -> Result<BlockMut<'f>, CacheError> {
        self.change(file, index, Reason::Write, end)
    }

    /// Writes `bytes` at `offset`, if that can be done at once: it waits for no thread that has a block, and makes no call of the storage.
    /// It writes all blocks of the range, or none. If it returns false, every block holds what it held, and none is dirty that was not.
    /// The file ends with the bytes or later, as [`write_until`](Self::write_until) says it. All blocks are used by one
    /// [request](Self::request).
    ///
    /// It returns false if
    ///
    /// - a block is held, by this thread or another one, or on its way from or to the storage;
    /// - a block is not in memory, and the file has bytes of it that are not written;
    /// - more than [`dirty_share`](crate::BlockCacheBuilder::dirty_share) of the cache would be dirty, or the rule asks for write-back;
    /// - too few frames are free or hold a clean block that no thread has. Then blocks that were not in memory may count as missed;
    /// - the range has more than 512 blocks.
    ///
    /// A thread that may wait writes with [`write_until`](Self::write_until) and [`overwrite_until`](Self::overwrite_until) then. This
    /// takes the cache's lock once, and once more for each block that was not in memory.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.open_at(FileId(1), 0)?;
    /// let mut handle = cache.handle();
    /// assert!(handle.try_write_at(&file, 0, b"hello")?);
    /// let held = handle.read(&file, 0)?;
    /// assert!(!handle.try_write_at(&file, 5, b", world")?);
    /// drop(held);
    /// assert!(handle.try_write_at(&file, 5, b", world")?);
    /// assert_eq!(&handle.read(&file, 0)?[..12], b"hello, world");
    /// assert_eq!(file.end(), Some(12));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Index`], [`CacheError::Foreign`].
    pub fn try_write_at(
        &mut self,
        file: &CachedFile,
        offset: u64,
        bytes: &[u8],
    ) -> Result<bool, CacheError> {
        let size = self.shared.block_size() as u64;
        let end = offset.saturating_add(bytes.len() as u64);
        let mut blocks = offset / size..end.div_ceil(size);
        self.first_of(file, &blocks)?;
        if bytes.is_empty() {
            return Ok(true);
        }
        let (shared, number) = (file.shared(), file.number());
        let len = blocks.end - blocks.start;
        Ok(self.request(|handle| {
            let is_here = |index| shared.table().find(Key::new(number, index)).is_some();
            if !blocks.all(is_here) {
                // A miss comes behind what was used before.
                handle.report();
            }
            let Some(here) = shared.try_write(number, offset, bytes, handle.number()) else {
                return false;
            };
            handle.turn += len;
            handle.reported += len;
            for (key, frame) in here {
                handle.note(frame, key);
            }
            true
        }))
    }

    fn change<'f>(
        &mut self,
        file: &'f CachedFile,
        index: u64,
        reason: Reason,
        until: u64,
    ) -> Result<BlockMut<'f>, CacheError> {
        let key = self.key(file, index)?;
        self.turn += 1;
        self.reported += 1;
        let load = || self.load(file, key, reason);
        let (page, len, hit) = file.shared().change(key, until, load)?;
        if hit {
            self.note(page.frame(), key);
        }
        Ok(BlockMut::new(page, len))
    }

    /// Reports all uses so far to the rule and reads the block in, unless another thread has begun to: then there is
    /// nothing, and the caller looks again.
    fn load<'f>(
        &mut self,
        file: &'f CachedFile,
        key: Key,
        reason: Reason,
    ) -> Result<Option<Claimed<'f>>, CacheError> {
        let ahead = match reason {
            Reason::Write => 0,
            _ => self.streams.missed(key, 1, self.read_ahead),
        };
        self.report_miss(key, reason, |miss, noted| {
            file.shared().load(miss, ahead, noted)
        })
    }

    /// What was noted goes to the rule with a miss.
    #[inline(always)]
    fn report_miss<T>(
        &mut self,
        key: Key,
        reason: Reason,
        load: impl FnOnce(Miss, Noted<'_>) -> T,
    ) -> T {
        self.count();
        let request = self.number();
        let noted = Noted {
            uses: &mut self.uses[..usize::from(self.used)],
            since: self.since,
        };
        let miss = Miss {
            key,
            reason,
            request,
        };
        let loaded = load(miss, noted);
        self.used = 0;
        loaded
    }

    /// The name of a block, whose file is the one that was used last from now on.
    fn key(&mut self, file: &CachedFile, index: u64) -> Result<Key, CacheError> {
        if !Arc::ptr_eq(file.shared(), &self.shared) {
            return Err(CacheError::Foreign { file: file.id() });
        }
        let key = self.shared.key(file.number(), index)?;
        if file.token() != self.token {
            if file.born() > self.since {
                self.report();
                self.since = file.born();
            }
            self.count();
            (self.token, self.first) = (file.token(), Key::first(file.number()));
        }
        Ok(key)
    }

    /// The name of a range's first block. All blocks of the range are some that a file can have.
    fn first_of(&mut self, file: &CachedFile, blocks: &Range<u64>) -> Result<Key, CacheError> {
        if !blocks.is_empty() {
            self.key(file, blocks.end - 1)?;
        }
        self.key(file, blocks.start)
    }

    /// The number of the request that the latest use belongs to.
    fn number(&self) -> u32 {
        self.request.unwrap_or(self.turn as u32)
    }

    fn note(&mut self, frame: Frame, key: Key) {
        self.put(Use {
            frame,
            request: self.number(),
            key,
        });
    }

    fn put(&mut self, used: Use) {
        self.uses[usize::from(self.used)] = used;
        self.used += 1;
        if self.used.is_multiple_of(REPORT) {
            self.report_some();
        }
    }

    /// The uses of saturated blocks become an entry of their own.
    fn count(&mut self) {
        while self.turn > self.reported {
            let many = (self.turn - self.reported).min(u64::from(u32::MAX));
            self.reported += many;
            self.put(Use {
                frame: Use::MANY,
                request: many as u32,
                key: self.first,
            });
        }
    }

    /// Reports to the rule, unless another thread has the cache's lock just now: then the report can wait.
    #[cold]
    #[inline(never)]
    fn report_some(&mut self) {
        let state = match self.used >= MOST_USES {
            true => Some(self.shared.state()),
            false => self.shared.try_state(),
        };
        if let Some(mut state) = state {
            let noted = Noted {
                uses: &mut self.uses[..usize::from(self.used)],
                since: self.since,
            };
            state.hits(self.shared.table(), noted, true);
            self.used = 0;
        }
    }

    /// Reports all uses so far to the rule, and counts them. Happens by itself before a miss, after 64 hits or some
    /// more that the rule must know of, and at the end.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// # let file = cache.file(FileId(1))?;
    /// let mut handle = cache.handle();
    /// handle.read(&file, 0)?;
    /// handle.read(&file, 0)?;
    /// handle.report();
    /// assert_eq!((cache.stats().misses, cache.stats().hits), (1, 1));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn report(&mut self) {
        self.count();
        if self.used > 0 {
            let noted = Noted {
                uses: &mut self.uses[..usize::from(self.used)],
                since: self.since,
            };
            self.shared.state().hits(self.shared.table(), noted, false);
            self.used = 0;
        }
    }
}

impl Drop for CacheHandle {
    fn drop(&mut self) {
        self.report();
        if let Some(number) = self.row {
            self.shared.table().frames().pins().give_back(number);
        }
    }
}
