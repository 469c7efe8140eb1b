//! A block comes from the storage.

use std::io;
use std::sync::Arc;

use super::batch::ReadPart;
use super::cache::Shared;
use super::error::CacheError;
use super::file::CachedFile;
use super::frames::Claimed;
use super::inner::Inner;
use super::key::{FileId, Key};
use super::rule::Noted;
use super::write_back::NOTHING;
use larder_policy::{Frame, Reason};

/// A frame that is being filled. Unless it is said to be full, its block is forgotten when this is dropped, also by a panic of
/// the storage.
struct Filling<'c> {
    shared: &'c Shared,
    frame: Frame,
    page: Option<Claimed<'c>>,
    key: Key,
    /// Syncs of the file that had failed when it began.
    failed_syncs: u64,
    /// It is not read.
    overwrites: bool,
    full: bool,
}

impl<'c> Filling<'c> {
    fn new(shared: &'c Shared, inner: &Inner, key: Key, page: Claimed<'c>) -> Self {
        Self {
            shared,
            frame: page.frame(),
            page: Some(page),
            key,
            failed_syncs: inner.files[key.file() as usize].failed_syncs,
            overwrites: false,
            full: false,
        }
    }

    fn page(&mut self) -> &mut [u8] {
        self.page.as_deref_mut().unwrap_or(&mut [])
    }

    /// What is to be read of a file that ends at `end`: what the storage has behind belongs to a former, longer file.
    fn part(&mut self, file: FileId, end: u64) -> ReadPart<'_> {
        let index = self.key.index();
        let page = self.page();
        let start = index * page.len() as u64;
        let len = end.saturating_sub(start).min(page.len() as u64) as usize;
        let (within, behind) = page.split_at_mut(len);
        if !behind.is_empty() {
            behind.fill(0);
        }
        ReadPart::new(file, start, within)
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        let mut inner = self.shared.inner();
        inner.loading -= 1;
        inner.moving.take(self.frame);
        let page = self.page.take();
        if page.is_none() || self.full {
            let opened = &inner.files[self.key.file() as usize];
            let (failed, running) = (opened.failed_syncs, opened.is_syncing());
            if self.overwrites {
                inner.unsynced.overwritten(self.key);
                // At once, so that a sync that fails before it is written finds it.
                inner.dirty.insert(self.key, self.frame);
            } else if failed == self.failed_syncs {
                inner.unsynced.comes(self.key, self.frame, running);
            }
        } else if self.shared.frames.key(self.frame) == self.key {
            self.shared.changed.take(self.frame);
            inner.forget(self.shared, self.frame, false);
        }
        // Before other threads see that it is not moving any more.
        drop(page);
        self.shared.at_rest(inner);
    }
}

/// A block to be filled, those to be read with it, and the bytes of their file.
type Begun<'c> = (Filling<'c>, Option<Vec<Filling<'c>>>, u64);

impl Shared {
    /// Reports to the rule what was noted, gives the block a frame and fills it. `None` if another thread has given it
    /// one in the meantime.
    pub(super) fn load<'c>(
        &'c self,
        file: &CachedFile,
        key: Key,
        reason: Reason,
        request: u32,
        ahead: usize,
        noted: Noted<'_>,
    ) -> Result<Option<Claimed<'c>>, CacheError> {
        let begun = self.begin(key, reason, request, ahead, noted)?;
        let Some((mut wanted, mut ahead, end)) = begun else {
            return Ok(None);
        };
        if reason == Reason::Write {
            wanted.page().fill(0);
            wanted.overwrites = true;
        } else {
            let ahead = ahead.as_deref_mut().unwrap_or_default();
            self.fill(file, end, &mut wanted, ahead)?;
        }
        Ok(wanted.page.take())
    }

    /// Reads a block, and those behind it in the same go, of a file that ended at `end` when they got their frames.
    fn fill(
        &self,
        file: &CachedFile,
        end: u64,
        wanted: &mut Filling<'_>,
        ahead: &mut [Filling<'_>],
    ) -> Result<(), CacheError> {
        let (storage, id, index) = (&*self.storage, file.id(), wanted.key.index());
        let first = wanted.part(id, end);
        let read = if ahead.is_empty() {
            first.finish(storage)
        } else {
            self.fill_all(first, ahead, end)
        };
        read.map_err(|error| self.unread(id, index, error))
    }

    /// Reads a block and those behind it. What fails ahead of the reader fails again when the reader comes there.
    fn fill_all(&self, first: ReadPart<'_>, ahead: &mut [Filling<'_>], end: u64) -> io::Result<()> {
        let (storage, id) = (&*self.storage, first.file);
        let parts = ahead.iter_mut().map(|filling| filling.part(id, end));
        let mut parts: Vec<ReadPart<'_>> = core::iter::once(first).chain(parts).collect();
        storage.read_many(&mut parts);
        let ends: Vec<io::Result<()>> =
            parts.into_iter().map(|part| part.finish(storage)).collect();
        let mut ends = ends.into_iter();
        let wanted = ends.next().unwrap_or(Ok(()));
        for (filling, end) in ahead.iter_mut().zip(ends) {
            filling.full = end.is_ok();
        }
        wanted
    }

    #[cold]
    fn unread(&self, file: FileId, index: u64, error: io::Error) -> CacheError {
        self.inner().counts.read_errors += 1;
        CacheError::Read {
            file,
            index,
            source: Arc::new(error),
        }
    }

    /// Frames for a block and for those behind it that are not in memory.
    fn begin<'c>(
        &'c self,
        key: Key,
        reason: Reason,
        request: u32,
        ahead: usize,
        noted: Noted<'_>,
    ) -> Result<Option<Begun<'c>>, CacheError> {
        let mut missed = None;
        let mut inner = self.inner();
        if !noted.uses.is_empty() {
            inner.hits(self, noted.uses, noted.since, false);
        }
        loop {
            if self.table.find(&self.frames, key).is_some() {
                return Ok(None);
            }
            if inner.many_dirty() && missed.is_none() {
                drop(inner);
                // What cannot be written is reported when room is needed, or at the next sync.
                drop(self.write_some());
                inner = self.inner();
                if self.table.find(&self.frames, key).is_some() {
                    return Ok(None);
                }
            }
            let admission = *missed.get_or_insert_with(|| inner.miss(self, key, reason, request));
            match inner.admit(self, key, reason, request, admission) {
                Ok(found) => {
                    let end = inner.files[key.file() as usize].end;
                    let more =
                        (ahead > 0).then(|| self.begin_ahead(&mut inner, key, request, ahead, end));
                    let filling = Filling::new(self, &inner, key, found);
                    return Ok(Some((filling, more, end)));
                }
                Err(CacheError::Pinned { .. }) if inner.rule.over() == 0 => {
                    // There are free frames, and other threads look at them for blocks that were there.
                    inner = self.give_way(inner);
                }
                Err(error @ (CacheError::Pinned { .. } | CacheError::Pages(_))) => {
                    let dirty = !inner.dirty.is_empty();
                    drop(inner);
                    let written = dirty && self.write_some()? != NOTHING;
                    inner = self.inner();
                    if written {
                        continue;
                    }
                    if !inner.moving.any() {
                        inner.not_kept(key);
                        return Err(error);
                    }
                    self.wait_for_load(inner);
                    inner = self.inner();
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Frames for blocks behind one that is read, up to the end of the file.
    #[inline(never)]
    fn begin_ahead<'c>(
        &'c self,
        inner: &mut Inner,
        key: Key,
        request: u32,
        ahead: usize,
        end: u64,
    ) -> Vec<Filling<'c>> {
        let mut more = Vec::new();
        let last = end.div_ceil(self.block_size() as u64);
        let next = (1..=ahead as u64).map(|by| Key(key.0 + by));
        let inside = |next: &Key| next.file() == key.file() && next.index() < last;
        for key in next.take_while(inside) {
            // Readahead takes what is easily had, and not the last frames of others.
            let few = inner.loading * 4 > inner.rule.capacity();
            if few || self.table.find(&self.frames, key).is_some() {
                break;
            }
            let reason = Reason::Readahead;
            let admission = inner.miss(self, key, reason, request);
            match inner.admit(self, key, reason, request, admission) {
                Ok(found) => more.push(Filling::new(self, inner, key, found)),
                Err(_) => {
                    inner.not_kept(key);
                    break;
                }
            }
        }
        more
    }

    /// Makes the cache as small as `frames`, as far as blocks are not held, and gives the pages back.
    pub(super) fn shrink(&self, frames: usize) -> Result<(), CacheError> {
        loop {
            let mut inner = self.inner();
            let over = inner.rule.len().saturating_sub(frames);
            let gone = inner.evict(self, over);
            if gone == over {
                break;
            }
            let dirty = !inner.dirty.is_empty();
            drop(inner);
            if gone == 0 && !(dirty && self.write_some()? != NOTHING) {
                break; // the others are held
            }
        }
        self.inner().give_back(self);
        Ok(())
    }
}
