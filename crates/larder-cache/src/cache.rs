//! The cache itself.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::builder::{BlockCacheBuilder, Pressure};
use crate::error::CacheError;
use crate::file::CachedFile;
use crate::handle::CacheHandle;
use crate::helper::Helper;
use crate::io::{Below, Shared, Storage};
use crate::key::{FileId, TenantId};
use crate::state::Recorder;
use crate::stats::{CacheStats, FileStats};

/// Percent of the last ten seconds in which some program waited for memory, from which on the cache gives some back.
const PRESSURE: f64 = 10.0;

/// Blocks of files in page buffers: read once for all callers, kept by a [rule](larder_policy), written back in order.
///
/// Each thread makes a [`CacheHandle`] and reads and writes through it; blocks come as guards, which keep the block in memory.
/// A hit takes no lock of the cache: it looks into a table that is changed elsewhere, and counts itself in the block's own
/// latch, which pins it. So it is with a hit that changes a block which is dirty already; one that makes it dirty takes the
/// lock once. Cloning gives another owner of the same cache.
///
/// When the last owner is dropped, be it a clone of this, a [`CachedFile`] or a handle, dirty blocks are written, but not synced, and errors are not reported, as with
/// [`std::io::BufWriter`]: call [`sync`](Self::sync) before. Blocks that must not be written are
/// [invalidated](CachedFile::invalidate) before.
///
/// ```
/// use larder_cache::{BlockCache, FileId, MemoryStorage};
///
/// let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).build()?;
/// let file = cache.file(FileId(1))?;
/// let mut handle = cache.handle();
/// handle.write(&file, 3)?[..5].copy_from_slice(b"hello");
/// assert_eq!(&handle.read(&file, 3)?[..5], b"hello");
/// file.sync()?;
/// # Ok::<(), larder_cache::CacheError>(())
/// ```
#[derive(Clone)]
pub struct BlockCache {
    pub(crate) shared: Arc<Shared>,
    pressure: Arc<Pressure>,
    read_ahead: usize,
    helper: Arc<Helper>,
}

impl BlockCacheBuilder {
    /// Makes the cache.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, CacheError, MemoryStorage};
    /// let tiny = BlockCache::builder(MemoryStorage::default()).bytes(1).build();
    /// assert!(matches!(tiny, Err(CacheError::Size { bytes: 1, .. })));
    /// ```
    ///
    /// # Errors
    /// [`CacheError`]: a size of less than a block, a rule that does not exist, no memory.
    pub fn build(self) -> Result<BlockCache, CacheError> {
        let (shared, pressure, read_ahead) = self.make()?;
        Ok(BlockCache {
            shared: Arc::new(shared),
            pressure,
            read_ahead,
            helper: Arc::default(),
        })
    }
}

impl BlockCache {
    /// Says how large the cache is and what rules it.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).policy("arc").build()?;
    /// assert_eq!(cache.stats().policy, "arc");
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn builder(storage: impl Storage) -> BlockCacheBuilder {
        BlockCacheBuilder::new(Box::new(Below(storage)))
    }

    /// Bytes of a block: a page of the system.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// assert_eq!(cache.block_size(), larder::os::page_size());
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn block_size(&self) -> usize {
        self.shared.block_size()
    }

    /// Opens a file of the storage. Opening it again gives another opener of the same file. When the last opener is
    /// dropped and the last block has left, the file is forgotten, its [end](CachedFile::set_end) too, unless the next
    /// opener must learn of blocks that are [lost](CacheError::Lost), or were written and not synced.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let (one, same) = (cache.file(FileId(1))?, cache.file(FileId(1))?);
    /// cache.handle().overwrite(&one, 0)?.fill(7);
    /// assert_eq!(cache.handle().read(&same, 0)?[0], 7);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Files`] when as many files are open as the cache can number (2^24); [`CacheError::Memory`].
    pub fn file(&self, id: FileId) -> Result<CachedFile, CacheError> {
        self.file_of(id, TenantId::default())
    }

    /// [`file`](Self::file), of which the storage has `size` bytes: the file ends there, which takes no look at the storage,
    /// and nothing behind is read. [`write_until`](CacheHandle::write_until) makes it longer. Where it does, its blocks are
    /// written back from the former end on, in order: at any moment the storage's file is as long as what was written
    /// without a hole, and never longer than the file.
    ///
    /// A file that is open, or has blocks in memory, and whose end was said already keeps that: what was written since is
    /// known here only.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage, Storage};
    /// let storage = std::sync::Arc::new(MemoryStorage::default());
    /// storage.write(FileId(1), 0, b"hello")?;
    /// let cache = BlockCache::builder(std::sync::Arc::clone(&storage)).build()?;
    /// let file = cache.open_at(FileId(1), 5)?;
    /// cache.handle().write_until(&file, 0, 6)?[5] = b'!';
    /// file.write_back()?;
    /// assert_eq!(storage.read(FileId(1), 0, &mut [0; 100])?, 6);
    /// assert_eq!(cache.open_at(FileId(1), 5)?.end(), Some(6));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn open_at(&self, id: FileId, size: u64) -> Result<CachedFile, CacheError> {
        self.open_at_of(id, size, TenantId::default())
    }

    /// [`open_at`](Self::open_at), on behalf of a tenant, as [`file_of`](Self::file_of).
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn open_at_of(
        &self,
        id: FileId,
        size: u64,
        tenant: TenantId,
    ) -> Result<CachedFile, CacheError> {
        let mut state = self.shared.state();
        let opening = state.open(id, tenant)?;
        state.has_size(self.shared.table(), opening.number, size);
        drop(state);
        Ok(CachedFile::new(Arc::clone(&self.shared), opening))
    }

    /// [`file`](Self::file), on behalf of a tenant, with whose other files it is summed up. While it is open or has
    /// blocks in memory it stays with the first tenant that opened it.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage, TenantId};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// for id in [1, 2] {
    ///     let file = cache.file_of(FileId(id), TenantId(7))?;
    ///     cache.handle().read(&file, 0)?;
    /// }
    /// assert_eq!(cache.tenant_stats(TenantId(7)).misses, 2);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn file_of(&self, id: FileId, tenant: TenantId) -> Result<CachedFile, CacheError> {
        let opening = self.shared.state().open(id, tenant)?;
        Ok(CachedFile::new(Arc::clone(&self.shared), opening))
    }

    /// What all files of a tenant have counted, also those that are not open any more. Looks at each file once. The
    /// cache keeps about 100 bytes for each tenant that ever opened a file, until the tenant is
    /// [forgotten](Self::forget_tenant).
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage, TenantId};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file_of(FileId(1), TenantId(7))?;
    /// cache.handle().read(&file, 0)?;
    /// assert_eq!((cache.tenant_stats(TenantId(7)).misses, cache.tenant_stats(TenantId(8)).misses), (1, 0));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn tenant_stats(&self, tenant: TenantId) -> FileStats {
        self.shared.state().tenant_stats(tenant)
    }

    /// [`tenant_stats`](Self::tenant_stats), after which nothing is known of the tenant's files that are neither open
    /// nor have blocks in memory. Without other files the tenant takes no memory any more. Uses of such files that
    /// handles report later count for the tenant again.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage, TenantId};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file_of(FileId(1), TenantId(7))?;
    /// cache.handle().read(&file, 0)?;
    /// file.invalidate(0..1)?;
    /// drop(file);
    /// assert_eq!(cache.forget_tenant(TenantId(7)).misses, 1);
    /// assert_eq!(cache.tenant_stats(TenantId(7)).misses, 0);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn forget_tenant(&self, tenant: TenantId) -> FileStats {
        self.shared.state().forget_tenant(tenant)
    }

    /// Gives a tenant `bytes` of the cache for itself, while it is in use. Its files never have more blocks in memory, and a block of theirs
    /// leaves only for another of theirs; the others have what is left. `policy` is a rule of the tenant's own by
    /// [name](larder_policy::rules): it decides as in a cache of this size. Without one the tenant has the rule that it had, or the
    /// cache's if it had no limit; that is `adaptive` where the cache's came by [`own_policy`](BlockCacheBuilder::own_policy).
    ///
    /// What is too much leaves at once, dirty blocks after they were written; those that are held stay until they are let go, and the
    /// tenant has more for that long. Blocks in memory are taken for new ones by the tenant's rule.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage, TenantId};
    /// let cache = BlockCache::builder(MemoryStorage::default()).bytes(100 << 12).read_ahead(0).build()?;
    /// cache.limit_tenant(TenantId(7), 10 << 12, Some("lirs"))?;
    /// let (mine, other) = (cache.file_of(FileId(1), TenantId(7))?, cache.file(FileId(2))?);
    /// let mut handle = cache.handle();
    /// for index in 0..1000 {
    ///     handle.read(&other, index % 90)?;
    ///     handle.read(&mine, index)?;
    /// }
    /// assert_eq!((mine.stats().resident, other.stats().misses), (10, 90));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Size`] for less than a block; [`CacheError::Limits`] when the others would have none; [`CacheError::Policy`];
    /// [`CacheError::Memory`]; [`CacheError::Write`] when dirty blocks cannot be written: the limit holds all the same.
    pub fn limit_tenant(
        &self,
        tenant: TenantId,
        bytes: usize,
        policy: Option<&str>,
    ) -> Result<(), CacheError> {
        let table = self.shared.table();
        let frames = bytes / self.block_size();
        if frames == 0 {
            return Err(CacheError::Size {
                bytes,
                block: self.block_size(),
                most: table.frames().len() * self.block_size(),
            });
        }
        let limited = self
            .shared
            .state()
            .limit_tenant(table, tenant, frames, policy);
        limited.and(self.shared.shrink())
    }

    /// The tenant shares the cache with the others again, whose rule takes its blocks for new ones.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, MemoryStorage, TenantId};
    /// let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).build()?;
    /// cache.limit_tenant(TenantId(7), 1 << 19, None)?;
    /// assert_eq!(cache.tenant_limit(TenantId(7)), Some((1 << 19, "adaptive")));
    /// cache.unlimit_tenant(TenantId(7))?;
    /// assert_eq!(cache.tenant_limit(TenantId(7)), None);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`limit_tenant`](Self::limit_tenant).
    pub fn unlimit_tenant(&self, tenant: TenantId) -> Result<(), CacheError> {
        let table = self.shared.table();
        let shared = self.shared.state().unlimit_tenant(table, tenant);
        shared.and(self.shared.shrink())
    }

    /// The bytes that a tenant has for itself, and the name of its rule; `None` if it shares the cache with the others.
    pub fn tenant_limit(&self, tenant: TenantId) -> Option<(usize, &'static str)> {
        let (frames, policy) = self.shared.state().tenant_limit(tenant)?;
        Some((frames * self.block_size(), policy))
    }

    /// Changes the rule, by [name](larder_policy::rules), while the cache is in use. The new one learns of the blocks in memory in the order
    /// in which the former one would have let them go, and of none that left. Tenants with a [limit](Self::limit_tenant) keep theirs.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// cache.set_policy("lirs")?;
    /// assert_eq!(cache.stats().policy, "lirs");
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Policy`]: no such rule, or no memory; [`CacheError::Memory`]. The rule is as it was then.
    pub fn set_policy(&self, name: &str) -> Result<(), CacheError> {
        self.shared.state().set_policy(self.shared.table(), name)
    }

    /// A thread's way in. It is another owner of the cache, and may be kept in a struct and sent to another thread.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(0))?;
    /// assert!(cache.handle().read(&file, 0)?.iter().all(|&byte| byte == 0));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn handle(&self) -> CacheHandle {
        CacheHandle::new(Arc::clone(&self.shared), self.read_ahead)
    }

    /// Changes how many bytes of blocks there may be, while the cache is in use. Blocks that are too many leave, dirty ones after
    /// they were written; those that are held stay until they are let go, and the cache is larger for that long.
    ///
    /// # Errors
    /// [`CacheError::Size`] for less than a block or more than [`BlockCacheBuilder::most_bytes`]; [`CacheError::Limits`] when tenants
    /// have all of it for themselves; [`CacheError::Write`] when dirty blocks cannot be written: the size is the new one all the same.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, CacheError, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).build()?;
    /// let file = cache.file(FileId(0))?;
    /// for index in 0..100 {
    ///     cache.handle().read(&file, index)?;
    /// }
    /// cache.set_bytes(10 * cache.block_size())?;
    /// assert_eq!(cache.stats().resident, 10);
    /// assert!(matches!(cache.set_bytes(2 << 20), Err(CacheError::Size { .. })));
    /// # Ok::<(), CacheError>(())
    /// ```
    pub fn set_bytes(&self, bytes: usize) -> Result<(), CacheError> {
        let table = self.shared.table();
        let (frames, most) = (bytes / self.block_size(), table.frames().len());
        if frames == 0 || frames > most {
            return Err(CacheError::Size {
                bytes,
                block: self.block_size(),
                most: most * self.block_size(),
            });
        }
        self.shared.state().resize(table, frames)?;
        self.shared.shrink()
    }

    /// Gives back `bytes` of memory, for a moment of pressure: pages that hold no block, and where these are too few, those of blocks that
    /// the rule would take next. The size stays as it is, and the cache grows again as it is used. Returns how many bytes were given
    /// back: fewer where blocks are held.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).bytes(1 << 20).read_ahead(0).build()?;
    /// let file = cache.file(FileId(0))?;
    /// let mut handle = cache.handle();
    /// for index in 0..100 {
    ///     handle.read(&file, index)?;
    /// }
    /// assert_eq!(cache.trim(40 * cache.block_size())?, 40 * cache.block_size());
    /// assert_eq!(cache.stats().resident, 60);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Write`] when dirty blocks would have to go and cannot be written.
    pub fn trim(&self, bytes: usize) -> Result<usize, CacheError> {
        trim(&self.shared, bytes / self.block_size())
    }

    /// To be called about once a second, by any thread that has the time.
    ///
    /// - Rules that age by time do so.
    /// - Blocks that are dirty for longer than the [age](BlockCacheBuilder::dirty_age) are written, in the order of files
    ///   and blocks, but not synced; and so are others, as long as more than their [share](BlockCacheBuilder::dirty_share)
    ///   of the cache is dirty. A block that is changed all the time is written once in each such time. The call does not
    ///   wait for a block that another thread is changing: it leaves the block to the next call. The next
    ///   [sync](CachedFile::sync) reports what cannot be written.
    /// - When programs of this machine had to wait for memory for more than a tenth of the last ten seconds (`/proc/pressure/memory`,
    ///   unless [the builder](BlockCacheBuilder::pressure) says otherwise), as much is [given back](Self::trim) as a sixteenth of the
    ///   blocks takes.
    ///
    /// Returns the bytes given back.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # use std::time::Duration;
    /// let cache = BlockCache::builder(MemoryStorage::default()).dirty_age(Duration::ZERO).build()?;
    /// let file = cache.file(FileId(0))?;
    /// cache.handle().overwrite(&file, 3)?.fill(1);
    /// cache.maintain()?;
    /// assert_eq!(cache.stats().dirty, 0);
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`trim`](Self::trim).
    pub fn maintain(&self) -> Result<usize, CacheError> {
        maintain(&self.shared, &*self.pressure)
    }

    /// Starts a thread that calls [`maintain`](Self::maintain) every `interval`, or replaces it. The thread ends with the
    /// last clone of this; files and handles do not keep it. In the child of a fork there is none.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// # use std::time::Duration;
    /// let cache = BlockCache::builder(MemoryStorage::default()).dirty_age(Duration::ZERO).build()?;
    /// cache.start_helper(Duration::from_millis(1))?;
    /// cache.handle().overwrite(&cache.file(FileId(0))?, 3)?.fill(1);
    /// while cache.stats().dirty > 0 {
    ///     std::thread::yield_now();
    /// }
    /// cache.stop_helper();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start_helper(&self, interval: Duration) -> io::Result<()> {
        let (shared, pressure) = (Arc::clone(&self.shared), Arc::clone(&self.pressure));
        // What cannot be written is reported at the next sync.
        let work = move || drop(maintain(&shared, &*pressure));
        self.helper.start(interval, work)
    }

    /// Stops the thread if there is one, and waits for it.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// cache.start_helper(std::time::Duration::from_secs(1))?;
    /// cache.stop_helper();
    /// cache.stop_helper();                       // there is none any more
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_helper(&self) {
        self.helper.stop();
    }

    /// Calls `recorder` for every use from now on, also for blocks read ahead, for those forgotten, and when one may not leave and may
    /// again, in the order in which the rule learns of them; `None` ends it. A replay of what one thread did finds the same hits under the
    /// same rule, unless the size was changed. It is called under the cache's lock and must not use the cache. If it panics, it is
    /// not called again, and the cache goes on; it is dropped at the next call of this, or with the cache.
    ///
    /// ```
    /// # use larder_cache::{AccessKind, BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// cache.record(Some(Box::new(move |access| drop(sender.send(access)))));
    /// cache.handle().read(&cache.file(FileId(1))?, 5)?;
    /// cache.record(None);
    /// let first = receiver.recv()?;
    /// assert_eq!((first.kind, first.hit), (AccessKind::Read, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn record(&self, recorder: Option<Recorder>) {
        // What the former one owns may use the cache when it is dropped.
        let former = self.shared.state().record(self.shared.table(), recorder);
        drop(former);
    }

    /// What it has done so far.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(0))?;
    /// cache.handle().read(&file, 0)?;
    /// assert_eq!((cache.stats().misses, cache.stats().resident), (1, 1));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    pub fn stats(&self) -> CacheStats {
        self.shared.state().stats(self.shared.table())
    }

    /// Writes the dirty blocks of all files, in the order of files and blocks. They are not synced. It waits for blocks
    /// that another thread is changing, and leaves those that become dirty behind the last of them, as [`CachedFile::sync`] does.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(0))?;
    /// cache.handle().overwrite(&file, 3)?.fill(1);
    /// cache.write_back()?;
    /// assert_eq!((cache.stats().dirty, cache.stats().written), (0, 1));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Write`], the first there was; the others are written all the same.
    pub fn write_back(&self) -> Result<(), CacheError> {
        self.shared.write_back(None)
    }

    /// Makes all that was written safe: [syncs](CachedFile::sync) each file with blocks that are dirty, or were written and not synced, in the
    /// order of files. That includes files that no opener has any more. When it returns without an error, all that was written to
    /// any file before is safe. It waits for blocks that another thread is changing, and leaves what other threads write meanwhile
    /// to the next call, as [`CachedFile::sync`] does. Looks at each file once.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// for id in [1, 2] {
    ///     let file = cache.file(FileId(id))?;
    ///     cache.handle().overwrite(&file, 0)?.fill(7);
    /// }
    /// cache.sync()?;
    /// assert_eq!((cache.stats().dirty, cache.stats().written), (0, 2));
    /// # Ok::<(), larder_cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// The first there was; the other files are synced all the same. [`CacheError::Write`] and [`CacheError::Sync`], of what failed during
    /// this call: the blocks are dirty, and the next call tries again. [`CacheError::Lost`] while a file has lost blocks. The
    /// next [`CachedFile::sync`] of each open file reports the failure too.
    pub fn sync(&self) -> Result<(), CacheError> {
        let unsynced = self.shared.state().open_unsynced();
        let open = |opening| CachedFile::new(Arc::clone(&self.shared), opening);
        // Each is an opener like any other: its file keeps its number, and it takes no failure from others. All of them now, so that
        // those that are written meanwhile are no part of it, and that each is closed also when the storage panics.
        let files: Vec<CachedFile> = unsynced.into_iter().map(open).collect();
        let synced = files.iter().map(CachedFile::sync);
        synced.fold(Ok(()), Result::and)
    }

    /// Walks everything and says what does not hold, in a sentence that names the frame. Looks at each frame and each list, under
    /// the cache's lock: for tests. No thread needs to be idle.
    ///
    /// # Errors
    /// The sentence.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), String> {
        self.shared.state().check(self.shared.table())
    }
}

/// [`BlockCache::maintain`].
fn maintain(shared: &Shared, pressure: &Pressure) -> Result<usize, CacheError> {
    shared.state().tick(shared.table());
    shared.write_old();
    if pressure().unwrap_or(0.0) <= PRESSURE {
        return Ok(0);
    }
    let resident = shared.state().resident();
    trim(shared, resident.div_ceil(16))
}

/// [`BlockCache::trim`], of so many blocks.
fn trim(shared: &Shared, blocks: usize) -> Result<usize, CacheError> {
    Ok(shared.trim(blocks)? * shared.block_size())
}
