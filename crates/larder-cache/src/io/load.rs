//! Blocks come into memory: from the storage, or because they are written.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::storage::Part;
use super::write_back::NOTHING;
use super::{Passing, Shared};
use crate::error::CacheError;
use crate::key::{Key, MOST_INDEX};
use crate::state::{Loaded, Miss, Noted, State, Transfer};
use crate::sync::{MutexGuard, rest};
use crate::table::Claimed;
use larder_policy::{Frame, Reason};

/// How often a thread that finds no room looks again, because blocks cannot be written that no thread holds. It begins to rest between two
/// looks after some: about a second in all.
const PATIENCE: u32 = 1000;
const RESTLESS: u32 = 20;
const REST: Duration = Duration::from_millis(1);

/// A frame that is being filled. Unless it is said to be full, its block is forgotten when this is dropped, also by a panic of
/// the storage.
struct Filling<'c> {
    shared: &'c Shared,
    page: Option<Claimed<'c>>,
    transfer: Transfer,
    /// It is not read.
    overwrites: bool,
    full: bool,
}

impl<'c> Filling<'c> {
    fn new(shared: &'c Shared, (page, transfer): (Claimed<'c>, Transfer)) -> Self {
        Self {
            shared,
            page: Some(page),
            transfer,
            overwrites: false,
            full: false,
        }
    }

    fn page(&mut self) -> &mut [u8] {
        self.page.as_deref_mut().unwrap_or(&mut [])
    }

    /// What is to be read.
    fn part(&mut self) -> Part<&mut [u8]> {
        let Transfer { key, file, len, .. } = self.transfer;
        let page = self.page();
        let start = key.index() * page.len() as u64;
        let (within, behind) = page.split_at_mut(len.min(page.len()));
        if !behind.is_empty() {
            behind.fill(0);
        }
        Part::new(file, start, within)
    }

    /// It holds these bytes from `within` on, and zeroes.
    fn overwrite(mut self, within: usize, bytes: &[u8]) {
        let (before, rest) = self.page().split_at_mut(within);
        let (written, behind) = rest.split_at_mut(bytes.len());
        before.fill(0);
        written.copy_from_slice(bytes);
        behind.fill(0);
        (self.overwrites, self.full) = (true, true);
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let page = self.page.take();
        let loaded = match page.is_none() || self.full {
            true if self.overwrites => Loaded::Overwritten,
            true => Loaded::Read,
            false => Loaded::Failed,
        };
        state.end_load(&self.shared.table, &self.transfer, loaded);
        // Before other threads see that it is not moving any more.
        drop(page);
        self.shared.at_rest(state);
    }
}

/// What is to be read with a block: those that are wanted too, as far as they are not in memory, and those worth reading ahead.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behind {
    pub(crate) wanted: u64,
    pub(crate) ahead: u64,
}

/// Blocks that are read at once, so that the cache's lock is not held for long.
const MOST_AT_ONCE: usize = 256;

/// Blocks of a range that is [written](Shared::try_write) under one lock.
const MOST_WRITTEN: u64 = 512;

/// A block to be filled, and those to be read with it.
type Begun<'c> = (Filling<'c>, Option<Vec<Filling<'c>>>);

impl Shared {
    /// The name of a block.
    pub(crate) fn key(&self, file: u32, index: u64) -> Result<Key, CacheError> {
        Key::new_checked(file, index).ok_or(CacheError::Index {
            index,
            most: MOST_INDEX,
        })
    }

    /// A block for a holder that changes it; it is dirty from now on. `load` brings in one that is not in memory, or nothing if
    /// another thread does. The file ends at `until` or later, as far as this block goes. Also returns how many bytes the file
    /// has of the block, and whether the block was there.
    pub(crate) fn change<'c>(
        &'c self,
        key: Key,
        until: u64,
        mut load: impl FnMut() -> Result<Option<Claimed<'c>>, CacheError>,
    ) -> Result<(Claimed<'c>, usize, bool), CacheError> {
        let mut wrote = false;
        let (page, mut state, hit) = loop {
            let (page, hit) = self.claim_or_load(key, &mut load)?;
            if hit && self.table.dirty_bits().has(page.frame()) {
                return Ok((page, self.block_size(), true));
            }
            let state = self.state();
            // A miss has some written by itself.
            if !hit || wrote || !state.has_many_dirty(key.file()) {
                break (page, state, hit);
            }
            // With nothing in hand. What cannot be written is reported when room is needed, or at the next sync.
            drop(state);
            drop(page);
            wrote = true;
            drop(self.write_some(Some(key.file())));
        };
        let len = state.change(&self.table, key, page.frame(), until);
        Ok((page, len, hit))
    }

    /// Writes `bytes` at `offset` of a file, into all blocks of the range or into none. It waits for no thread and calls no storage. The
    /// file ends with the bytes or later. Returns the blocks that were in memory.
    ///
    /// None are written when another thread has one of them, when one would have to be read, when blocks would have to be written back
    /// first, or when there are not frames for all. In the last case those that came are forgotten, and count as missed and removed.
    pub(crate) fn try_write(
        &self,
        file: u32,
        offset: u64,
        bytes: &[u8],
        request: u32,
    ) -> Option<Vec<(Key, Frame)>> {
        let (table, size) = (&self.table, self.block_size() as u64);
        let end = offset + bytes.len() as u64;
        let blocks = offset / size..end.div_ceil(size);
        if blocks.end - blocks.start > MOST_WRITTEN {
            return None;
        }
        // Declared before the lock, and so let go after it: to forget those that came takes it again.
        let _passing = Passing::new(self);
        let (mut pages, mut came) = (Vec::new(), Vec::new());
        let mut state = self.state();
        let had = state.file(file).end();
        let (mut here, mut missing) = (Vec::new(), Vec::new());
        for index in blocks {
            let (key, start) = (Key::new(file, index), index * size);
            // Nothing that the file has of it stays as it was.
            let whole = start >= had || offset <= start && (start + size).min(had) <= end;
            match table.find(key) {
                Some(frame) => here.push((key, frame)),
                None if whole => missing.push(key),
                None => return None,
            }
        }
        let dirty = state.dirty();
        let clean = |&&(key, _): &&(Key, Frame)| dirty.get(key).is_none();
        let clean = here.iter().filter(clean).count();
        if !state.may_dirty(file, clean + missing.len()) {
            return None;
        }
        if clean > 1 {
            // One barrier for all of them.
            state.end_epoch(table);
        }
        for &(_, frame) in &here {
            pages.push(table.frames().try_claim(frame)?);
        }
        for key in missing {
            let reason = Reason::Write;
            let miss = Miss {
                key,
                reason,
                request,
            };
            let admitted = state.miss(table, miss);
            let Ok(admitted) = state.admit(table, miss, admitted) else {
                state.refuse(miss, admitted);
                return None;
            };
            came.push(Filling::new(self, admitted));
        }
        for filling in &came {
            let Transfer { key, frame, .. } = filling.transfer;
            state.change(table, key, frame, end);
        }
        for &(key, frame) in &here {
            state.change(table, key, frame, end);
        }
        drop(state);
        // Where the bytes go in a block, and which they are.
        let part = |key: Key| {
            let start = key.index() * size;
            let within = offset.saturating_sub(start) as usize;
            let from = start.saturating_sub(offset) as usize;
            let len = (size as usize - within).min(bytes.len() - from);
            (within, &bytes[from..from + len])
        };
        for (&(key, _), mut page) in here.iter().zip(pages) {
            let (within, bytes) = part(key);
            page[within..within + bytes.len()].copy_from_slice(bytes);
        }
        for filling in came {
            let (within, bytes) = part(filling.transfer.key);
            filling.overwrite(within, bytes);
        }
        Some(here)
    }

    /// A block for this thread alone, which waits for those that have it. `load` brings in one that is not in memory, or nothing if
    /// another thread does. Also returns whether the block was there.
    pub(super) fn claim_or_load<'c>(
        &'c self,
        key: Key,
        mut load: impl FnMut() -> Result<Option<Claimed<'c>>, CacheError>,
    ) -> Result<(Claimed<'c>, bool), CacheError> {
        loop {
            let hit = self.table.find(key);
            let page = match hit {
                Some(frame) => self.table.frames().claim(frame, key),
                None => load()?,
            };
            if let Some(page) = page {
                return Ok((page, hit.is_some()));
            }
        }
    }

    /// Reports to the rule what was noted, gives the block a frame and fills it. `None` if another thread has given it
    /// one in the meantime.
    pub(crate) fn load<'c>(
        &'c self,
        miss: Miss,
        ahead: usize,
        noted: Noted<'_>,
    ) -> Result<Option<Claimed<'c>>, CacheError> {
        let behind = Behind {
            wanted: 0,
            ahead: ahead as u64,
        };
        let Some((mut wanted, ahead)) = self.begin(miss, behind, noted)? else {
            return Ok(None);
        };
        if miss.reason == Reason::Write {
            wanted.page().fill(0);
            wanted.overwrites = true;
        } else if let Some(mut ahead) = ahead {
            self.fill(&mut wanted, &mut ahead)?;
        } else {
            let read = wanted.part().read(&*self.storage);
            read.map_err(|error| self.not_read(&wanted, error))?;
        }
        Ok(wanted.page.take())
    }

    /// [`load`](Self::load), of a block and of those behind it that are wanted too. `came` gets each of the others, in order, and
    /// with its page as long as none was in memory before it.
    pub(crate) fn load_many<'c>(
        &'c self,
        miss: Miss,
        behind: Behind,
        noted: Noted<'_>,
        mut came: impl FnMut(Key, Option<Claimed<'c>>),
    ) -> Result<Option<Claimed<'c>>, CacheError> {
        let Some((mut wanted, others)) = self.begin(miss, behind, noted)? else {
            return Ok(None);
        };
        let mut others = others.unwrap_or_default();
        self.fill(&mut wanted, &mut others)?;
        let mut next = Key(miss.key.0 + 1);
        for other in &mut others {
            let key = other.transfer.key;
            if other.full && key.0 - miss.key.0 <= behind.wanted {
                // Other pages are let go when the state knows that they have come.
                let follows = key == next;
                next = Key(next.0 + u64::from(follows));
                came(key, follows.then(|| other.page.take()).flatten());
            }
        }
        Ok(wanted.page.take())
    }

    /// Reads a block, and those behind it in the same go. What fails ahead of the reader fails again when the reader comes there.
    fn fill<'c>(
        &self,
        wanted: &mut Filling<'c>,
        ahead: &mut [Filling<'c>],
    ) -> Result<(), CacheError> {
        let storage = &*self.storage;
        let read = if ahead.is_empty() {
            wanted.part().read(storage)
        } else {
            // What lies behind the end of the file is not asked for.
            let mut parts = Vec::with_capacity(1 + ahead.len());
            let all = core::iter::once(&mut *wanted).chain(ahead.iter_mut());
            parts.extend(all.map(Filling::part).filter(|part| !part.bytes.is_empty()));
            storage.read_many(&mut parts);
            let ends: Vec<io::Result<()>> =
                parts.into_iter().map(|part| part.read(storage)).collect();
            let mut ends = ends.into_iter();
            let mut end = |filling: &Filling<'_>| match filling.transfer.len {
                0 => Ok(()),
                _ => ends.next().unwrap_or(Ok(())),
            };
            let first = end(wanted);
            for filling in ahead {
                filling.full = end(filling).is_ok();
            }
            first
        };
        read.map_err(|error| self.not_read(wanted, error))
    }

    #[cold]
    fn not_read(&self, wanted: &Filling<'_>, error: io::Error) -> CacheError {
        self.state().count_read_error();
        CacheError::Read {
            file: wanted.transfer.file,
            index: wanted.transfer.key.index(),
            source: Arc::new(error),
        }
    }

    /// Frames for a block and for those behind it that are not in memory.
    fn begin<'c>(
        &'c self,
        miss: Miss,
        behind: Behind,
        noted: Noted<'_>,
    ) -> Result<Option<Begun<'c>>, CacheError> {
        let (table, key) = (&self.table, miss.key);
        let (mut missed, mut waited) = (None, 0);
        let mut state = self.state();
        if !noted.uses.is_empty() {
            state.hits(table, noted, false);
        }
        loop {
            // Also when this one has waited for room: then its caller finds the block, and the use counts as that.
            if table.find(key).is_some() {
                return Ok(None);
            }
            if state.has_many_dirty(key.file()) && missed.is_none() {
                drop(state);
                // What cannot be written is reported when room is needed, or at the next sync.
                drop(self.write_some(Some(key.file())));
                state = self.state();
                if table.find(key).is_some() {
                    return Ok(None);
                }
            }
            let admitted = *missed.get_or_insert_with(|| state.miss(table, miss));
            let error = match state.admit(table, miss, admitted) {
                Ok(admitted) => {
                    let others = (behind.wanted | behind.ahead > 0)
                        .then(|| self.begin_behind(&mut state, miss, behind));
                    return Ok(Some((Filling::new(self, admitted), others)));
                }
                Err(CacheError::Pinned { .. }) if !state.is_full(key.file()) => {
                    // There are free frames, and other threads look at them for blocks that were there.
                    state = self.give_way(state);
                    continue;
                }
                Err(error) => error,
            };
            // Where pages are what is missing, any block has one.
            let pinned = matches!(error, CacheError::Pinned { .. });
            let failure = match self.make_room(state, pinned.then_some(key.file()), &mut waited) {
                Ok(Some(made)) => {
                    state = made;
                    continue;
                }
                Ok(None) => error,
                Err(failure) => failure,
            };
            self.state().refuse(miss, admitted);
            return Err(failure);
        }
    }

    /// Has blocks written so that they can leave, of those that may make room for this file or of all, or waits for what may do so too.
    /// `waited` is how often it waited for holders of blocks that keep others from being written. None if no room can be made.
    ///
    /// # Errors
    /// What could not be written.
    fn make_room<'c>(
        &'c self,
        mut state: MutexGuard<'c, State>,
        with: Option<u32>,
        waited: &mut u32,
    ) -> Result<Option<MutexGuard<'c, State>>, CacheError> {
        let dirty = !state.dirty().is_empty();
        let rested = state.rested(with);
        drop(state);
        let written = dirty && self.write_some(with)? != NOTHING;
        state = self.state();
        // Another thread may have written the last ones that could leave.
        if written || state.rested(with) != rested {
            return Ok(Some(state));
        }
        if state.is_any_moving(with) {
            self.wait_for_move(state);
            return Ok(Some(self.state()));
        }
        // One that is held keeps those behind it from being written, where the storage's file grows. Its holder may be about to let
        // go, or may be this thread.
        if *waited >= PATIENCE || !state.is_any_kept_back(&self.table, with) {
            return Ok(None);
        }
        *waited += 1;
        if *waited <= RESTLESS {
            return Ok(Some(self.give_way(state)));
        }
        drop(state);
        rest(REST);
        Ok(Some(self.state()))
    }

    /// Frames for blocks behind one that is read: those that are wanted, and others up to the end of the file. It waits for
    /// nothing: what finds no room comes by itself later.
    #[inline(never)]
    fn begin_behind<'c>(
        &'c self,
        state: &mut State,
        first: Miss,
        Behind { wanted, ahead }: Behind,
    ) -> Vec<Filling<'c>> {
        let (table, file) = (&self.table, first.key.file());
        let most = wanted.saturating_add(ahead);
        let mut more = Vec::with_capacity(MOST_AT_ONCE.min(most as usize));
        let end = state.file(file).end();
        let last = end.div_ceil(self.block_size() as u64);
        for by in 1..=most {
            let key = Key(first.key.0 + by);
            let reason = match by <= wanted {
                true => Reason::Demand,
                false => Reason::Readahead,
            };
            let is_here = table.find(key).is_some();
            if reason == Reason::Demand && is_here {
                continue;
            }
            let inside = reason == Reason::Demand || key.file() == file && key.index() < last;
            if is_here
                || !inside
                || more.len() >= MOST_AT_ONCE
                || !state.has_room_for_readahead(file)
            {
                break;
            }
            let miss = Miss {
                key,
                reason,
                ..first
            };
            let missed = state.miss(table, miss);
            match state.admit(table, miss, missed) {
                Ok(admitted) => more.push(Filling::new(self, admitted)),
                Err(_) => {
                    state.refuse(miss, missed);
                    break;
                }
            }
        }
        more
    }
}
