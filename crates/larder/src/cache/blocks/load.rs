//! A block comes from the storage.

use std::io;
use std::sync::Arc;

use super::cache::Shared;
use super::error::CacheError;
use super::file::CachedFile;
use super::frames::Claimed;
use super::key::Key;
use super::write_back::NOTHING;
use crate::cache::policy::{Frame, Reason};

/// A frame that is being filled. Unless it is said to be full, its block is forgotten when this is dropped, also by a panic of
/// the storage.
struct Filling<'c> {
    shared: &'c Shared,
    frame: Frame,
    page: Option<Claimed<'c>>,
    key: Key,
}

impl<'c> Filling<'c> {
    fn full(mut self) -> (Frame, Option<Claimed<'c>>) {
        (self.frame, self.page.take())
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        let mut inner = self.shared.inner();
        inner.loading -= 1;
        if self.page.is_some() && self.shared.frames.key(self.frame) == self.key {
            inner.forget(self.shared, self.frame);
        }
        drop(inner);
        self.shared.loaded.notify_all();
    }
}

impl Shared {
    /// Gives the block a frame and fills it. `None` if somebody else has given it one in the meantime.
    pub(super) fn load<'c>(
        &'c self,
        file: &CachedFile,
        key: Key,
        reason: Reason,
        request: u32,
        ahead: usize,
    ) -> Result<Option<(Frame, Claimed<'c>)>, CacheError> {
        let Some((mut wanted, ahead)) = self.begin(key, reason, request, ahead)? else {
            return Ok(None);
        };
        let page = wanted.page.as_deref_mut().unwrap_or(&mut []);
        if reason == Reason::Write {
            page.fill(0);
        } else {
            self.fill(file, key, page)?;
        }
        let (frame, claimed) = wanted.full();
        for mut filling in ahead {
            let page = filling.page.as_deref_mut();
            // What fails ahead of the reader fails again when he comes there.
            if self
                .fill(file, filling.key, page.unwrap_or(&mut []))
                .is_ok()
            {
                drop(filling.full());
            }
        }
        Ok(claimed.map(|claimed| (frame, claimed)))
    }

    /// Frames for a block and for those behind it that are not in memory.
    fn begin<'c>(
        &'c self,
        key: Key,
        reason: Reason,
        request: u32,
        ahead: usize,
    ) -> Result<Option<(Filling<'c>, Vec<Filling<'c>>)>, CacheError> {
        let filling = |key: Key, (frame, page): (Frame, Claimed<'c>)| Filling {
            shared: self,
            frame,
            page: Some(page),
            key,
        };
        let mut missed = None;
        loop {
            let mut inner = self.inner();
            if self.table.find(&self.frames, key).is_some() {
                return Ok(None);
            }
            // Dirty blocks leave last: left alone they would take the cache from those that are read.
            if inner.dirty.len() * 2 > inner.rule.capacity() && missed.is_none() {
                drop(inner);
                // What cannot be written is told when room is needed, or at the next sync.
                drop(self.write_some());
                inner = self.inner();
                if self.table.find(&self.frames, key).is_some() {
                    return Ok(None);
                }
            }
            let admission = *missed.get_or_insert_with(|| inner.miss(key, reason, request));
            match inner.admit(self, key, reason, request, admission) {
                Ok(found) => {
                    let mut more = Vec::new();
                    let next = (1..=ahead as u64).map(|by| Key(key.0 + by));
                    for key in next.take_while(|next| next.file() == key.file()) {
                        // Readahead takes what is easily had, and not the last frames of others.
                        let few = inner.loading * 4 > inner.rule.capacity();
                        if few || self.table.find(&self.frames, key).is_some() {
                            break;
                        }
                        let reason = Reason::Readahead;
                        let admission = inner.miss(key, reason, request);
                        match inner.admit(self, key, reason, request, admission) {
                            Ok(found) => more.push(filling(key, found)),
                            Err(_) => break,
                        }
                    }
                    return Ok(Some((filling(key, found), more)));
                }
                Err(CacheError::Pinned { frames }) => {
                    let dirty = !inner.dirty.is_empty();
                    drop(inner);
                    if dirty && self.write_some()? != NOTHING {
                        continue;
                    }
                    let inner = self.inner();
                    if inner.loading == 0 {
                        return Err(CacheError::Pinned { frames });
                    }
                    self.wait_for_load(inner);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads a block; what lies behind the end of the file is zeroes.
    fn fill(&self, file: &CachedFile, key: Key, page: &mut [u8]) -> Result<(), CacheError> {
        let start = key.index() * page.len() as u64;
        // What the storage has behind the end belongs to a former, longer file.
        let end = self.inner().files[key.file() as usize].end;
        let len = end.saturating_sub(start).min(page.len() as u64) as usize;
        let mut done = 0;
        while done < len {
            let n = self
                .storage
                .read(file.id(), start + done as u64, &mut page[done..len]);
            match n {
                Ok(0) => break,
                Ok(n) => done += n.min(len - done),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.inner().counts.read_errors += 1;
                    return Err(CacheError::Read {
                        file: file.id(),
                        index: key.index(),
                        source: Arc::new(error),
                    });
                }
            }
        }
        page[done..].fill(0);
        Ok(())
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
