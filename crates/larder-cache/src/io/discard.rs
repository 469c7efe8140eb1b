//! Blocks leave memory without a successor: the cache shrinks, a file is cut or invalidated.

use std::ops::Range;

use super::write_back::NOTHING;
use super::{Passing, Patience, Shared};
use crate::error::CacheError;
use crate::key::{FileId, Key, MOST_INDEX};
use crate::state::{Miss, Noted, Opening, State, Use};
use crate::sync::MutexGuard;
use crate::table::Claimed;
use larder_policy::{Frame, Reason};

impl Shared {
    /// Makes the cache as small as `most` frames, or each partition as small as it is to be, as far as blocks are not held, and gives
    /// the pages back.
    pub(crate) fn shrink(&self, most: Option<usize>) -> Result<(), CacheError> {
        loop {
            let mut state = self.state();
            let (gone, over) = state.evict(&self.table, most);
            if gone == over {
                break;
            }
            let dirty = !state.dirty().is_empty();
            drop(state);
            if gone == 0 && !(dirty && self.write_some(None)? != NOTHING) {
                break; // the others are held
            }
        }
        self.state().trim(&self.table);
        Ok(())
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

    /// A file ends at `bytes`: its blocks behind that are forgotten, and what its last block holds behind it is zeroed.
    pub(crate) fn truncate(&self, opening: &Opening, bytes: u64) -> Result<(), CacheError> {
        let Opening {
            id,
            number: file,
            born: since,
            ..
        } = *opening;
        let size = self.block_size() as u64;
        let first = bytes.div_ceil(size).min(MOST_INDEX + 1);
        // Not before all blocks behind the end are in hand: what is written back of them until then is written whole. And nothing that is
        // written later is meant by what is dropped here.
        self.forget(file, id, first..u64::MAX, |state| {
            state.set_end(&self.table, file, bytes, true)
        })?;
        let within = (bytes % size) as usize;
        if within != 0 {
            let key = self.key(file, bytes / size)?;
            let (reason, request) = (Reason::Demand, 1);
            let miss = Miss {
                key,
                reason,
                request,
            };
            let none = || Noted {
                uses: &mut [],
                since,
            };
            // What others write behind it in the meantime stays.
            let (mut last, _, hit) = self.change(key, bytes, || self.load(miss, 0, none()))?;
            let frame = last.frame();
            last[within..].fill(0);
            // The next change makes the file longer again.
            self.table.dirty_bits().take(frame);
            let mut state = self.state();
            if hit {
                let uses = &mut [Use {
                    frame,
                    request,
                    key,
                }];
                state.hits(&self.table, Noted { uses, since }, false);
            }
        }
        Ok(())
    }

    /// Forgets blocks of a file: all of them or, if a guard holds one, none. With `then` under the same lock, before the first is
    /// forgotten.
    pub(crate) fn forget(
        &self,
        file: u32,
        id: FileId,
        blocks: Range<u64>,
        then: impl FnOnce(&mut State),
    ) -> Result<(), CacheError> {
        let mut state = self.state();
        let mut patience = Patience::new();
        loop {
            let here = self.resident(&state, file, blocks.clone());
            if here.len() > 1 {
                // One barrier for all of them.
                state.end_epoch(&self.table);
            }
            let mut claimed = Vec::with_capacity(here.len());
            let busy = here.into_iter().find(|&(_, frame)| {
                let page = self.table.frames().try_claim(frame);
                let busy = page.is_none();
                claimed.extend(page.map(|page| (frame, page)));
                busy
            });
            match busy {
                None => {
                    then(&mut state);
                    for (frame, page) in claimed {
                        state.forget(&self.table, frame, true);
                        drop(page);
                    }
                    return Ok(());
                }
                Some((_, frame)) if state.is_moving(frame) => {
                    drop(claimed);
                    self.wait_for_move(state);
                    state = self.state();
                }
                Some((key, _)) => {
                    drop(claimed);
                    if !patience.lasts(self) {
                        return Err(CacheError::Held {
                            file: id,
                            index: key.index(),
                        });
                    }
                    state = self.give_way(state);
                }
            }
        }
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
