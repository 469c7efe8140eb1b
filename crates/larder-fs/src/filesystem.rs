//! The file system: inodes, open files and the cache, and how a file's content comes to the source.
//!
//! Locks of an inode are taken in this order: `io`, `opened`, `state`. The table of active inodes comes after `opened`; the
//! inodes' own table is taken with none of them held, or last.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use larder_cache::{BlockCache, CacheError, CacheHandle, CachedFile, FileId, TenantId};
use rustix::fs::{OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use crate::data::OpenFile;
use crate::directories::OpenDirectory;
use crate::folders::Folders;
use crate::gate::Room;
use crate::inode::{Inode, Inodes, Opened, Seen};
use crate::options::{Coherence, Mode};
use crate::source::{Backing, Source};
use crate::stats::Counters;
use crate::system::{Attr, Identity, ProcFds, Sys, Time, now, stat};
use crate::table::Table;
use crate::upkeep::Notes;
use crate::waiting::Waiting;

/// Whether this mount changed a file itself just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ours {
    /// It did not: what is new was done by others.
    No,
    /// Its attributes or names, which changes the time of change.
    Attributes,
    /// Its time of modification too.
    Times,
}

/// A few, so that threads seldom wait for each other, and programs that read several files do not look random.
pub(crate) const STARTERS: usize = 8;

pub(crate) struct FileSystem {
    pub(crate) mode: Mode,
    pub(crate) coherence: Coherence,
    /// How long names and attributes are believed, here and by the kernel.
    pub(crate) ttl: Duration,
    pub(crate) write_through: bool,
    /// Most of the cache that is dirty.
    pub(crate) dirty_share: f64,
    pub(crate) close_to_open: bool,
    /// The source has access control lists.
    pub(crate) acl: bool,
    pub(crate) proc_fds: ProcFds,
    pub(crate) identity: Identity,
    pub(crate) root: Arc<Inode>,
    pub(crate) root_dev: u64,
    pub(crate) inodes: Inodes,
    pub(crate) files: Table<OpenFile>,
    pub(crate) directories: Table<OpenDirectory>,
    pub(crate) cache: BlockCache,
    pub(crate) source: Arc<Source>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) space: Space,
    pub(crate) notes: Notes,
    /// Inodes whose data is open, or was a moment ago.
    pub(crate) active: Mutex<HashMap<u64, Arc<Inode>>>,
    pub(crate) waiting: Arc<Waiting>,
    /// Begin the reads that wait. All reads of a file go through the same one, by whatever thread they come, so that it sees which
    /// are sequential.
    pub(crate) starters: [Mutex<CacheHandle>; STARTERS],
    pub(crate) folders: Folders,
    /// Most that may be set aside.
    pub(crate) aside: Room,
    /// Largest request.
    pub(crate) max_write: usize,
}

/// What the source can still take, as far as it is known.
#[derive(Default)]
pub(crate) struct Space {
    left: AtomicI64,
    pub(crate) dirty: AtomicUsize,
    /// Blocks that may become dirty before a writer has to write some back.
    blocks: AtomicI64,
}

/// What went wrong in the cache, as a program sees it.
pub(crate) fn errno(error: &CacheError) -> Errno {
    match error {
        CacheError::Read { source, .. }
        | CacheError::Write { source, .. }
        | CacheError::Sync { source, .. } => Errno::from_io_error(source).unwrap_or(Errno::IO),
        CacheError::Held { .. } => Errno::BUSY,
        CacheError::Pinned { .. }
        | CacheError::Guards { .. }
        | CacheError::Memory { .. }
        | CacheError::Pages(_) => Errno::NOMEM,
        CacheError::Index { .. } => Errno::FBIG,
        CacheError::Files { .. } => Errno::NFILE,
        _ => Errno::IO,
    }
}

impl FileSystem {
    /// The cache has the contents of files, so their sizes and times are known here.
    pub(crate) fn caches(&self) -> bool {
        self.mode != Mode::Bypass
    }

    pub(crate) fn active(&self) -> MutexGuard<'_, HashMap<u64, Arc<Inode>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file's content in the cache.
    pub(crate) fn cached(&self, inode: &Inode) -> Sys<CachedFile> {
        inode.has_blocks.store(true, Ordering::Release);
        let size = inode.size.load(Ordering::Acquire);
        self.cache
            .open_at_of(FileId(inode.id), size, self.tenant(inode))
            .map_err(|error| errno(&error))
    }

    /// A file's data, for one more open file if that `counts`.
    ///
    /// # Errors
    /// Those of opening the source's file.
    pub(crate) fn open_data(
        &self,
        inode: &Arc<Inode>,
        write: bool,
        counts: bool,
    ) -> Sys<Arc<Opened>> {
        let mut slot = inode.opened();
        let count = u32::from(counts);
        if let Some(opened) = &*slot {
            if write && !opened.backing.is_writable() {
                opened.backing.make_writable(self.open_source(inode, true)?);
            }
            inode.opens.fetch_add(count, Ordering::AcqRel);
            return Ok(Arc::clone(opened));
        }
        let file = self.open_source(inode, write)?;
        let opened = self.put_opened(inode, &mut slot, file, write)?;
        inode.opens.fetch_add(count, Ordering::AcqRel);
        Ok(opened)
    }

    fn open_source(&self, inode: &Inode, write: bool) -> Sys<File> {
        self.source.call();
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        self.proc_fds.reopen(inode.fd(), access).map(File::from)
    }

    /// A file that was created has its data open already.
    pub(crate) fn created_data(&self, inode: &Arc<Inode>, fd: OwnedFd) -> Sys<Arc<Opened>> {
        let mut slot = inode.opened();
        let opened = match &*slot {
            Some(opened) => {
                if !opened.backing.is_writable() {
                    opened.backing.make_writable(File::from(fd));
                }
                Arc::clone(opened)
            }
            None => self.put_opened(inode, &mut slot, File::from(fd), true)?,
        };
        inode.opens.fetch_add(1, Ordering::AcqRel);
        Ok(opened)
    }

    fn put_opened(
        &self,
        inode: &Arc<Inode>,
        slot: &mut Option<Arc<Opened>>,
        file: File,
        writable: bool,
    ) -> Sys<Arc<Opened>> {
        let backing = Arc::new(Backing::new(file, writable));
        self.source.add(inode.id, Arc::clone(&backing));
        let cached = self.cached(inode)?;
        let opened = Arc::new(Opened { backing, cached });
        *slot = Some(Arc::clone(&opened));
        self.active().insert(inode.id, Arc::clone(inode));
        Ok(opened)
    }

    /// Takes what the source says of a file now. Returns whether others have changed its content.
    pub(crate) fn refresh(&self, inode: &Inode, new: Attr, ours: Ours) -> bool {
        let touched = {
            let opened = inode.opened();
            opened
                .as_ref()
                .is_some_and(|opened| opened.backing.is_touched())
        };
        let seen = Seen::of(&new);
        let mut state = inode.state();
        state.checked = Some(Instant::now());
        if !inode.is_file() || !self.caches() {
            (state.attr, state.seen) = (new, seen);
            inode.size.store(new.size, Ordering::Release);
            return false;
        }
        if state.changed {
            // What is here is newer, and will be written over what others wrote.
            let same = seen == state.seen || ours != Ours::No && seen.size == state.seen.size;
            if !touched && !same {
                self.counters.conflicts.fetch_add(1, Ordering::Relaxed);
            }
            state.seen = seen;
            let former = state.attr;
            state.attr = Attr {
                mtime: former.mtime,
                ctime: if ours == Ours::No {
                    former.ctime
                } else {
                    later(former.ctime, new.ctime)
                },
                blocks: new.blocks.max(former.blocks),
                ..new
            };
            return false;
        }
        let former = state.seen;
        let outside = match ours {
            Ours::No => seen != former,
            Ours::Attributes => (seen.mtime, seen.size) != (former.mtime, former.size),
            Ours::Times => seen.size != former.size,
        };
        let shown = state.shown.filter(|&(source, _)| source == new.ctime);
        state.shown = shown;
        state.seen = seen;
        state.attr = Attr {
            ctime: shown.map_or(new.ctime, |(_, shown)| shown),
            ..new
        };
        inode.size.store(new.size, Ordering::Release);
        drop(state);
        if outside && inode.has_blocks.load(Ordering::Acquire) {
            self.counters
                .outside_changes
                .fetch_add(1, Ordering::Relaxed);
            self.forget_content(inode, new.size);
        }
        outside
    }

    /// Blocks of a file that others have changed are read anew.
    fn forget_content(&self, inode: &Inode, size: u64) {
        let _io = inode.io.write();
        if let Ok(cached) = self.cached(inode) {
            // Nothing of it is dirty, so nothing is lost; a block that is held was just read.
            cached.discard();
            cached.set_end(size);
        }
        self.notes.changed(inode.id);
    }

    /// Whether the attributes that are known are not older than the time to live.
    pub(crate) fn is_fresh(&self, inode: &Inode) -> bool {
        let checked = inode.state().checked;
        // What the kernel writes by itself is not seen here.
        self.caches() && checked.is_some_and(|at| at.elapsed() < self.ttl)
    }

    /// Attributes that are not older than the time to live.
    pub(crate) fn attributes(&self, inode: &Inode) -> Sys<Attr> {
        if !self.is_fresh(inode) {
            self.look(inode, Ours::No)?;
        }
        Ok(self.shown(inode))
    }

    /// Asks the source for a file's attributes. Returns whether others have changed its content.
    pub(crate) fn look(&self, inode: &Inode, ours: Ours) -> Sys<bool> {
        self.source.call();
        let new = stat(inode.fd())?;
        Ok(self.refresh(inode, new, ours))
    }

    /// Attributes as programs see them.
    pub(crate) fn shown(&self, inode: &Inode) -> Attr {
        let mut attr = inode.state().attr;
        if inode.is_file() {
            attr.size = inode.size.load(Ordering::Acquire);
        }
        if attr.dev != self.root_dev {
            // Another file system below the source: its numbers are not to meet those of the source.
            attr.ino ^= attr.dev.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        attr
    }

    /// The file's content or size is newer here from now on. To be called before the first block is dirty.
    pub(crate) fn changes(&self, inode: &Inode) {
        let now = now();
        let mut state = inode.state();
        state.changed = true;
        (state.attr.mtime, state.attr.ctime) = (now, now);
    }

    /// Writes a file's dirty blocks to the source, and its size and time.
    pub(crate) fn write_back(&self, inode: &Inode, opened: &Opened) -> Sys<()> {
        if !inode.state().changed {
            return Ok(());
        }
        opened.cached.write_back().map_err(|error| errno(&error))?;
        self.settle(inode, opened)
    }

    /// When all of a file is with the source, its size and time follow.
    pub(crate) fn settle(&self, inode: &Inode, opened: &Opened) -> Sys<()> {
        let _io = inode.io.write();
        self.settle_held(inode, opened)
    }

    /// [`settle`](Self::settle), of a file that the caller has for itself.
    pub(crate) fn settle_held(&self, inode: &Inode, opened: &Opened) -> Sys<()> {
        let (changed, mtime) = {
            let state = inode.state();
            (state.changed, state.attr.mtime)
        };
        if !changed || opened.cached.stats().dirty > 0 {
            return Ok(());
        }
        let file = opened.backing.file();
        self.source.call();
        let size = inode.size.load(Ordering::Acquire);
        if stat(&file)?.size < size {
            rustix::fs::ftruncate(&file, size)?;
        }
        match rustix::fs::futimens(&file, &modified(mtime)) {
            // The file is another user's: it keeps the source's time.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error),
        }
        let new = stat(&file)?;
        let mut state = inode.state();
        opened.backing.seen();
        state.changed = false;
        state.shown = Some((new.ctime, state.attr.ctime));
        state.seen = Seen::of(&new);
        (state.attr.mtime, state.attr.blocks) = (new.mtime, new.blocks);
        Ok(())
    }

    /// A file without a name that no program has open: nothing of it is written any more.
    pub(crate) fn discard(&self, inode: &Inode) {
        let mut slot = inode.opened();
        if inode.opens.load(Ordering::Acquire) > 0 {
            return;
        }
        let opened = slot.take();
        match &opened {
            Some(opened) => opened.cached.discard(),
            None if inode.has_blocks.load(Ordering::Acquire) => {
                if let Ok(cached) = self.cached(inode) {
                    cached.discard();
                }
            }
            None => return,
        }
        inode.state().changed = false;
        if opened.is_some() {
            self.source.remove(inode.id);
            let gone = self.active().remove(&inode.id);
            drop(slot);
            drop(gone);
        }
    }

    /// The kernel or a program has let go of it.
    pub(crate) fn retire(&self, inode: &Inode) {
        if inode.opens.load(Ordering::Acquire) > 0 {
            return;
        }
        if inode.is_dead() && inode.is_file() {
            self.discard(inode);
        }
        if inode.is_unused() && inode.id != 1 && inode.opened().is_none() {
            self.rest(inode);
        }
    }

    /// An unused inode waits for its next use, if others have not deleted the file: a descriptor keeps it in the source.
    pub(crate) fn rest(&self, inode: &Inode) {
        let gone = inode.is_dead() || stat(inode.fd()).is_ok_and(|attr| attr.nlink == 0);
        if !gone {
            self.inodes.rest(inode);
        } else if self.inodes.remove(inode) {
            self.discard(inode);
        }
    }

    /// Takes room with the source for a file that becomes longer. False if there is none.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        if self.space.left.fetch_sub(bytes, Ordering::AcqRel) >= bytes {
            return true;
        }
        let Ok(stat) = rustix::fs::fstatvfs(self.root.fd()) else {
            return true;
        };
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let dirty = self.cache.stats().dirty * self.cache.block_size();
        self.space.dirty.store(dirty, Ordering::Release);
        let free = free.saturating_sub(dirty as u64);
        // Not all of it, so that others of the source are seen soon.
        let left = i64::try_from(free)
            .unwrap_or(i64::MAX)
            .saturating_sub(bytes);
        self.space
            .left
            .store(left.clamp(0, 256 << 20), Ordering::Release);
        left >= 0
    }

    /// [`reserve`](Self::reserve), if that asks the source for nothing. False if it would.
    pub(crate) fn try_reserve(&self, bytes: u64) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let less = |left: i64| (left >= bytes).then(|| left - bytes);
        let order = Ordering::AcqRel;
        let taken = self.space.left.fetch_update(order, Ordering::Acquire, less);
        taken.is_ok()
    }

    /// Counts blocks that become dirty. False if a writer has to write some back first.
    pub(crate) fn dirties(&self, blocks: u64, tenant: TenantId) -> bool {
        let blocks = i64::try_from(blocks).unwrap_or(i64::MAX);
        let share = |frames: usize| (frames as f64 * self.dirty_share) as i64;
        if tenant != TenantId::default()
            && let Some((bytes, _)) = self.cache.tenant_limit(tenant)
        {
            let dirty = self.cache.tenant_stats(tenant).dirty as i64;
            if dirty + blocks > share(bytes / self.cache.block_size()) {
                return false;
            }
        }
        if self.space.blocks.fetch_sub(blocks, Ordering::AcqRel) >= blocks {
            return true;
        }
        let stats = self.cache.stats();
        let left = share(stats.capacity) - stats.dirty as i64 - blocks;
        self.space.blocks.store(left.max(0), Ordering::Release);
        left >= 0
    }

    /// The next reservation looks at the source again, and the next write at what is dirty.
    pub(crate) fn look_for_room(&self) {
        self.space.left.store(0, Ordering::Release);
        self.space.blocks.store(0, Ordering::Release);
    }

    /// Writes all that is dirty to the source's disk.
    ///
    /// # Errors
    /// The first; all others are written all the same.
    pub(crate) fn sync_all(&self) -> Sys<()> {
        let mut all: Vec<_> = self.active().values().cloned().collect();
        all.sort_unstable_by_key(|inode| inode.id);
        let mut first = Ok(());
        for inode in all {
            let opened = inode.opened().clone();
            if let Some(opened) = opened.filter(|_| !inode.is_dead()) {
                first = first.and(self.write_back(&inode, &opened));
            }
        }
        first.and(rustix::fs::syncfs(self.root_data()?))
    }

    /// The root, opened for reading.
    fn root_data(&self) -> Sys<OwnedFd> {
        self.proc_fds
            .reopen(self.root.fd(), OFlags::RDONLY | OFlags::DIRECTORY)
    }
}

fn later(one: Time, other: Time) -> Time {
    one.max(other)
}

/// This time of modification, and the time of access as it is.
fn modified((seconds, nanoseconds): Time) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds.into(),
        },
    }
}
