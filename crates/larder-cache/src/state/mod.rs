//! What a cache knows under its lock: which blocks the rule keeps, which are dirty, which are not synced, and whose they are.
//!
//! Every change of these goes through a method of [`State`], which keeps them in agreement. The methods make no call of the storage
//! and wait for no block.

mod access;
mod dirty;
mod epoch_clock;
mod eviction;
mod files;
mod frame_set;
mod free_frames;
mod rule;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod unsynced;

pub(crate) use access::Recorder;
pub use access::{Access, AccessKind};
pub(crate) use dirty::{Age, BATCH, DirtyLimits};
pub(crate) use files::Opening;
pub(crate) use rule::{MakeRule, NamedRule, Noted, Use, by_name, default_rule, own};

use std::io;
use std::sync::Arc;

use crate::error::CacheError;
use crate::key::{FileId, Key, MOST_FILES, MOST_INDEX, TenantId};
use crate::stats::{CacheStats, FileStats};
use crate::table::{Claimed, Table};
use dirty::DirtyBlocks;
use epoch_clock::EpochClock;
use eviction::{Evicted, Others, Victims};
use files::{OpenFile, OpenFiles};
use frame_set::FrameSet;
use free_frames::FreeFrames;
use larder::internal::order::{Rank, Ranked, elsewhere};
use larder_policy::{Admission, Arrival, Block, Frame, PolicyError, Reason, Shadow, Shadows};
use rule::CacheRule;
use unsynced::Unsynced;

/// A block that must come into memory, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Miss {
    pub(crate) key: Key,
    pub(crate) reason: Reason,
    pub(crate) request: u32,
}

/// A block on its way from the storage or to it. The thread that moves it holds its frame.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) key: Key,
    pub(crate) frame: Frame,
    pub(crate) file: FileId,
    /// Bytes of it that the file has: what the storage has behind belongs to a former, longer file.
    pub(crate) len: usize,
    /// Syncs of the file that had failed when it began.
    failed_syncs: u64,
}

/// How a block came into its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loaded {
    Read,
    /// It is written from front to end, and was not read.
    Overwritten,
    Failed,
}

/// All of it.
pub(crate) struct State {
    /// The name of the rule.
    policy: &'static str,
    rule: Box<dyn CacheRule>,
    shadows: Shadows,
    free: FreeFrames,
    dirty: DirtyBlocks,
    /// Written since their file was last synced.
    unsynced: Unsynced,
    /// Read ahead, and not used yet.
    unused: FrameSet,
    /// Being read from the storage or written to it.
    moving: FrameSet,
    files: OpenFiles,
    read_errors: u64,
    write_errors: u64,
    recorder: Option<Recorder>,
    epochs: EpochClock,
    /// Blocks that are being read.
    loading: usize,
    /// Threads that wait for a block that moves.
    waiting: usize,
}

impl Ranked for State {
    const RANK: Rank = Rank::BlockCache;
}

/// Uses, misses and arrivals.
impl State {
    pub(crate) fn new(
        (policy, rule): NamedRule,
        frames: usize,
        limits: DirtyLimits,
    ) -> Result<Self, CacheError> {
        Ok(Self {
            policy,
            rule,
            shadows: Shadows::new(frames),
            free: FreeFrames::new(frames as Frame),
            dirty: DirtyBlocks::new(limits),
            unsynced: Unsynced::new(frames),
            unused: FrameSet::new(frames)?,
            moving: FrameSet::new(frames)?,
            files: OpenFiles::new(frames)?,
            read_errors: 0,
            write_errors: 0,
            recorder: None,
            epochs: EpochClock::new(),
            loading: 0,
            waiting: 0,
        })
    }

    /// Uses of blocks that were found in frames, reported some time after they were used. With `mark`, blocks whose
    /// uses would tell the rule nothing until something else happens are marked, so that those uses are only counted.
    pub(crate) fn hits(&mut self, table: &Table, noted: Noted<'_>, mark: bool) {
        let Noted { uses, since } = noted;
        if self.files.births_after(since) {
            self.void(uses, since);
        }
        let uses = &*uses;
        let marks = match mark {
            true => self.epochs.open(table),
            false => None,
        };
        if self.rule.touch_all(uses, table, marks) {
            self.end_epoch(table);
        }
        if self.unused.any() {
            for used in uses {
                if used.frame != Use::MANY && table.frames().key(used.frame) == used.key {
                    self.unused.take(used.frame);
                }
            }
        }
        let (mut file, mut count) = (0, 0);
        for used in uses {
            if used.key.file() != file {
                self.files.count_hits(file, count, since);
                (file, count) = (used.key.file(), 0);
            }
            count += used.count();
        }
        self.files.count_hits(file, count, since);
        if self.recorder.is_some() {
            for used in uses.iter().filter(|used| used.frame != Use::MANY) {
                self.report(used.key, used.request, AccessKind::Read, true);
            }
        }
    }

    /// Uses of files whose number is another one's by now are counted, and no more.
    #[cold]
    fn void(&self, uses: &mut [Use], since: u64) {
        for used in uses {
            if self.files.is_born_after(used.key.file(), since) {
                (used.request, used.frame) = (used.count() as u32, Use::MANY);
            }
        }
    }

    /// Something else than uses is about to happen: blocks that were saturated may no longer be. Also passes the barrier after
    /// which no frame must pass one of its own to be claimed.
    pub(crate) fn end_epoch(&mut self, table: &Table) {
        self.epochs.end(table);
    }

    /// Calls `recorder` for every use from now on. Returns the former one.
    pub(crate) fn record(&mut self, table: &Table, recorder: Option<Recorder>) -> Option<Recorder> {
        self.epochs.report_all(recorder.is_some(), table);
        core::mem::replace(&mut self.recorder, recorder)
    }

    fn report(&mut self, key: Key, request: u32, kind: AccessKind, hit: bool) {
        // One that panics is not called again, least of all while its panic goes up.
        if let Some(mut recorder) = self.recorder.take() {
            let _other_caches = elsewhere();
            recorder(Access {
                file: self.files.of(key).id,
                index: key.index(),
                block: Block(key.0),
                request,
                kind,
                hit,
            });
            self.recorder = Some(recorder);
        }
    }

    /// Reports to the recorder that a block which came is not there any more.
    pub(crate) fn report_removed(&mut self, key: Key) {
        self.report(key, 0, AccessKind::Remove, false);
    }

    /// Counts a miss, and reports it to the rule, before room is made.
    pub(crate) fn miss(&mut self, table: &Table, miss: Miss) -> Admission {
        let Miss {
            key,
            reason,
            request,
        } = miss;
        self.end_epoch(table);
        self.report(key, request, reason.into(), false);
        let shadow = self.rule.recall(&mut self.shadows, key);
        if reason != Reason::Readahead {
            let refault = u64::from(shadow.is_some());
            self.files.count(key.file(), |stats| {
                stats.misses += 1;
                stats.refaults += refault;
            });
        }
        self.rule.miss(Block(key.0), shadow, reason)
    }

    /// Gives a block that is not in memory a frame. The caller holds the frame, fills it and [ends](Self::end_load) the transfer.
    #[inline(always)]
    pub(crate) fn admit<'c>(
        &mut self,
        table: &'c Table,
        miss: Miss,
        admission: Admission,
    ) -> Result<(Claimed<'c>, Transfer), CacheError> {
        let Miss {
            key,
            reason,
            request,
        } = miss;
        let Some(mut claimed) = self.room(table) else {
            return Err(self.pinned());
        };
        if let Err(error) = claimed.take_page() {
            claimed = self.other_page(table, claimed).ok_or(error)?;
        }
        let frame = claimed.frame();
        self.end_epoch(table);
        table.insert(key, frame);
        let read_ahead = reason == Reason::Readahead;
        if read_ahead {
            self.unused.put(frame);
        }
        self.files.comes(key.file(), frame);
        if read_ahead {
            self.files.count(key.file(), |stats| stats.read_ahead += 1);
        }
        self.loading += 1;
        let transfer = self.begin_transfer(table, key, frame);
        self.rule.insert(
            frame,
            Arrival {
                block: Block(key.0),
                reason,
                request,
                admission,
            },
        );
        Ok((claimed, transfer))
    }

    #[cold]
    fn pinned(&self) -> CacheError {
        CacheError::Pinned {
            frames: self.rule.capacity(),
        }
    }

    /// A block that the caller holds comes from the storage, or goes there.
    pub(crate) fn begin_transfer(&mut self, table: &Table, key: Key, frame: Frame) -> Transfer {
        self.moving.put(frame);
        let size = table.frames().block_size() as u64;
        let opened = self.files.of(key);
        let len = opened.end.saturating_sub(key.index() * size).min(size);
        Transfer {
            key,
            frame,
            file: opened.id,
            len: len as usize,
            failed_syncs: opened.failed_syncs,
        }
    }

    /// A block came into its frame, or could not be read and is forgotten.
    pub(crate) fn end_load(&mut self, table: &Table, load: &Transfer, loaded: Loaded) {
        let (key, frame) = (load.key, load.frame);
        self.loading -= 1;
        self.moving.take(frame);
        let opened = self.files.of(key);
        let (failed, running) = (opened.failed_syncs, opened.is_syncing());
        match loaded {
            Loaded::Overwritten => {
                self.unsynced.overwritten(key);
                // At once, so that a sync that fails before it is written finds it.
                self.dirty.insert(key, frame);
            }
            Loaded::Read => {
                if failed == load.failed_syncs {
                    self.unsynced.comes(key, frame, running);
                }
            }
            Loaded::Failed => {
                if table.frames().key(frame) == key {
                    self.forget(table, frame, false);
                }
            }
        }
    }

    /// A block that was asked for could not be read.
    pub(crate) fn count_read_error(&mut self) {
        self.read_errors += 1;
    }

    /// Readahead takes what is easily had, and not the last frames of others.
    pub(crate) fn has_room_for_readahead(&self) -> bool {
        self.loading * 4 <= self.rule.capacity()
    }

    /// A block is being read or written.
    pub(crate) fn is_moving(&self, frame: Frame) -> bool {
        self.moving.has(frame)
    }

    pub(crate) fn is_any_moving(&self) -> bool {
        self.moving.any()
    }

    /// A thread begins to wait for a block that moves.
    pub(crate) fn begin_wait(&mut self) {
        self.waiting += 1;
    }

    pub(crate) fn end_wait(&mut self) {
        self.waiting -= 1;
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting > 0
    }
}

/// Departures.
impl State {
    /// Changes how many frames the rule chooses among.
    pub(crate) fn resize(&mut self, table: &Table, frames: usize) -> Result<(), PolicyError> {
        self.end_epoch(table);
        self.rule.resize(frames)
    }

    /// Blocks in memory.
    pub(crate) fn resident(&self) -> usize {
        self.rule.len()
    }

    /// A block must leave before one more comes.
    pub(crate) fn is_full(&self) -> bool {
        self.rule.over() > 0
    }

    /// The pool has reached its limit: the page of another block will do, with its frame.
    #[cold]
    fn other_page<'c>(&mut self, table: &'c Table, without: Claimed<'c>) -> Option<Claimed<'c>> {
        let other = self.evict_last(table, 1);
        self.set_free(table, Some(without));
        other
    }

    /// An empty frame, if there is one. Of a cache that is full it is the one of a block that leaves for it, with its page.
    #[inline(always)]
    fn room<'c>(&mut self, table: &'c Table) -> Option<Claimed<'c>> {
        let over = self.rule.over();
        if over > 0 {
            return self.evict_last(table, over);
        }
        self.free_frame(table)
    }

    /// A frame that holds nothing. Not one that a thread looks at which expects its former block there: that thread may take its time
    /// until it lets go, and all others wait for the cache's lock.
    #[inline(always)]
    fn free_frame<'c>(&mut self, table: &'c Table) -> Option<Claimed<'c>> {
        let frame = self.free.pop(table.frames())?;
        let claimed = table.frames().try_claim(frame);
        claimed.or_else(|| self.next_free_frame(table, frame))
    }

    #[cold]
    fn next_free_frame<'c>(&mut self, table: &'c Table, busy: Frame) -> Option<Claimed<'c>> {
        let next = self.free_frame(table);
        self.free.push(table.frames(), busy);
        next
    }

    /// Takes up to `wanted` clean blocks out that no thread holds. Returns how many.
    pub(crate) fn evict(&mut self, table: &Table, wanted: usize) -> usize {
        let before = self.rule.len();
        let latest = self.evict_last(table, wanted);
        self.set_free(table, latest);
        before - self.rule.len()
    }

    /// Time passes for the rule, which may let blocks go.
    pub(crate) fn tick(&mut self, table: &Table) {
        self.end_epoch(table);
        let mut victims = Victims::new(table, &self.dirty);
        self.rule.age(&mut victims);
        let Victims { latest, others, .. } = victims;
        let latest = self.take_out(table, latest, others);
        self.set_free(table, latest);
    }

    /// [`evict`](Self::evict), where the frame of the latest one stays in the caller's hands.
    #[inline]
    fn evict_last<'c>(&mut self, table: &'c Table, wanted: usize) -> Option<Claimed<'c>> {
        self.end_epoch(table);
        let mut victims = Victims::new(table, &self.dirty);
        self.rule.choose(&mut victims, wanted);
        let Victims {
            latest,
            others,
            requested,
            ..
        } = victims;
        self.dirty.request(requested);
        self.take_out(table, latest, others)
    }

    #[inline(always)]
    fn take_out<'c>(
        &mut self,
        table: &'c Table,
        latest: Option<Evicted<'c>>,
        others: Option<Box<Others<'c>>>,
    ) -> Option<Claimed<'c>> {
        if let Some(others) = others {
            self.take_out_others(table, *others);
        }
        let Evicted { page, shadow } = latest?;
        self.evicted(table, page.frame(), shadow);
        Some(page)
    }

    #[cold]
    fn take_out_others(&mut self, table: &Table, others: Others<'_>) {
        for frame in others.kept {
            let block = Block(table.frames().key(frame).0);
            let arrival = Arrival::demand(block, 0, Admission::default());
            self.rule.insert(frame, arrival);
        }
        for Evicted { page, shadow } in others.before {
            self.evicted(table, page.frame(), shadow);
            self.set_free(table, Some(page));
        }
    }

    fn set_free(&mut self, table: &Table, empty: Option<Claimed<'_>>) {
        if let Some(page) = empty {
            let frame = page.frame();
            drop(page);
            self.free.push(table.frames(), frame);
        }
    }

    /// A block has left the rule: it is in memory no more. The frame, which the caller holds, has nothing but its page then.
    fn evicted(&mut self, table: &Table, frame: Frame, shadow: Option<Shadow>) {
        let key = table.frames().key(frame);
        table.remove(frame);
        self.leaves(key, true);
        let wasted = u64::from(self.unused.take(frame));
        self.files.count(key.file(), |stats| {
            stats.evictions += 1;
            stats.wasted += wasted;
        });
        self.files.leaves(key.file(), frame);
        self.release(key.file());
        if let Some(shadow) = shadow {
            self.rule.keep(&mut self.shadows, key, shadow);
        }
    }

    /// The pages of frames that hold nothing go back to the pool.
    pub(crate) fn trim(&self, table: &Table) {
        for frame in self.free.iter(table.frames()) {
            if let Some(mut claimed) = table.frames().try_claim(frame) {
                claimed.give_back();
            }
        }
    }

    /// A block is gone for other reasons than the rule's: it was invalidated, or could not be read. The caller holds its frame.
    pub(crate) fn forget(&mut self, table: &Table, frame: Frame, invalidated: bool) {
        let key = table.frames().key(frame);
        table.dirty_bits().take(frame);
        self.report_removed(key);
        if self.dirty.clean(key) {
            self.files.count(key.file(), |stats| stats.discarded += 1);
        }
        self.leaves(key, !invalidated);
        table.remove(frame);
        self.end_epoch(table);
        self.rule.remove(frame);
        self.unused.take(frame);
        self.free.push(table.frames(), frame);
        self.files.leaves(key.file(), frame);
        self.release(key.file());
    }

    /// Of what was written of a block, and is not synced, nothing is in memory any more. With `ours` the storage has it yet.
    fn leaves(&mut self, key: Key, ours: bool) {
        let known = self.files.of(key).knows_what_left();
        let mut next = self.unsynced.leaves(key, ours, known);
        while let Some((file, after)) = next {
            self.files.get_mut(file).left_unsynced(after);
            next = self.unsynced.makes_more_room();
        }
    }
}

/// Dirty blocks, writes and syncs.
impl State {
    /// The holder of a block changes it.
    /// Its file ends at `until` or later, as far as this block goes. Returns how many bytes the file has of the block.
    pub(crate) fn change(&mut self, table: &Table, key: Key, frame: Frame, until: u64) -> usize {
        self.dirty.insert(key, frame);
        let size = table.frames().block_size() as u64;
        let start = key.index() * size;
        let opened = self.files.of(key);
        opened.end = opened.end.max(until.min(start + size));
        let len = opened.end.saturating_sub(start).min(size);
        if len == size {
            table.dirty_bits().put(frame);
        }
        len as usize
    }

    /// What is dirty, to be written.
    pub(crate) fn dirty(&mut self) -> &mut DirtyBlocks {
        &mut self.dirty
    }

    /// So many blocks are dirty that a thread which makes one more block dirty writes some first.
    pub(crate) fn has_many_dirty(&self) -> bool {
        self.dirty.are_many(self.rule.capacity())
    }

    pub(crate) fn has_dirty_beyond_share(&self) -> bool {
        self.dirty.are_beyond_share(self.rule.capacity())
    }

    /// The first dirty block with which the storage's file becomes longer, if this one is such a block. All in between are
    /// written before this one, so that the storage never has a hole where something was written.
    pub(crate) fn grows(&mut self, table: &Table, key: Key) -> Option<Key> {
        let size = table.frames().block_size() as u64;
        let opened = self.files.of(key);
        let (stored, end) = (opened.stored(), opened.end);
        if ((key.index() + 1) * size).min(end) <= stored {
            return None;
        }
        let first = Key::new(key.file(), stored / size);
        Some(self.dirty.next(first, key).map_or(key, |(first, _)| first))
    }

    /// The block goes no more, and is dirty still.
    pub(crate) fn cancel_write(&mut self, write: &Transfer) {
        self.moving.take(write.frame);
    }

    /// A block was written, or could not be; the caller still holds it. True if it is clean now.
    pub(crate) fn end_write(
        &mut self,
        table: &Table,
        write: &Transfer,
        end: io::Result<()>,
    ) -> Result<bool, CacheError> {
        self.moving.take(write.frame);
        let size = table.frames().block_size() as u64;
        let opened = self.files.of(write.key);
        if end.is_ok() && write.len > 0 {
            opened.grew(write.key.index() * size + write.len as u64);
        }
        match end {
            // A sync that failed meanwhile may have been this write's, and will not be reported again.
            Ok(()) if opened.failed_syncs != write.failed_syncs => Ok(false),
            Ok(()) => {
                let syncs = opened.syncs;
                self.files
                    .count(write.key.file(), |stats| stats.written += 1);
                self.dirty.clean(write.key);
                self.unsynced.written(write.key, write.frame, syncs);
                // The next change marks it again.
                table.dirty_bits().take(write.frame);
                // The next use is reported, and from then on the block can be pinned.
                table.frames().unmark(write.frame);
                Ok(true)
            }
            Err(error) => {
                let error = CacheError::Write {
                    file: write.file,
                    index: write.key.index(),
                    source: Arc::new(error),
                };
                opened.fail(error.clone());
                self.write_errors += 1;
                Err(error)
            }
        }
    }

    /// A sync of a file begins. Returns its number.
    pub(crate) fn begin_sync(&mut self, file: u32) -> u64 {
        let opened = self.files.get_mut(file);
        opened.syncs += 1;
        opened.syncs
    }

    /// What was written before the sync of this number began is safe. If it failed, it took with it whatever was written until
    /// now and not synced: these blocks are dirty again.
    pub(crate) fn end_sync(&mut self, number: u32, begun: u64, end: io::Result<()>) {
        let opened = self.files.get_mut(number);
        let Err(failure) = end else {
            opened.sync_succeeded(begun);
            return self.unsynced.safe(number, begun);
        };
        let mut again = Vec::new();
        let lost = self.unsynced.failed(
            number,
            |key| self.dirty.get(key).is_some(),
            |key, frame| again.push((key, frame)),
        );
        for (key, frame) in again {
            self.dirty.insert(key, frame);
        }
        let failure = CacheError::Sync {
            file: opened.id,
            source: Arc::new(failure),
        };
        opened.sync_failed(lost, failure);
    }

    /// The file ends at `bytes`: what was written behind is not missed when a sync fails. With `truncated`, blocks behind the end are
    /// about to be forgotten, and not missed either.
    pub(crate) fn set_end(&mut self, table: &Table, number: u32, bytes: u64, truncated: bool) {
        let first = bytes.div_ceil(table.frames().block_size() as u64);
        if first <= MOST_INDEX {
            self.unsynced.cut(Key::new(number, first), truncated);
        }
        self.files.get_mut(number).set_end(bytes, truncated);
    }
}

/// Open files and numbers about them.
impl State {
    pub(crate) fn file(&self, number: u32) -> &OpenFile {
        self.files.get(number)
    }

    /// The frames that hold blocks of a file, in no order.
    pub(crate) fn frames_of(&self, number: u32) -> impl Iterator<Item = Frame> {
        self.files.frames(number)
    }

    /// One more has the file open.
    pub(crate) fn open(&mut self, id: FileId, tenant: TenantId) -> Result<Opening, CacheError> {
        self.files.open(id, tenant)
    }

    /// The storage has `bytes` of a file, unless more is known of it.
    pub(crate) fn has_size(&mut self, table: &Table, number: u32, bytes: u64) {
        let last = self.dirty.last(number);
        let size = table.frames().block_size() as u64;
        let dirty_end = last.map_or(0, |last| (last.index() + 1) * size);
        self.files.get_mut(number).has_size(bytes, dirty_end);
    }

    /// The same one is open once more.
    pub(crate) fn open_again(&mut self, number: u32) {
        self.files.open_again(number);
    }

    /// One less has it open.
    pub(crate) fn close(&mut self, number: u32) {
        self.files.close(number);
        self.release(number);
    }

    fn release(&mut self, number: u32) {
        let has_left = || self.unsynced.has_left(number);
        self.files.release(number, has_left);
    }

    pub(crate) fn file_stats(&self, number: u32) -> FileStats {
        let opened = self.files.get(number);
        FileStats {
            resident: opened.resident(),
            dirty: self.dirty.count(number),
            ..opened.stats
        }
    }

    pub(crate) fn tenant_stats(&self, tenant: TenantId) -> FileStats {
        self.files
            .tenant_stats(tenant, |file| self.file_stats(file))
    }

    /// [`tenant_stats`](Self::tenant_stats), of which nothing is kept of files that have no number any more.
    pub(crate) fn forget_tenant(&mut self, tenant: TenantId) -> FileStats {
        let sum = self.tenant_stats(tenant);
        self.files.forget_tenant(tenant);
        sum
    }

    pub(crate) fn stats(&self, table: &Table) -> CacheStats {
        let total = self.files.total();
        CacheStats {
            hits: total.hits,
            misses: total.misses,
            refaults: total.refaults,
            read_ahead: total.read_ahead,
            wasted: total.wasted,
            evictions: total.evictions,
            written: total.written,
            discarded: total.discarded,
            write_errors: self.write_errors,
            read_errors: self.read_errors,
            resident: self.rule.len(),
            dirty: self.dirty.len(),
            files: self.files.len(),
            capacity: self.rule.capacity(),
            table_bytes: table.bytes()
                + self.rule.bytes()
                + self.shadows.bytes()
                + self.unused.bytes()
                + self.moving.bytes()
                + self.dirty.bytes()
                + self.unsynced.bytes()
                + self.files.bytes(),
            policy: self.policy,
            explanation: self.rule.explain(),
        }
    }

    /// Whether all of it agrees with the table; a sentence that names the frame and what is wrong with it. Looks at each frame and
    /// each list: for tests.
    pub(crate) fn check(&self, table: &Table) -> Result<(), String> {
        self.rule.check()?;
        let frames = table.frames();
        let holds = |key: Key| key != Key::NONE && key.file() != MOST_FILES;
        let mut resident = vec![0_usize; self.files.numbers()];
        for frame in 0..frames.len() as Frame {
            let key = frames.key(frame);
            if table.dirty_bits().has(frame) && self.dirty.get(key) != Some(frame) {
                return Err(format!(
                    "frame {frame} may be changed unseen and is not dirty"
                ));
            }
            if !holds(key) {
                continue;
            }
            if table.find(key) != Some(frame) {
                return Err(format!(
                    "frame {frame} holds {key:?}, and the table does not say so"
                ));
            }
            match resident.get_mut(key.file() as usize) {
                Some(count) => *count += 1,
                None => return Err(format!("frame {frame} holds a block of no file")),
            }
        }
        for (key, frame) in self.dirty.iter().chain(self.unsynced.here()) {
            if frames.key(frame) != key {
                return Err(format!(
                    "{key:?} is to be written, and frame {frame} does not hold it"
                ));
            }
        }
        let all: usize = resident.iter().sum();
        if all != self.rule.len() {
            let rule = self.rule.len();
            return Err(format!(
                "{all} frames hold a block, and the rule has {rule}"
            ));
        }
        let free = self.free.check(frames)?;
        if all + free != frames.len() {
            let len = frames.len();
            return Err(format!(
                "{all} frames hold a block and {free} are free, but there are {len}"
            ));
        }
        let holds = |number, frame| frames.key(frame).file() == number;
        self.files.check(|number| resident[number as usize], holds)
    }
}
