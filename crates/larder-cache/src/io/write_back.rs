//! Dirty blocks go to the storage.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use super::storage::Part;
use super::{Passing, Shared};
use crate::error::CacheError;
use crate::key::{FileId, Key};
use crate::state::{BATCH, State, Transfer};
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
}

/// What is next to be written.
enum Next<'c> {
    /// These, and then those from the key on.
    Batch(Batch<'c>, Key),
    /// A block that is being changed or written just now.
    Busy(Key, Frame),
    Nothing,
}

impl<'c> Batch<'c> {
    fn new(shared: &'c Shared) -> Self {
        let blocks = Vec::new();
        Self { shared, blocks }
    }

    /// Takes a block that is dirty and that no other thread writes. The caller holds the cache's lock, so that no
    /// thread sees the block held and not marked.
    fn take(&mut self, state: &mut State, key: Key, frame: Frame, page: BlockRef<'c>) {
        let transfer = state.begin_transfer(&self.shared.table, key, frame);
        self.blocks.push((transfer, page));
    }

    /// Writes them. Returns how many are clean now, and the first failure.
    fn write(mut self) -> (usize, Result<(), CacheError>) {
        let size = self.shared.block_size() as u64;
        let storage = &*self.shared.storage;
        let some = self.blocks.iter().filter(|(block, _)| block.len > 0);
        let mut parts: Vec<Part<&[u8]>> = some
            .map(|(block, page)| {
                let offset = block.key.index() * size;
                Part::new(block.file, offset, &page[..block.len])
            })
            .collect();
        if parts.len() > 1 {
            storage.write_many(&mut parts);
        }
        let mut parts = parts.into_iter();
        let mut finish = |(block, _): &(Transfer, BlockRef<'_>)| match block.len {
            0 => Ok(()),
            _ => parts.next().map_or(Ok(()), |part| part.write(storage)),
        };
        let ends: Vec<io::Result<()>> = self.blocks.iter().map(&mut finish).collect();
        drop(parts);
        let mut state = self.shared.state();
        let (mut clean, mut first) = (0, Ok(()));
        for ((block, _page), end) in core::mem::take(&mut self.blocks).into_iter().zip(ends) {
            match state.end_write(&self.shared.table, &block, end) {
                Ok(done) => clean += usize::from(done),
                Err(error) => first = first.and(Err(error)),
            }
        }
        self.shared.at_rest(state);
        (clean, first)
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
    /// Writes at least one block that no thread is changing, and up to 64, so that they can leave; goes on where it
    /// ended the last time, so that blocks that are written again and again do not keep it from the others. Returns how
    /// many; [`NOTHING`] if all are being changed.
    ///
    /// # Errors
    /// The first failure, if none could be written. A file of which a batch failed is passed over.
    pub(crate) fn write_some(&self) -> Result<usize, CacheError> {
        if let Some(written) = self.write_requested() {
            return Ok(written);
        }
        let start = *self.state().dirty().swept();
        let (mut from, mut until, mut failure) = (start, None, Ok(()));
        loop {
            match self.next(from, until, false) {
                Next::Batch(batch, next) => {
                    let last = batch.blocks.last().map_or(from, |(block, _)| block.key);
                    let (written, end) = batch.write();
                    if written != NOTHING {
                        *self.state().dirty().swept() = next;
                        return Ok(written);
                    }
                    from = match end {
                        Ok(()) => next,
                        Err(_) => Key::new(last.file() + 1, 0),
                    };
                    failure = failure.and(end);
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
            if !state.is_moving(frame)
                && let Some(page) = self.table.frames().try_read(frame, key)
            {
                batch.take(&mut state, key, frame, page);
            }
        }
        drop(state);
        // The next sync reports a failure.
        let written = batch.write().0;
        (written != NOTHING).then_some(written)
    }

    /// One call's portion of a pass over all dirty blocks, in batches. Blocks that another thread changes or writes just
    /// now wait for the next pass. The next sync reports what cannot be written.
    pub(crate) fn write_portion(&self) {
        let portion = self.state().dirty().begin_portion();
        let (mut from, mut tried) = (portion.from, 0);
        while tried < portion.share {
            let Next::Batch(batch, next) = self.next(from, None, false) else {
                from = Key::NONE;
                break;
            };
            tried += batch.blocks.len();
            drop(batch.write());
            from = next;
        }
        self.state().dirty().end_portion(&portion, from);
    }

    /// Writes all dirty blocks of a file, or of all, in order, waiting for those that another thread is changing.
    ///
    /// # Errors
    /// The first failure; the other blocks are written all the same.
    pub(crate) fn write_back(&self, file: Option<u32>) -> Result<(), CacheError> {
        let mut from = Key::new(file.unwrap_or(0), 0);
        let until = file.map(|file| Key::new(file + 1, 0));
        let mut first = Ok(());
        loop {
            match self.next(from, until, true) {
                Next::Batch(batch, next) => {
                    first = first.and(batch.write().1);
                    from = next;
                }
                Next::Busy(key, frame) => {
                    from = key;
                    if let Some(batch) = self.wait_for(key, frame) {
                        first = first.and(batch.write().1);
                        from = Key(key.0 + 1);
                    }
                }
                Next::Nothing => return first,
            }
        }
    }

    /// Dirty blocks from a key on, in order. With `wait` it does not go past one that is busy. It does not wait itself
    /// with blocks in hand: the thread that it would wait for may want these.
    fn next(&self, from: Key, until: Option<Key>, wait: bool) -> Next<'_> {
        let mut batch = Batch::new(self);
        let mut state = self.state();
        let until = until.unwrap_or(Key::NONE);
        let mut next = from;
        while batch.blocks.len() < BATCH && next < until {
            let Some((key, frame)) = state.dirty().next(next, until) else {
                break;
            };
            let page = match state.is_moving(frame) {
                true => None,
                false => self.table.frames().try_read(frame, key),
            };
            match page {
                Some(page) => batch.take(&mut state, key, frame, page),
                None if wait && batch.blocks.is_empty() => return Next::Busy(key, frame),
                None if wait => break,
                None => {}
            }
            next = Key(key.0 + 1);
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
        if state.is_moving(frame) || state.dirty().get(key).is_none() {
            // Let go before the lock is.
            drop(page);
            return None;
        }
        batch.take(&mut state, key, frame, page?);
        drop((state, passing));
        Some(batch)
    }

    /// Writes the dirty blocks that no thread holds, and reports no error.
    pub(crate) fn write_unheld(&self) {
        let mut from = Key(0);
        while let Next::Batch(batch, next) = self.next(from, None, false) {
            drop(batch.write());
            from = next;
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
