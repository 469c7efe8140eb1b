//! Inodes: what the mount knows of each file and directory of the source.
//!
//! The kernel knows an inode by its node id, the source by device and number. An inode is here as long as the kernel looks at it, a
//! file is open, or its content is not yet with the source; after that it is idle, and leaves when there are too many. Its fields
//! come from an object cache, whose locks are made once.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use larder::objects::{Family, ObjectCache, OwnedObject};
use larder_cache::CachedFile;
use parking_lot::RwLock;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::data::OpenFile;
use crate::error::FsError;
use crate::source::Backing;
use crate::system::{Attr, Sys, Time};
use crate::table::Table;
use crate::transport::BackingId;

/// Bytes that an inode takes, about: its fields, its places in the tables, its name.
pub(crate) const INODE_BYTES: usize = 920;

const SHARDS: usize = 64;

/// What this mount changed of a file itself just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ours {
    /// Nothing: what is new was done by others.
    No,
    /// Its attributes or names, which changes the time of change.
    Attributes,
    /// Its time of modification too.
    Times,
}

/// What the source said at the last look. If it says something else later, and this mount did not do it, the file was changed by
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
    pub(crate) size: u64,
}

impl Seen {
    pub(crate) fn of(attr: &Attr) -> Self {
        Self {
            mtime: attr.mtime,
            ctime: attr.ctime,
            size: attr.size,
        }
    }
}

/// Attributes, as programs see them.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) attr: Attr,
    pub(crate) seen: Seen,
    /// When the source was asked last.
    pub(crate) checked: Option<Instant>,
    /// Counts what the source said that was new: an answer to a question from before that may be out of date.
    pub(crate) version: u64,
    /// Content, size or times are newer here than with the source.
    pub(crate) changed: bool,
    /// Others have changed the content meanwhile: it is read anew when the source has all that is newer here.
    pub(crate) conflict: bool,
    /// Calls under way by which this mount changes attributes or names.
    own_attributes: u32,
    /// Calls under way by which this mount changes times.
    own_times: u32,
    /// The source's time of change after write-back, and the one that programs saw before: the former is that of the write-back,
    /// which is no change that they made.
    pub(crate) shown: Option<(Time, Time)>,
    /// Times of a directory when the kernel was allowed to keep its list.
    pub(crate) listed: Option<(Time, Time)>,
}

impl State {
    fn own_calls(&mut self, what: Ours) -> &mut u32 {
        match what {
            Ours::Times => &mut self.own_times,
            _ => &mut self.own_attributes,
        }
    }

    /// What this mount may have changed: what the asking thread did, and what calls under way do.
    fn ours(&self, ours: Ours) -> Ours {
        let under_way = match (self.own_attributes, self.own_times) {
            (0, 0) => Ours::No,
            (_, 0) => Ours::Attributes,
            _ => Ours::Times,
        };
        ours.max(under_way)
    }

    /// Whether others have changed the content, by what the source says now.
    pub(crate) fn is_outside(&self, new: &Attr, ours: Ours) -> bool {
        let (seen, former) = (Seen::of(new), self.seen);
        match self.ours(ours) {
            Ours::No => seen != former,
            Ours::Attributes => (seen.mtime, seen.size) != (former.mtime, former.size),
            Ours::Times => seen.size != former.size,
        }
    }

    /// Keeps what the source says now, as far as nothing is newer here.
    pub(crate) fn keep(&mut self, new: Attr, ours: Ours) {
        let seen = Seen::of(&new);
        self.checked = Some(Instant::now());
        self.version += u64::from(seen != self.seen);
        self.seen = seen;
        if self.changed {
            let former = self.attr;
            self.attr = Attr {
                mtime: former.mtime,
                ctime: match ours {
                    Ours::No => former.ctime,
                    _ => former.ctime.max(new.ctime),
                },
                blocks: new.blocks.max(former.blocks),
                ..new
            };
        } else {
            self.shown = self.shown.filter(|&(source, _)| source == new.ctime);
            let ctime = self.shown.map_or(new.ctime, |(_, shown)| shown);
            self.attr = Attr { ctime, ..new };
        }
    }
}

/// A call by which this mount changes an inode itself, until the look at what came of it is done.
pub(crate) struct Own<'i> {
    inode: &'i Inode,
    what: Ours,
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        *self.inode.state().own_calls(self.what) -= 1;
    }
}

/// The data of a file that is open, or was a moment ago.
pub(crate) struct Opened {
    pub(crate) backing: Arc<Backing>,
    pub(crate) cached: CachedFile,
}

/// What changes of an inode.
#[derive(Default)]
pub(crate) struct Fields {
    /// Answers to the kernel that named this inode and were not taken back yet.
    lookups: AtomicU64,
    /// Open files; changed under the lock of `opened`.
    pub(crate) opens: AtomicU32,
    /// Something was asked of it since the last look for inodes to be given up.
    pub(crate) used: AtomicBool,
    idle: AtomicBool,
    /// There may be blocks of it in the cache.
    pub(crate) has_blocks: AtomicBool,
    /// Size of a regular file.
    pub(crate) size: AtomicU64,
    /// Reading and writing within the file's size is shared; all that changes size or content otherwise is exclusive.
    pub(crate) io: RwLock<()>,
    pub(crate) state: Mutex<State>,
    pub(crate) opened: Mutex<Option<Arc<Opened>>>,
    /// For requests that name no open file.
    lasting: Mutex<Option<Arc<OpenFile>>>,
    /// The directory and the name by which it was found last.
    place: Mutex<Option<(u64, Box<[u8]>)>>,
    pub(crate) passthrough: Mutex<Weak<BackingId>>,
}

pub(crate) struct Inode {
    /// The kernel's node id, and the file's number in the block cache.
    pub(crate) id: u64,
    key: (u64, u64),
    pub(crate) kind: FileType,
    fd: OwnedFd,
    fields: OwnedObject<Fields>,
}

impl Deref for Inode {
    type Target = Fields;
    fn deref(&self) -> &Fields {
        &self.fields
    }
}

impl Inode {
    fn new(id: u64, fd: OwnedFd, attr: Attr, mut fields: OwnedObject<Fields>) -> Self {
        // What another inode left in them.
        *fields = Fields::default();
        *fields.size.get_mut() = attr.size;
        let state = fields
            .state
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        state.attr = attr;
        state.seen = Seen::of(&attr);
        state.checked = Some(Instant::now());
        Self {
            id,
            key: attr.key(),
            kind: attr.file_type(),
            fd,
            fields,
        }
    }

    /// A descriptor for its path only.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn opened(&self) -> MutexGuard<'_, Option<Arc<Opened>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lasting(&self) -> MutexGuard<'_, Option<Arc<OpenFile>>> {
        self.lasting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None while another thread opens it.
    pub(crate) fn try_lasting(&self) -> Option<MutexGuard<'_, Option<Arc<OpenFile>>>> {
        self.lasting.try_lock().ok()
    }

    /// While this is there, what a look finds is not taken for a change by others that this mount may have made.
    pub(crate) fn own(&self, what: Ours) -> Own<'_> {
        *self.state().own_calls(what) += 1;
        Own { inode: self, what }
    }

    /// The mount wrote to the source's file since its times were known.
    pub(crate) fn is_touched(&self) -> bool {
        let opened = self.opened();
        opened
            .as_ref()
            .is_some_and(|opened| opened.backing.is_touched())
    }

    /// The next look at its attributes asks the source.
    pub(crate) fn stale(&self) {
        self.state().checked = None;
    }

    /// No name leads to it.
    pub(crate) fn is_dead(&self) -> bool {
        self.state().attr.nlink == 0
    }

    /// The kernel looks at it.
    pub(crate) fn is_known(&self) -> bool {
        self.lookups.load(Ordering::Acquire) > 0
    }

    /// Neither the kernel nor an open file needs it.
    pub(crate) fn is_unused(&self) -> bool {
        !self.is_known() && self.opens.load(Ordering::Acquire) == 0
    }

    pub(crate) fn place(&self) -> Option<(u64, Box<[u8]>)> {
        self.place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_place(&self, parent: u64, name: &[u8]) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if !place
            .as_ref()
            .is_some_and(|(dir, had)| *dir == parent && **had == *name)
        {
            *place = Some((parent, name.into()));
        }
    }
}

type Known = HashMap<(u64, u64), Arc<Inode>>;

/// Takes an inode out of those that are known by their numbers, unless another one is there.
fn remove_known(known: &mut Known, inode: &Inode) -> Option<Arc<Inode>> {
    let there = known.get(&inode.key)?.id == inode.id;
    there.then(|| known.remove(&inode.key)).flatten()
}

/// All of them.
pub(crate) struct Inodes {
    table: Table<Inode>,
    known: [Mutex<Known>; SHARDS],
    fields: ObjectCache<Fields>,
    idle: Mutex<VecDeque<u64>>,
    /// As many as the budget allows.
    most: AtomicUsize,
}

impl Inodes {
    /// The root is number 1, as the kernel wants it.
    pub(crate) fn new(
        family: &Family,
        most: usize,
        root: OwnedFd,
        attr: Attr,
    ) -> Result<(Self, Arc<Inode>), FsError> {
        let no_memory = |error: String| FsError::Memory(error);
        let fields = ObjectCache::new(family, Fields::default);
        let fields = fields.map_err(|error| no_memory(error.to_string()))?;
        // The kernel gives names up later than it is asked to.
        let numbers = (most * 4 + (1 << 16)).min(1 << 24) as u32;
        let table = Table::new(numbers).map_err(|error| no_memory(error.to_string()))?;
        let inodes = Self {
            table,
            known: std::array::from_fn(|_| Mutex::default()),
            fields,
            idle: Mutex::default(),
            most: AtomicUsize::new(most),
        };
        let body = inodes
            .fields
            .get_owned()
            .map_err(|error| no_memory(error.to_string()))?;
        let root = Arc::new(Inode::new(1, root, attr, body));
        root.lookups.store(1, Ordering::Release);
        let first = inodes.table.add_first(Arc::clone(&root));
        first.map_err(|error| no_memory(error.to_string()))?;
        inodes
            .shard(attr.key())
            .insert(attr.key(), Arc::clone(&root));
        Ok((inodes, root))
    }

    fn shard(&self, key: (u64, u64)) -> MutexGuard<'_, Known> {
        let at = (key.1 ^ key.1 >> 7 ^ key.0) as usize % SHARDS;
        self.known[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// `ESTALE`: there is no inode with this node id any more.
    pub(crate) fn get(&self, id: u64) -> Sys<Arc<Inode>> {
        let inode = self.table.get(id).ok_or(Errno::STALE)?;
        inode.used.store(true, Ordering::Relaxed);
        Ok(inode)
    }

    /// The inode of a file, for so many answers to the kernel.
    pub(crate) fn find(&self, key: (u64, u64), lookups: u64) -> Option<Arc<Inode>> {
        let known = self.shard(key);
        let inode = known.get(&key)?;
        inode.lookups.fetch_add(lookups, Ordering::AcqRel);
        Some(Arc::clone(inode))
    }

    /// The inode of a file that was not known a moment ago, for one answer to the kernel.
    pub(crate) fn add(&self, fd: OwnedFd, attr: Attr) -> Sys<Arc<Inode>> {
        let key = attr.key();
        let mut known = self.shard(key);
        if let Some(inode) = known.get(&key) {
            inode.lookups.fetch_add(1, Ordering::AcqRel);
            return Ok(Arc::clone(inode));
        }
        let body = self.fields.get_owned().map_err(|_| Errno::NOMEM)?;
        let make = |id| Some(Arc::new(Inode::new(id, fd, attr, body)));
        let inode = self.table.add(make).ok_or(Errno::NFILE)?;
        inode.lookups.store(1, Ordering::Release);
        known.insert(key, Arc::clone(&inode));
        Ok(inode)
    }

    /// The kernel takes back so many answers.
    pub(crate) fn forget(&self, inode: &Inode, lookups: u64) {
        let _known = self.shard(inode.key);
        let had = inode.lookups.load(Ordering::Acquire);
        inode
            .lookups
            .store(had.saturating_sub(lookups), Ordering::Release);
    }

    /// It is kept until there are too many.
    pub(crate) fn rest(&self, inode: &Inode) {
        if !inode.idle.swap(true, Ordering::AcqRel) {
            self.idle().push_back(inode.id);
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn idle_len(&self) -> usize {
        self.idle().len()
    }

    /// The one that is idle for longest.
    pub(crate) fn next_idle(&self) -> Option<Arc<Inode>> {
        loop {
            let id = self.idle().pop_front()?;
            if let Some(inode) = self.table.get(id) {
                inode.idle.store(false, Ordering::Release);
                if inode.is_unused() {
                    return Some(inode);
                }
            }
        }
    }

    /// Gives an inode up, if it is unused still. Its node id is stale from then on.
    pub(crate) fn remove(&self, inode: &Inode) -> bool {
        let mut known = self.shard(inode.key);
        if !inode.is_unused() {
            return false;
        }
        let gone = remove_known(&mut known, inode);
        drop(known);
        drop(gone);
        self.table.remove(inode.id).is_some()
    }

    /// The source has another file with its number now: the next look for that one makes a new inode.
    pub(crate) fn disown(&self, inode: &Inode) {
        let gone = remove_known(&mut self.shard(inode.key), inode);
        drop(gone);
    }

    /// The next one at or behind a slot, in no order, and its slot.
    pub(crate) fn next(&self, from: usize) -> Option<(usize, Arc<Inode>)> {
        self.table.next(from)
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// The budget allows so many from now on, up to those of [`new`](Self::new).
    pub(crate) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Bytes of the inodes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes() + self.len() * INODE_BYTES
    }

    /// All are given up: the mount has ended.
    pub(crate) fn clear(&self) {
        for shard in &self.known {
            let known = core::mem::take(&mut *shard.lock().unwrap_or_else(PoisonError::into_inner));
            drop(known);
        }
        // Some have lost their number.
        while let Some((_, inode)) = self.next(0) {
            *inode.lasting() = None;
            *inode.opened() = None;
            self.table.remove(inode.id);
        }
    }
}
