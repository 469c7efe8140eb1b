//! Dirty blocks go to the storage.

use std::io;
use std::sync::Arc;

use super::batch::WritePart;
use super::cache::Shared;
use super::error::CacheError;
use super::frames::BlockRef;
use super::inner::Inner;
use super::key::{FileId, Key};
use super::sync::Ordering;
use larder_policy::Frame;

/// Blocks that are written at once.
pub(super) const BATCH: usize = 64;

/// No block could be written, because all that are dirty are held.
pub(super) const NOTHING: usize = 0;

/// A dirty block that goes to the storage. No thread changes it meanwhile.
struct Going<'c> {
    key: Key,
    frame: Frame,
    page: BlockRef<'c>,
    file: FileId,
    /// Bytes of it that the file has.
    len: usize,
    /// Syncs of the file that had failed when the write began.
    failed_syncs: u64,
}

/// Blocks that go together. They are marked as moving until this is dropped, also by a panic of the storage: they are dirty still
/// then.
struct Batch<'c> {
    shared: &'c Shared,
    blocks: Vec<Going<'c>>,
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
    fn take(&mut self, inner: &mut Inner, key: Key, frame: Frame, page: BlockRef<'c>) {
        let size = page.len() as u64;
        let opened = &inner.files[key.file() as usize];
        let within = opened.end.saturating_sub(key.index() * size).min(size);
        inner.moving.put(frame);
        self.blocks.push(Going {
            key,
            frame,
            page,
            file: opened.id,
            len: within as usize,
            failed_syncs: opened.failed_syncs,
        });
    }

    /// Writes them. Returns how many are clean now, and the first failure.
    fn write(mut self) -> (usize, Result<(), CacheError>) {
        let size = self.shared.block_size() as u64;
        let storage = &*self.shared.storage;
        let some = self.blocks.iter().filter(|block| block.len > 0);
        let mut parts: Vec<WritePart<'_>> = some
            .map(|block| {
                let offset = block.key.index() * size;
                WritePart::new(block.file, offset, &block.page[..block.len])
            })
            .collect();
        if parts.len() > 1 {
            storage.write_many(&mut parts);
        }
        let mut parts = parts.into_iter();
        let mut finish = |block: &Going<'_>| match block.len {
            0 => Ok(()),
            _ => parts.next().map_or(Ok(()), |part| part.finish(storage)),
        };
        let ends: Vec<io::Result<()>> = self.blocks.iter().map(&mut finish).collect();
        drop(parts);
        let mut inner = self.shared.inner();
        let (mut clean, mut first) = (0, Ok(()));
        for (block, end) in core::mem::take(&mut self.blocks).into_iter().zip(ends) {
            inner.moving.take(block.frame);
            match inner.written(&block, end) {
                Ok(done) => {
                    if done {
                        // The block is still held. The next change marks it again.
                        self.shared.changed.take(block.frame);
                        // The next use is reported, and from then on the block can be pinned.
                        self.shared.frames.unmark(block.frame);
                    }
                    clean += usize::from(done);
                }
                Err(error) => first = first.and(Err(error)),
            }
        }
        self.shared.at_rest(inner);
        (clean, first)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if !self.blocks.is_empty() {
            let mut inner = self.shared.inner();
            for block in self.blocks.drain(..) {
                inner.moving.take(block.frame);
            }
            self.shared.at_rest(inner);
        }
    }
}

impl Inner {
    /// A block was written, or could not be. True if it is clean now.
    fn written(&mut self, block: &Going<'_>, end: io::Result<()>) -> Result<bool, CacheError> {
        let opened = &mut self.files[block.key.file() as usize];
        match end {
            // A sync that failed meanwhile may have been this write's, and will not be reported again.
            Ok(()) if opened.failed_syncs != block.failed_syncs => Ok(false),
            Ok(()) => {
                let syncs = opened.syncs;
                opened.stats.written += 1;
                self.clean(block.key);
                self.unsynced.written(block.key, block.frame, syncs);
                self.counts.written += 1;
                Ok(true)
            }
            Err(error) => {
                let error = CacheError::Write {
                    file: block.file,
                    index: block.key.index(),
                    source: Arc::new(error),
                };
                opened.failures += 1;
                opened.failure = Some(error.clone());
                self.counts.write_errors += 1;
                Err(error)
            }
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
    pub(super) fn write_some(&self) -> Result<usize, CacheError> {
        if let Some(written) = self.write_asked() {
            return Ok(written);
        }
        let start = self.inner().swept;
        let (mut from, mut until, mut failure) = (start, None, Ok(()));
        loop {
            match self.next(from, until, false) {
                Next::Batch(batch, next) => {
                    let last = batch.blocks.last().map_or(from, |block| block.key);
                    let (written, end) = batch.write();
                    if written != NOTHING {
                        self.inner().swept = next;
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
    fn write_asked(&self) -> Option<usize> {
        let mut batch = Batch::new(self);
        let mut inner = self.inner();
        for key in core::mem::take(&mut inner.asked) {
            if let Some(&frame) = inner.dirty.get(&key)
                && !inner.moving.has(frame)
                && let Some(page) = self.frames.try_read(frame, key)
            {
                batch.take(&mut inner, key, frame, page);
            }
        }
        drop(inner);
        // The next sync reports a failure.
        let written = batch.write().0;
        (written != NOTHING).then_some(written)
    }

    /// One call's part of a pass over all dirty blocks, in batches. Blocks that another thread changes or writes just
    /// now wait for the next pass. The next sync reports what cannot be written.
    pub(super) fn write_part(&self) {
        let part = {
            let mut inner = self.inner();
            let dirty = inner.dirty.len();
            inner.round.call(dirty)
        };
        let (mut from, mut tried) = (part.from, 0);
        while tried < part.share {
            let Next::Batch(batch, next) = self.next(from, None, false) else {
                from = Key::NONE;
                break;
            };
            tried += batch.blocks.len();
            drop(batch.write());
            from = next;
        }
        self.inner().round.came(&part, from);
    }

    /// Writes all dirty blocks of a file, or of all, in order, waiting for those that another thread is changing.
    ///
    /// # Errors
    /// The first failure; the other blocks are written all the same.
    pub(super) fn write_back(&self, file: Option<u32>) -> Result<(), CacheError> {
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
        let mut inner = self.inner();
        let until = until.unwrap_or(Key::NONE);
        let mut next = from;
        while batch.blocks.len() < BATCH && next < until {
            let Some((&key, &frame)) = inner.dirty.range(next..until).next() else {
                break;
            };
            let page = match inner.moving.has(frame) {
                true => None,
                false => self.frames.try_read(frame, key),
            };
            match page {
                Some(page) => batch.take(&mut inner, key, frame, page),
                None if wait && batch.blocks.is_empty() => return Next::Busy(key, frame),
                None if wait => break,
                None => {}
            }
            next = Key(key.0 + 1);
        }
        drop(inner);
        match batch.blocks.is_empty() {
            true => Next::Nothing,
            false => Next::Batch(batch, next),
        }
    }

    /// Waits for the thread that changes or writes a block. A block that was changed is handed out, so that no other
    /// change comes first.
    fn wait_for(&self, key: Key, frame: Frame) -> Option<Batch<'_>> {
        let mut batch = Batch::new(self);
        let mut inner = self.inner();
        if inner.moving.has(frame) {
            self.wait_for_load(inner);
            return None;
        }
        if !inner.dirty.contains_key(&key) {
            return None;
        }
        let mut page = self.frames.try_read(frame, key);
        let mut passing = None;
        if page.is_none() {
            drop(inner);
            while passing.is_none() && self.frames.wait_for_writer(frame, key) {
                let soon = Passing::new(self);
                page = self.frames.push(frame, key);
                passing = page.is_some().then_some(soon);
            }
            inner = self.inner();
        }
        if inner.moving.has(frame) || !inner.dirty.contains_key(&key) {
            // Let go before the lock is.
            drop(page);
            return None;
        }
        batch.take(&mut inner, key, frame, page?);
        drop((inner, passing));
        Some(batch)
    }

    /// Writes the dirty blocks that no thread holds, and reports no error.
    pub(super) fn write_what_is_free(&self) {
        let mut from = Key(0);
        while let Next::Batch(batch, next) = self.next(from, None, false) {
            drop(batch.write());
            from = next;
        }
    }

    /// Syncs the storage. If that fails, what was written since the last time counts as not written: what a system does with
    /// blocks that it could not sync is its own affair, and syncing again may succeed without them.
    pub(super) fn sync(&self, number: u32, file: FileId) {
        let begun = {
            let opened = &mut self.inner().files[number as usize];
            opened.syncs += 1;
            opened.syncs
        };
        let mut unsure = Unsure {
            shared: self,
            number,
            failure: Some(io::Error::other("the storage panicked")),
        };
        unsure.failure = self.storage.sync(file).err();
        if unsure.failure.is_none() {
            self.inner().safe(number, begun);
        }
    }
}

/// A thread of the cache's own holds a block, and the cache does not know of it yet. Dropped when it does.
pub(super) struct Passing<'c>(&'c Shared);

impl<'c> Passing<'c> {
    pub(super) fn new(shared: &'c Shared) -> Self {
        shared.passing.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.0.passing.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A sync whose end is not known yet: it is a failure unless it is said to be none, also after a panic of the storage.
struct Unsure<'c> {
    shared: &'c Shared,
    number: u32,
    failure: Option<io::Error>,
}

impl Drop for Unsure<'_> {
    fn drop(&mut self) {
        if let Some(failure) = self.failure.take() {
            self.shared.inner().unsafe_again(self.number, failure);
        }
    }
}

impl Inner {
    /// Of what was written of a block, and is not synced, nothing is in memory any more. With `ours` the storage has it yet.
    pub(super) fn leaves(&mut self, key: Key, ours: bool) {
        let known = self.files[key.file() as usize].left_unsynced.is_none();
        if let Some((file, after)) = self.unsynced.leaves(key, ours, known) {
            let left = &mut self.files[file as usize].left_unsynced;
            *left = (*left).max(Some(after));
        }
    }

    /// What was written before the sync of this number began is safe.
    fn safe(&mut self, number: u32, begun: u64) {
        self.unsynced.safe(number, begun);
        let opened = &mut self.files[number as usize];
        opened.ended_syncs += 1;
        opened.left_unsynced = opened.left_unsynced.filter(|&after| after >= begun);
    }

    /// A sync failed, and took with it whatever was written until now and not synced.
    fn unsafe_again(&mut self, number: u32, failure: io::Error) {
        let mut again = Vec::new();
        let lost = self.unsynced.failed(
            number,
            |key| self.dirty.contains_key(key),
            |key, frame| again.push((key, frame)),
        );
        self.dirty.extend(again);
        let opened = &mut self.files[number as usize];
        opened.lost |= lost | opened.left_unsynced.take().is_some();
        opened.ended_syncs += 1;
        opened.failed_syncs += 1;
        opened.failures += 1;
        opened.failure = Some(CacheError::Sync {
            file: opened.id,
            source: Arc::new(failure),
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::{BlockCache, FileId, MemoryStorage};
    use super::*;

    #[test]
    fn what_was_dirty_can_be_pinned_when_it_is_written() {
        let builder = BlockCache::builder(MemoryStorage::default()).bytes(8 << 20);
        let cache = builder.read_ahead(0).build().unwrap();
        let file = cache.file(FileId(1)).unwrap();
        let Shared {
            frames, table, now, ..
        } = &*cache.shared;
        let mut handle = cache.handle();
        drop(handle.write(&file, 0).unwrap());
        let mut is_pinned = || {
            for _ in 0..5000 {
                handle.read(&file, 0).unwrap();
            }
            let (number, row) = frames.pins().row().unwrap();
            let (key, pin) = (Key::new(0, 0), row.free().unwrap());
            let hit = frames.hit(table, key, pin, now, Err);
            let pinned = hit.is_ok();
            if hit.map(drop).is_err() {
                frames.unpin(pin);
            }
            frames.pins().give_back(number);
            pinned
        };
        assert!(!is_pinned(), "who changes it again would have to wait");
        file.sync().unwrap();
        assert!(is_pinned());
    }
}
