//! Dirty blocks go to the storage.

use std::io;
use std::sync::Arc;

use super::cache::Shared;
use super::error::CacheError;
use super::key::{FileId, Key, MOST_INDEX};
use crate::cache::policy::Frame;

/// Blocks that are written at once when room is needed.
const BATCH: usize = 64;

/// No block could be written, because all that are dirty are held.
pub(super) const NOTHING: usize = 0;

impl Shared {
    /// Writes at least one block that nobody is changing, and up to 64 or some more, so that they can leave. Returns how many;
    /// [`NOTHING`] if all are being changed.
    ///
    /// # Errors
    /// The first failure, if none could be written.
    pub(super) fn write_some(&self) -> Result<usize, CacheError> {
        let (mut written, mut failure, mut from) = (NOTHING, None, Key(0));
        while written < BATCH {
            let batch: Vec<(Key, Frame)> = {
                let inner = self.inner();
                let all = inner.dirty.range(from..).map(|(&key, &frame)| (key, frame));
                all.take(BATCH).collect()
            };
            let Some(&(last, _)) = batch.last() else {
                break;
            };
            from = Key(last.0 + 1);
            for (key, frame) in batch {
                match self.write_block(key, frame, false) {
                    Ok(done) => written += usize::from(done),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
        }
        match failure {
            Some(error) if written == NOTHING => Err(error),
            _ => Ok(written),
        }
    }

    /// Writes all dirty blocks of a file, or of all, in order, waiting for those that somebody is changing.
    ///
    /// # Errors
    /// The first failure; the other blocks are written all the same.
    pub(super) fn write_back(&self, file: Option<u32>) -> Result<(), CacheError> {
        let all: Vec<(Key, Frame)> = {
            let inner = self.inner();
            let dirty = inner.dirty.iter().map(|(&key, &frame)| (key, frame));
            dirty
                .filter(|(key, _)| file.is_none_or(|file| key.file() == file))
                .collect()
        };
        let mut first = Ok(());
        for (key, frame) in all {
            if let Err(error) = self.write_block(key, frame, true) {
                first = first.and(Err(error));
            }
        }
        first
    }

    /// Writes one block, if it is dirty still. False if it was not, or if somebody changes it and `wait` is not said.
    fn write_block(&self, key: Key, frame: Frame, wait: bool) -> Result<bool, CacheError> {
        let page = match self.frames.try_read(frame, key) {
            None if wait => self.frames.read(frame, key, true),
            page => page,
        };
        let Some(page) = page else {
            return Ok(false);
        };
        // From here on nobody changes the block, so what is clean now is what was written.
        let (file, within) = {
            let inner = self.inner();
            if !inner.dirty.contains_key(&key) {
                return Ok(false);
            }
            let opened = &inner.files[key.file() as usize];
            let start = key.index() * self.block_size() as u64;
            let within = opened.end.saturating_sub(start);
            (opened.id, within.min(self.block_size() as u64) as usize)
        };
        let written = self.write_whole(file, key, &page[..within.min(page.len())]);
        let mut inner = self.inner();
        match written {
            Ok(()) => {
                inner.dirty.remove(&key);
                inner.unsynced.insert(key, frame);
                inner.counts.written += 1;
                Ok(true)
            }
            Err(error) => {
                let source = Arc::new(error);
                inner.counts.write_errors += 1;
                let opened = &mut inner.files[key.file() as usize];
                opened.failures += 1;
                opened.failure = Some(Arc::clone(&source));
                Err(CacheError::Write {
                    file,
                    index: key.index(),
                    source,
                })
            }
        }
    }

    /// Syncs the storage. If that fails, what was written since the last time counts as not written: what a system does with
    /// blocks that it could not sync is its own affair, and syncing again may succeed without them.
    pub(super) fn sync(&self, number: u32, file: FileId) {
        let mine = Key::new(number, 0)..=Key::new(number, MOST_INDEX);
        let (pending, left) = {
            let mut inner = self.inner();
            let unsynced = inner.unsynced.range(mine);
            let pending: Vec<(Key, Frame)> = unsynced.map(|(&key, &frame)| (key, frame)).collect();
            for (key, _) in &pending {
                inner.unsynced.remove(key);
            }
            let opened = &mut inner.files[number as usize];
            (pending, core::mem::take(&mut opened.left_unsynced))
        };
        let Err(error) = self.storage.sync(file) else {
            return;
        };
        let mut inner = self.inner();
        let mut lost = left;
        for (key, frame) in pending {
            if self.frames.key(frame) == key {
                inner.dirty.insert(key, frame);
            } else {
                lost = true;
            }
        }
        let opened = &mut inner.files[number as usize];
        opened.lost |= lost;
        opened.failures += 1;
        opened.failure = Some(Arc::new(error));
    }

    fn write_whole(&self, file: FileId, key: Key, page: &[u8]) -> io::Result<()> {
        let start = key.index() * self.block_size() as u64;
        let mut done = 0;
        while done < page.len() {
            match self.storage.write(file, start + done as u64, &page[done..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => done += n.min(page.len() - done),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
