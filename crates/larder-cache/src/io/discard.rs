//! Blocks leave memory without a successor: the cache shrinks, a file is cut or invalidated.

use std::ops::Range;

use super::write_back::NOTHING;
use super::{Passing, Patience, Shared};
use crate::error::CacheError;
use crate::key::{FileId, Key, MOST_INDEX};
use crate::limits::LEAVE_AT_ONCE;
use crate::state::{Miss, Noted, Opening, State};
use crate::sync::MutexGuard;
use crate::table::Claimed;
use larder_policy::{Frame, Reason};

impl Shared {
    /// Makes each partition as small as it is to be, as far as blocks are not held, and gives the pages of all frames that hold nothing
    /// back.
    pub(crate) fn shrink(&self) -> Result<(), CacheError> {
        let evicted = self.evict(None);
        self.trim_free(usize::MAX);
        evicted.map(|_| ())
    }

    /// Gives back so many pages: those of frames that hold nothing first, then those of blocks, as far as these are not held. Returns how
    /// many there were.
    pub(crate) fn trim(&self, pages: usize) -> Result<usize, CacheError> {
        let free = self.trim_free(pages);
        // So it ends also where other threads bring blocks as fast as these leave.
        let most = self.state().resident();
        Ok(free + self.evict(Some(most.min(pages - free)))?)
    }

    /// Takes so many blocks out, or those for which their partitions have no room, and gives their pages back. Lets go of the lock after
    /// some of them. Returns how many pages there were.
    fn evict(&self, mut blocks: Option<usize>) -> Result<usize, CacheError> {
        let mut given = 0;
        loop {
            let mut state = self.state();
            let (gone, over) = state.evict(&self.table, blocks);
            given += state.trim(&self.table, gone);
            if gone == over {
                return Ok(given);
            }
            blocks = blocks.map(|blocks| blocks.saturating_sub(gone));
            let dirty = !state.dirty().is_empty();
            drop(state);
            if gone == 0 && !(dirty && self.write_some(None)? != NOTHING) {
                return Ok(given); // the others are held
            }
        }
    }

    /// Gives back the pages of so many frames that hold nothing, and lets go of the lock after some of them. Returns how many there were.
    fn trim_free(&self, pages: usize) -> usize {
        let mut given = 0;
        loop {
            let most = (pages - given).min(LEAVE_AT_ONCE);
            let now = self.state().trim(&self.table, most);
            given += now;
            if now < LEAVE_AT_ONCE {
                return given;
            }
        }
    }

    /// A file ends at `bytes`: what its blocks hold behind that is zeroed, and its blocks stay.
    pub(crate) fn set_end(&self, file: u32, bytes: u64) {
        let size = self.block_size() as u64;
        // Behind its end it has nothing but zeroes already.
        let behind = |state: &mut State| bytes / size..state.file(file).end().div_ceil(size);
        let mut state = self.claim_each(file, behind, |_, key, page| {
            let within = bytes.saturating_sub(key.index() * size);
            page[within as usize..].fill(0);
            // The next change makes the file longer again.
            self.table.dirty_bits().take(page.frame());
        });
        state.set_end(&self.table, file, bytes, false);
    }

    /// Nothing of a file is wanted any more: its blocks are forgotten, as threads let go of them.
    pub(crate) fn discard(&self, file: u32) {
        let all = |state: &mut State| {
            // Whatever is dropped is not missed, nor is what was written until now.
            state.set_end(&self.table, file, 0, true);
            0..u64::MAX
        };
        drop(self.claim_each(file, all, |state, _, page| {
            state.forget(&self.table, page.frame(), true);
        }));
    }

    /// Calls `work` with each of a file's blocks that is in memory and in a range, which is asked for under the lock. Waits for
    /// threads that hold one, and begins again after that: so in the end it was called with all of them under one lock, which is
    /// handed out.
    fn claim_each(
        &self,
        file: u32,
        mut range: impl FnMut(&mut State) -> Range<u64>,
        mut work: impl FnMut(&mut State, Key, &mut Claimed<'_>),
    ) -> MutexGuard<'_, State> {
        let frames = self.table.frames();
        let mut held: Option<(Key, Claimed<'_>, Passing<'_>)> = None;
        loop {
            // It does not wait for the cache's lock with a block in hand that was not looked at under it, nor for two blocks.
            let mut state = self.state();
            let blocks = range(&mut state);
            let here = self.resident(&state, file, blocks);
            if here.len() > 1 {
                // One barrier for all of them.
                state.end_epoch(&self.table);
            }
            let busy = here.into_iter().find(|&(key, frame)| {
                let mine = held.take_if(|(had, ..)| *had == key);
                let mine = mine.map(|(_, page, _)| page);
                let page = mine.or_else(|| frames.try_claim(frame));
                page.map(|mut page| work(&mut state, key, &mut page))
                    .is_none()
            });
            let Some((key, frame)) = busy else {
                return state;
            };
            drop(state);
            drop(held.take());
            let page = frames.claim(frame, key);
            held = page.map(|page| (key, page, Passing::new(self)));
        }
    }

    /// A file ends at `bytes`: its blocks behind that are forgotten, and what its last block holds behind it is zeroed, all under the lock
    /// under which the end is said. So what other threads write when they know the new end stays.
    pub(crate) fn truncate(&self, opening: &Opening, bytes: u64) -> Result<(), CacheError> {
        let (file, size) = (opening.number, self.block_size() as u64);
        let within = (bytes % size) as usize;
        let cut = (within != 0).then(|| self.key(file, bytes / size));
        let cut = cut.transpose()?;
        let mut patience = Patience::new();
        loop {
            let last = cut.map(|key| self.last_block(key, opening.born));
            let mut last = last.transpose()?;
            let mut state = self.state();
            // Behind its end it has nothing but zeroes already.
            let behind = bytes.div_ceil(size)..state.file(file).end().div_ceil(size);
            match self.claim_all(&mut state, file, behind) {
                Ok(claimed) => {
                    // All of them are in hand, so what is written back of them until now is written whole. And nothing that is written
                    // later is meant by what is dropped here.
                    state.set_end(&self.table, file, bytes, true);
                    self.forget_all(&mut state, claimed);
                    if let Some((key, page, _)) = &mut last {
                        page[within..].fill(0);
                        // Dirty: if the file is longer again when it is written, the storage gets the zeroes too.
                        state.change(&self.table, *key, page.frame(), bytes);
                        // The next change makes the file longer again.
                        self.table.dirty_bits().take(page.frame());
                    }
                    return Ok(());
                }
                Err(busy) => {
                    // It waits with no block in hand.
                    drop(last);
                    drop(self.wait_for_holder(state, opening.id, busy, &mut patience)?);
                }
            }
        }
    }

    /// The block in which a file is to end, for this thread alone. It must be in memory: what the storage has of it behind the new end
    /// would come back if the file became longer before that was overwritten there.
    fn last_block(
        &self,
        key: Key,
        since: u64,
    ) -> Result<(Key, Claimed<'_>, Passing<'_>), CacheError> {
        let (reason, request) = (Reason::Demand, 1);
        let miss = Miss {
            key,
            reason,
            request,
        };
        let load = || {
            let noted = Noted {
                uses: &mut [],
                since,
            };
            self.load(miss, 0, noted)
        };
        let (page, _) = self.claim_or_load(key, load)?;
        Ok((key, page, Passing::new(self)))
    }

    /// Forgets blocks of a file: all of them or, if a guard holds one, none.
    pub(crate) fn forget(
        &self,
        file: u32,
        id: FileId,
        blocks: Range<u64>,
    ) -> Result<(), CacheError> {
        let mut patience = Patience::new();
        let mut state = self.state();
        loop {
            match self.claim_all(&mut state, file, blocks.clone()) {
                Ok(claimed) => {
                    self.forget_all(&mut state, claimed);
                    return Ok(());
                }
                Err(busy) => state = self.wait_for_holder(state, id, busy, &mut patience)?,
            }
        }
    }

    /// All of a file's blocks that are in memory and in a range, for this thread alone.
    ///
    /// # Errors
    /// One of them that another thread has. Then this one has none.
    fn claim_all(
        &self,
        state: &mut State,
        file: u32,
        blocks: Range<u64>,
    ) -> Result<Vec<Claimed<'_>>, (Key, Frame)> {
        let here = self.resident(state, file, blocks);
        if here.len() > 1 {
            // One barrier for all of them.
            state.end_epoch(&self.table);
        }
        let frames = self.table.frames();
        let claim = |(key, frame)| frames.try_claim(frame).ok_or((key, frame));
        here.into_iter().map(claim).collect()
    }

    fn forget_all(&self, state: &mut State, claimed: Vec<Claimed<'_>>) {
        for page in claimed {
            state.forget(&self.table, page.frame(), true);
        }
    }

    /// Waits, with no block in hand, for the thread that has a block.
    ///
    /// # Errors
    /// [`CacheError::Held`] when a guard has it, which may be there for long.
    fn wait_for_holder<'c>(
        &'c self,
        state: MutexGuard<'c, State>,
        id: FileId,
        (key, frame): (Key, Frame),
        patience: &mut Patience,
    ) -> Result<MutexGuard<'c, State>, CacheError> {
        if state.is_moving(frame) {
            self.wait_for_move(state);
            return Ok(self.state());
        }
        if !patience.lasts(self) {
            return Err(CacheError::Held {
                file: id,
                index: key.index(),
            });
        }
        Ok(self.give_way(state))
    }

    /// The blocks of a range that are in memory, in order. Looks up each block of the range, or at each block that the file has in
    /// memory if these are fewer.
    fn resident(&self, state: &State, file: u32, blocks: Range<u64>) -> Vec<(Key, Frame)> {
        let frames = self.table.frames();
        let blocks = blocks.start..blocks.end.min(MOST_INDEX + 1);
        let len = blocks.end.saturating_sub(blocks.start);
        if len <= state.file(file).resident() as u64 {
            let keys = blocks.map(|index| Key::new(file, index));
            return keys
                .filter_map(|key| Some((key, self.table.find(key)?)))
                .collect();
        }
        let all = state
            .frames_of(file)
            .map(|frame| (frames.key(frame), frame));
        let mut here: Vec<(Key, Frame)> = all
            .filter(|(key, _)| blocks.contains(&key.index()))
            .collect();
        here.sort_unstable();
        here
    }
}
