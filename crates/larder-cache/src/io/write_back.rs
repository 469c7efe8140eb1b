//! Dirty blocks go to the storage.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use super::storage::Part;
use super::{Passing, Shared};
use crate::error::CacheError;
use crate::key::{FileId, Key, MOST_INDEX};
use crate::state::{Age, BATCH, State, Transfer};
use crate::sync::{AtomicU64, Ordering};
use crate::table::BlockRef;
use larder::internal::fork_generation;
use larder_policy::Frame;

/// No block could be written, because all that are dirty are held.
pub(super) const NOTHING: usize = 0;

/// Blocks that go together, each held so that no thread changes it. They are marked as moving until this is dropped, also by a panic
/// of the storage: they are dirty still then.
struct Batch<'c> {
    shared: &'c Shared,
    blocks: Vec<(Transfer, BlockRef<'c>)>,
    /// So many of them go in any order. With the others, which are of one file, the storage's file grows: they go in theirs.
    unordered: usize,
}

/// What became of a batch.
struct Written {
    /// Blocks that are clean now.
    clean: usize,
    /// The first failure.
    end: Result<(), CacheError>,
    /// A file that could not grow: nothing behind can be written now.
    stuck: Option<u32>,
}

impl Written {
    /// Where to go on, after a batch behind which `next` comes.
    fn from(&self, next: Key) -> Key {
        self.stuck.map_or(next, |file| Key::new(file + 1, 0))
    }
}

/// What is next to be written.
enum Next<'c> {
    /// These, and then those from the key on.
    Batch(Batch<'c>, Key),
    /// A block that is being changed or written just now.
    Busy(Key, Frame),
    Nothing,
}

/// Which dirty blocks are to be written.
#[derive(Clone, Copy)]
enum Wanted {
    /// All of them, also those that another thread changes or writes just now.
    All,
    /// Those that no other thread has; with a file, those that share their frames with its blocks.
    Free(Option<u32>),
    /// Of these, those that are dirty since then or longer.
    Old(Age),
}

impl<'c> Batch<'c> {
    fn new(shared: &'c Shared) -> Self {
        Self {
            shared,
            blocks: Vec::new(),
            unordered: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.blocks.len() >= BATCH
    }

    /// Takes a block that is dirty, and before it those that must be with the storage first. The caller holds the cache's lock,
    /// so that no thread sees a block held and not marked.
    ///
    /// # Errors
    /// One of them that is being changed or written just now. Those before it were taken.
    fn take(&mut self, state: &mut State, key: Key, frame: Frame) -> Result<(), (Key, Frame)> {
        let Some(first) = state.grows(&self.shared.table, key) else {
            self.take_one(state, key, frame)?;
            self.unordered = self.blocks.len();
            return Ok(());
        };
        let last = self.last_ordered().map(|last| Key(last.0 + 1));
        let mut next = last.unwrap_or(first);
        let behind = Key(key.0 + 1);
        while !self.is_full()
            && let Some((key, frame)) = state.dirty().next(next, behind)
        {
            self.take_one(state, key, frame)?;
            next = Key(key.0 + 1);
        }
        Ok(())
    }

    fn take_one(&mut self, state: &mut State, key: Key, frame: Frame) -> Result<(), (Key, Frame)> {
        let page = match state.is_moving(frame) {
            true => None,
            false => self.shared.table.frames().try_read(frame, key),
        };
        self.put(state, key, frame, page.ok_or((key, frame))?);
        Ok(())
    }

    /// Takes a block that the caller holds.
    fn put(&mut self, state: &mut State, key: Key, frame: Frame, page: BlockRef<'c>) {
        let transfer = state.begin_transfer(&self.shared.table, key, frame);
        self.blocks.push((transfer, page));
    }

    /// The last block, if a file grows with it.
    fn last_ordered(&self) -> Option<Key> {
        let (block, _) = self.blocks[self.unordered..].last()?;
        Some(block.key)
    }

    /// A block of this file may go with the others: no other file grows.
    fn admits(&self, key: Key) -> bool {
        self.last_ordered()
            .is_none_or(|last| last.file() == key.file())
    }

    /// Writes them.
    fn write(mut self) -> Written {
        let size = self.shared.block_size() as u64;
        let storage = &*self.shared.storage;
        // What lies behind the end of its file is not written, and clean.
        let is_some = |(block, _): &&(Transfer, BlockRef<'_>)| block.len > 0;
        let unordered = self.blocks[..self.unordered].iter().filter(is_some).count();
        let some = self.blocks.iter().filter(is_some);
        let mut parts: Vec<Part<&[u8]>> = some
            .map(|(block, page)| {
                let offset = block.key.index() * size;
                Part::new(block.file, offset, &page[..block.len])
            })
            .collect();
        let (any, ordered) = parts.split_at_mut(unordered);
        if any.len() > 1 {
            storage.write_many(any);
        }
        if ordered.len() > 1 {
            storage.write_in_order(ordered);
        }
        let mut parts = parts.into_iter();
        let mut stuck = None;
        let mut finish = |(at, (block, _)): (usize, &(Transfer, BlockRef<'_>))| {
            let end = match block.len {
                _ if stuck.is_some() => return None,
                0 => Ok(()),
                _ => parts.next().map_or(Ok(()), |part| part.write(storage)),
            };
            if end.is_err() && at >= self.unordered {
                stuck = Some(block.key.file());
            }
            Some(end)
        };
        let ends: Vec<Option<io::Result<()>>> =
            self.blocks.iter().enumerate().map(&mut finish).collect();
        drop(parts);
        let mut state = self.shared.state();
        let (mut clean, mut first) = (0, Ok(()));
        for ((block, _page), end) in core::mem::take(&mut self.blocks).into_iter().zip(ends) {
            let Some(end) = end else {
                state.cancel_write(&block);
                continue;
            };
            match state.end_write(&self.shared.table, &block, end) {
                Ok(done) => clean += usize::from(done),
                Err(error) => first = first.and(Err(error)),
            }
        }
        self.shared.at_rest(state);
        Written {
            clean,
            end: first,
            stuck,
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if !self.blocks.is_empty() {
            let mut state = self.shared.state();
            for (block, _page) in self.blocks.drain(..) {
                state.cancel_write(&block);
            }
            self.shared.at_rest(state);
        }
    }
}

impl Shared {
    /// Writes at least one block that no thread is changing, and up to 64, so that they can leave: for a block of this file, or for any.
    /// Goes on where it ended the last time, so that blocks that are written again and again do not keep it from the others. Returns how
    /// many; [`NOTHING`] if all are being changed.
    ///
    /// # Errors
    /// The first failure, if none could be written. A file of which a batch failed is passed over.
    pub(crate) fn write_some(&self, with: Option<u32>) -> Result<usize, CacheError> {
        if let Some(written) = self.write_requested() {
            return Ok(written);
        }
        let start = *self.state().swept(with);
        let (mut from, mut until, mut failure) = (start, None, Ok(()));
        loop {
            match self.next(from, until, Wanted::Free(with)) {
                Next::Batch(batch, next) => {
                    let last = batch.blocks.last().map_or(from, |(block, _)| block.key);
                    let written = batch.write();
                    if written.clean != NOTHING {
                        *self.state().swept(with) = written.from(next);
                        return Ok(written.clean);
                    }
                    from = match written.end {
                        Ok(()) => next,
                        Err(_) => Key::new(last.file() + 1, 0),
                    };
                    failure = failure.and(written.end);
                }
                _ if until.is_none() => (from, until) = (Key(0), Some(start)),
                _ => return failure.map(|()| NOTHING),
            }
        }
    }

    /// Writes the dirty blocks for which the rule has asked, in order. None if there are none, or none could be written.
    fn write_requested(&self) -> Option<usize> {
        let mut batch = Batch::new(self);
        let mut state = self.state();
        for (key, frame) in state.dirty().take_requested() {
            if !batch.is_full() && batch.admits(key) {
                // What is busy, or comes behind such a one, waits for the next request.
                let _ = batch.take(&mut state, key, frame);
            }
        }
        drop(state);
        // The next sync reports a failure.
        let written = batch.write().clean;
        (written != NOTHING).then_some(written)
    }

    /// Writes the blocks that are dirty for so long that they are to go, in order, and as many others as are dirty beyond the
    /// share. Blocks that another thread changes or writes just now wait for the next call. The next sync reports what cannot
    /// be written.
    pub(crate) fn write_old(&self) {
        let age = self.state().dirty().age();
        let mut from = Key(0);
        loop {
            // In windows, so that a look at many young ones does not keep the cache's lock.
            let Some(until) = self.state().dirty().window(from) else {
                break;
            };
            while let Next::Batch(batch, next) = self.next(from, Some(until), Wanted::Old(age)) {
                from = batch.write().from(next);
            }
            from = from.max(until);
        }
        from = Key(0);
        while self.state().has_dirty_beyond_share()
            && let Next::Batch(batch, next) = self.next(from, None, Wanted::Free(None))
        {
            from = batch.write().from(next);
        }
    }

    /// Writes all dirty blocks of a file, or of all, in order, waiting for those that another thread is changing. Of those that become
    /// dirty meanwhile it writes none behind the last one there was: a thread that appends could make more of them than are written.
    ///
    /// # Errors
    /// The first failure; the other blocks are written all the same.
    pub(crate) fn write_back(&self, file: Option<u32>) -> Result<(), CacheError> {
        let mut from = Key::new(file.unwrap_or(0), 0);
        // Blocks that are being written, or are changed without the lock, are among the dirty ones.
        let Some(last) = self.state().dirty().last(file) else {
            return Ok(());
        };
        let until = Some(Key(last.0 + 1));
        let mut first = Ok(());
        loop {
            match self.next(from, until, Wanted::All) {
                Next::Batch(batch, next) => {
                    let written = batch.write();
                    from = written.from(next);
                    first = first.and(written.end);
                }
                Next::Busy(key, frame) => {
                    from = key;
                    if let Some(batch) = self.wait_for(key, frame) {
                        let written = batch.write();
                        from = written.from(Key(key.0 + 1));
                        first = first.and(written.end);
                    }
                }
                Next::Nothing => return first,
            }
        }
    }

    /// Dirty blocks from a key on, in order, and before them those that must be with the storage first, which may be before the
    /// key. It does not wait with blocks in hand: the thread that it would wait for may want these.
    fn next(&self, from: Key, until: Option<Key>, wanted: Wanted) -> Next<'_> {
        let mut batch = Batch::new(self);
        let mut state = self.state();
        let until = until.unwrap_or(Key::NONE);
        let mut next = from;
        while !batch.is_full() && next < until {
            let found = match wanted {
                Wanted::Old(since) => state.dirty().next_old(next, until, since),
                Wanted::Free(with) => state.next_dirty(next, until, with),
                Wanted::All => state.dirty().next(next, until),
            };
            let Some((key, frame)) = found.filter(|&(key, _)| batch.admits(key)) else {
                break;
            };
            let taken = batch.take(&mut state, key, frame);
            next = match (taken, wanted) {
                (Ok(()), _) => batch.last_ordered().unwrap_or(key),
                (Err((key, frame)), Wanted::All) if batch.blocks.is_empty() => {
                    return Next::Busy(key, frame);
                }
                (Err((busy, _)), Wanted::All) => {
                    next = busy;
                    break;
                }
                // Nothing that comes behind it can grow the file.
                (Err(_), _) if state.grows(&self.table, key).is_some() => {
                    Key::new(key.file(), MOST_INDEX)
                }
                (Err(_), _) => key,
            };
            next = Key(next.0 + 1);
        }
        drop(state);
        match batch.blocks.is_empty() {
            true => Next::Nothing,
            false => Next::Batch(batch, next),
        }
    }

    /// Waits for the thread that changes or writes a block. A block that was changed is handed out, so that no other
    /// change comes first.
    fn wait_for(&self, key: Key, frame: Frame) -> Option<Batch<'_>> {
        let mut batch = Batch::new(self);
        let mut state = self.state();
        if state.is_moving(frame) {
            self.wait_for_move(state);
            return None;
        }
        state.dirty().get(key)?;
        let mut page = self.table.frames().try_read(frame, key);
        let mut passing = None;
        if page.is_none() {
            drop(state);
            while passing.is_none() && self.table.frames().wait_for_writer(frame, key) {
                let soon = Passing::new(self);
                page = self.table.frames().push(frame, key);
                passing = page.is_some().then_some(soon);
            }
            state = self.state();
        }
        let first = state.grows(&self.table, key);
        if state.is_moving(frame)
            || state.dirty().get(key).is_none()
            || first.is_some_and(|first| first != key)
        {
            // Let go before the lock is.
            drop(page);
            return None;
        }
        batch.put(&mut state, key, frame, page?);
        batch.unordered = usize::from(first.is_none());
        drop((state, passing));
        Some(batch)
    }

    /// Writes the dirty blocks that no thread holds, and reports no error.
    pub(crate) fn write_unheld(&self) {
        let mut from = Key(0);
        while let Next::Batch(batch, next) = self.next(from, None, Wanted::Free(None)) {
            from = batch.write().from(next);
        }
    }

    /// Writes a file's dirty blocks and syncs it. `seen` is how many failures of the file the opener knows of.
    ///
    /// # Errors
    /// What could not be written, or the latest failure that the opener does not know of.
    pub(crate) fn sync(&self, file: u32, id: FileId, seen: &AtomicU64) -> Result<(), CacheError> {
        let syncing = self.state().file(file).syncing();
        let _one_at_a_time = syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.write_back(Some(file));
        self.sync_storage(file, id);
        let before = seen.load(Ordering::Relaxed);
        let (failures, outcome) = self.state().file(file).outcome(before);
        seen.store(failures, Ordering::Relaxed);
        written.and(outcome)
    }

    /// Syncs the storage. If that fails, what was written since the last time counts as not written: what a system does with
    /// blocks that it could not sync is its own affair, and syncing again may succeed without them.
    fn sync_storage(&self, file: u32, id: FileId) {
        let mut sync = Sync {
            shared: self,
            file,
            begun: self.state().begin_sync(file),
            end: Err(io::Error::other("the storage panicked")),
        };
        sync.end = self.storage.sync(id);
    }
}

/// A sync, which has failed unless it is said to have succeeded, also after a panic of the storage.
struct Sync<'c> {
    shared: &'c Shared,
    file: u32,
    begun: u64,
    end: io::Result<()>,
}

impl Drop for Sync<'_> {
    fn drop(&mut self) {
        let end = core::mem::replace(&mut self.end, Ok(()));
        self.shared.state().end_sync(self.file, self.begun, end);
    }
}

/// What is dirty is written, as [`BlockCache`](crate::BlockCache) says. A guard that was forgotten keeps its block from that. The
/// child of a fork writes nothing: its parent may have written something newer since.
impl Drop for Shared {
    fn drop(&mut self) {
        if self.generation != fork_generation() {
            return;
        }
        // A storage that panics must not end the process when this happens in another panic.
        let write = || self.write_unheld();
        let _ = catch_unwind(AssertUnwindSafe(write));
    }
}
