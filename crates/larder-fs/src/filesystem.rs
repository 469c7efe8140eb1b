//! The file system: inodes, open files and the cache, and how a file's content comes to the source.
//!
//! Locks of an inode are taken in this order: `lasting`, `opened`, `state`; and `io`, `opened`, `state`. The table of active inodes comes after `opened`; the
//! inodes' own table is taken with none of them held, or last.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use larder_cache::{BlockCache, CacheError, CacheHandle, CachedFile, FileId};
use rustix::fs::{OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use crate::data::OpenFile;
use crate::directories::OpenDirectory;
use crate::folders::Folders;
use crate::gate::Room;
use crate::inode::{Inode, Inodes, Opened, Ours, Seen};
use crate::options::{Coherence, Mode};
use crate::source::{Backing, Source};
use crate::stats::Counters;
use crate::system::{Attr, Identity, ProcFds, Sys, Time, now, stat};
use crate::table::Table;
use crate::upkeep::Notes;
use crate::waiting::Waiting;

/// A few, so that threads seldom wait for each other, and programs that read several files do not look random.
pub(crate) const STARTERS: usize = 8;

pub(crate) struct FileSystem {
    pub(crate) mode: Mode,
    pub(crate) coherence: Coherence,
    /// How long names and attributes are believed, here and by the kernel.
    pub(crate) ttl: Duration,
    pub(crate) write_through: bool,
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
    /// Bytes that the source can still take, as far as it is known.
    pub(crate) room_left: AtomicI64,
    pub(crate) notes: Notes,
    /// Inodes whose data is open, or was a moment ago.
    pub(crate) active: Mutex<HashMap<u64, Arc<Inode>>>,
    /// The kernel opens and closes files without asking: their pages are its own, and nothing is to be looked at or written then.
    /// Requests name the inode only.
    pub(crate) no_open: AtomicBool,
    /// As many of them may be open without a need, for a moment.
    pub(crate) most_open: usize,
    /// When so many are open, those that are not needed are closed.
    pub(crate) crowd: AtomicUsize,
    pub(crate) waiting: Arc<Waiting>,
    /// Begin the reads that wait. All reads of a file go through the same one, by whatever thread they come, so that it sees which
    /// are sequential.
    pub(crate) starters: [Mutex<CacheHandle>; STARTERS],
    pub(crate) folders: Folders,
    /// Most that may be set aside.
    pub(crate) aside: Room,
    /// Largest request.
    pub(crate) max_write: usize,
    /// Each use is recorded, so the rule learns of it at once: later its block may be gone.
    pub(crate) traced: bool,
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

    /// No request tells which files are open.
    pub(crate) fn no_open(&self) -> bool {
        self.no_open.load(Ordering::Relaxed)
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

    /// A file's data, for one more open file. It is to be [closed](Self::close).
    ///
    /// # Errors
    /// Those of opening the source's file.
    pub(crate) fn open_data(&self, inode: &Arc<Inode>, write: bool) -> Sys<Arc<Opened>> {
        let mut slot = inode.opened();
        let opened = match &*slot {
            Some(opened) => {
                if write && !opened.backing.is_writable() {
                    opened.backing.make_writable(self.open_source(inode, true)?);
                }
                Arc::clone(opened)
            }
            None => {
                let file = self.open_source(inode, write)?;
                self.put_opened(inode, &mut slot, file, write)?
            }
        };
        inode.opens.fetch_add(1, Ordering::AcqRel);
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

    /// Takes what the source says of a file. It was `asked` at this version of what is known of the file, or at one that is not known.
    /// Returns whether others have changed its content. The caller does not have the file's lock.
    ///
    /// # Errors
    /// Those of asking again. `ESTALE`: the source has no such file any more, and where a name led to it, another one with its number.
    pub(crate) fn refresh(
        &self,
        inode: &Inode,
        new: Attr,
        ours: Ours,
        asked: Option<u64>,
    ) -> Sys<bool> {
        if !inode.is_file() || !self.caches() {
            inode.state().keep(new, ours);
            inode.size.store(new.size, Ordering::Release);
            return Ok(false);
        }
        let touched = inode.is_touched();
        let mut state = inode.state();
        // The answer may be from before a write or a write-back of this mount, and so older than what is known.
        let current = asked == Some(state.version) || Seen::of(&new) == state.seen;
        let outside = state.is_outside(&new, ours);
        if current && !outside || state.changed && touched {
            state.keep(new, ours);
            return Ok(false);
        }
        drop(state);
        self.confirm(inode, ours)
    }

    /// Asks the source again, with the file for itself: no write, cut or write-back of this mount comes between the answer and what
    /// follows from it.
    fn confirm(&self, inode: &Inode, ours: Ours) -> Sys<bool> {
        let _io = inode.io.write();
        loop {
            let asked = inode.state().version;
            self.source.call();
            let new = stat(inode.fd())?;
            let touched = inode.is_touched();
            let mut state = inode.state();
            if state.version != asked {
                // Another thread has looked after a change of attributes.
                continue;
            }
            let outside = state.is_outside(&new, ours);
            state.keep(new, ours);
            if state.changed {
                // What is newer here will be written over what others wrote.
                let conflict = outside && !touched;
                state.conflict |= conflict;
                drop(state);
                if conflict {
                    self.note_conflict(inode);
                }
                return Ok(false);
            }
            drop(state);
            if outside {
                if inode.has_blocks.load(Ordering::Acquire) {
                    let changes = &self.counters.outside_changes;
                    changes.fetch_add(1, Ordering::Relaxed);
                }
                self.forget_content(inode, new.size);
            }
            return Ok(outside);
        }
    }

    pub(crate) fn note_conflict(&self, inode: &Inode) {
        self.counters.conflicts.fetch_add(1, Ordering::Relaxed);
        log::warn!("{:?}: changed here and by others", Self::source_path(inode));
    }

    /// Where the source has it, as far as that is known.
    pub(crate) fn source_path(inode: &Inode) -> PathBuf {
        std::fs::read_link(ProcFds::path(inode.fd())).unwrap_or_default()
    }

    /// A file that others have changed has this size, and its blocks are read anew. The caller has the file for itself, and nothing
    /// of it is dirty.
    fn forget_content(&self, inode: &Inode, size: u64) {
        inode.size.store(size, Ordering::Release);
        if !inode.has_blocks.load(Ordering::Acquire) {
            return;
        }
        if let Ok(cached) = self.cached(inode) {
            // Not discarded: a sync still reports what it misses of what was written here.
            if cached.invalidate(0..u64::MAX).is_err() {
                // A block is held. The next look finds the change again.
                inode.state().seen = Seen::default();
            }
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
        let asked = inode.state().version;
        self.source.call();
        let new = stat(inode.fd())?;
        self.refresh(inode, new, ours, Some(asked))
    }

    /// Has the source change a file's attributes, names or times, and looks at what came of it.
    pub(crate) fn own_change(
        &self,
        inode: &Inode,
        ours: Ours,
        call: impl FnOnce() -> Sys<()>,
    ) -> Sys<()> {
        let _own = inode.own(ours);
        self.source.call();
        call()?;
        self.look(inode, ours).map(drop)
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
        let mut state = inode.state();
        // The source's clock may be more exact, or ahead.
        let now = now().max(state.attr.ctime);
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
        if !inode.state().changed {
            return Ok(());
        }
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
        self.settle_with(inode, opened, mtime)
    }

    /// Gives the source's file, which has all blocks, its size and this time of modification.
    fn settle_with(&self, inode: &Inode, opened: &Opened, mtime: Time) -> Sys<()> {
        let file = opened.backing.file();
        self.source.call();
        // Before the first change, which is not one of others.
        opened.backing.touch();
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
        if state.attr.mtime != mtime {
            // A program has set another one meanwhile: the next write-back gives it to the source, which may have lost it by this one.
            return Ok(());
        }
        opened.backing.seen();
        state.changed = false;
        state.shown = Some((new.ctime, state.attr.ctime));
        state.seen = Seen::of(&new);
        state.version += 1;
        (state.attr.mtime, state.attr.blocks) = (new.mtime, new.blocks);
        let known = std::mem::take(&mut state.conflict);
        drop(state);
        let found = new.size != size;
        if found && !known {
            self.note_conflict(inode);
        }
        if found || known {
            // What others have appended, or wrote where nothing was written here.
            self.forget_content(inode, new.size);
        }
        Ok(())
    }

    /// A file without a name that no program can open any more: nothing of it is written.
    pub(crate) fn discard(&self, inode: &Inode) {
        let mut slot = inode.opened();
        if !inode.is_unused() {
            return;
        }
        let changed = inode.state().changed;
        if changed && Self::has_a_name(inode) {
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

    /// Whether a name leads to a file that was taken for one without: it may have got one since the source was asked.
    fn has_a_name(inode: &Inode) -> bool {
        let links = stat(inode.fd()).map_or(0, |attr| attr.nlink);
        if links > 0 {
            let mut state = inode.state();
            state.attr.nlink = links;
            state.checked = None;
        }
        links > 0
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
        let gone = inode.is_dead()
            || match stat(inode.fd()) {
                Ok(attr) => attr.nlink == 0,
                // A server has no such file any more.
                Err(error) => error == Errno::STALE,
            };
        if !gone {
            self.inodes.rest(inode);
        } else if self.inodes.remove(inode) {
            self.discard(inode);
        }
    }

    /// Takes room with the source for a file that becomes longer. False if there is none.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        if self.room_left.fetch_sub(bytes, Ordering::AcqRel) >= bytes {
            return true;
        }
        let Some(free) = self.free() else {
            return true;
        };
        if self.take_room(free, bytes) {
            return true;
        }
        if free < bytes {
            return false;
        }
        // What is dirty may lie where the source has room for it already. What cannot be written is reported at the next sync.
        let _ = self.cache.write_back();
        self.free().is_none_or(|free| self.take_room(free, bytes))
    }

    /// Bytes that the source has free; none if it does not say.
    fn free(&self) -> Option<i64> {
        let stat = rustix::fs::fstatvfs(self.root.fd()).ok()?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        Some(i64::try_from(free).unwrap_or(i64::MAX))
    }

    /// Bytes of blocks that the source does not have yet.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        (self.cache.stats().dirty * self.cache.block_size()) as u64
    }

    /// Takes some of what is free beside what is dirty, and sets a part of the rest aside for the next writes. False if there is too
    /// little.
    fn take_room(&self, free: i64, bytes: i64) -> bool {
        let left = free
            .saturating_sub(self.dirty_bytes() as i64)
            .saturating_sub(bytes);
        // Not all of it, so that others of the source are seen soon.
        self.room_left
            .store(left.clamp(0, 256 << 20), Ordering::Release);
        left >= 0
    }

    /// [`reserve`](Self::reserve), if that asks the source for nothing. False if it would.
    pub(crate) fn try_reserve(&self, bytes: u64) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let less = |left: i64| (left >= bytes).then(|| left - bytes);
        let order = Ordering::AcqRel;
        let taken = self.room_left.fetch_update(order, Ordering::Acquire, less);
        taken.is_ok()
    }

    /// The next reservation looks at the source again.
    pub(crate) fn look_for_room(&self) {
        self.room_left.store(0, Ordering::Release);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Changes;
    use crate::data::tests::{BLOCK, with_file, write};
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_time_that_is_set_during_a_write_back_stays() {
        with_file(|system, file| {
            let (inode, opened) = (&file.inode, &file.opened);
            assert!(write(system, file, 0, BLOCK, true));
            opened.cached.write_back().unwrap();
            let begun = inode.state().attr.mtime;
            let set = |time| {
                let changes = Changes {
                    mtime: Some(Some(time)),
                    ..Changes::default()
                };
                system.change(inode, changes)
            };
            set((1_000_000_000, 0)).unwrap();
            system.settle_with(inode, opened, begun).unwrap();
            assert!(inode.state().changed);
            // One that no file has is refused, and not kept.
            assert!(set((0, 2_000_000_000)).is_err());
            system.settle(inode, opened).unwrap();
            assert!(!inode.state().changed);
            assert_eq!(stat(inode.fd()).unwrap().mtime, (1_000_000_000, 0));
        });
    }

    #[test]
    fn a_changed_file_ends_where_others_made_it_end() {
        with_file(|system, file| {
            let (inode, opened) = (&file.inode, &file.opened);
            assert!(write(system, file, 0, BLOCK, true));
            let behind = opened.backing.file();
            behind.write_all_at(&[9; 100], 10 * BLOCK).unwrap();
            system.write_back(inode, opened).unwrap();
            let end = 10 * BLOCK + 100;
            assert_eq!(inode.size.load(Ordering::Acquire), end);
            assert_eq!(opened.cached.end(), Some(end));
            let conflicts = || system.counters.conflicts.load(Ordering::Relaxed);
            assert_eq!(conflicts(), 1);
            assert!(!system.look(inode, Ours::No).unwrap());
            assert_eq!((opened.cached.end(), conflicts()), (Some(end), 1));
        });
    }
}
