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
mod partitions;
mod rule;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod unsynced;

pub(crate) use access::Recorder;
pub use access::{Access, AccessKind};
pub(crate) use dirty::{Age, BATCH, DirtyLimits};
pub(crate) use files::Opening;
pub(crate) use partitions::Admitted;
pub(crate) use rule::{MakeRule, NamedRule, Noted, Use, by_name, default_rule, own};

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::error::CacheError;
use crate::key::{FileId, Key, MOST_FILES, MOST_INDEX, TenantId};
use crate::limits::LEAVE_AT_ONCE;
use crate::stats::{CacheStats, FileStats};
use crate::table::{Claimed, Table};
use dirty::DirtyBlocks;
use epoch_clock::{EpochClock, Marks};
use eviction::{Evicted, Others, Victims};
use files::{OpenFile, OpenFiles};
use frame_set::FrameSet;
use free_frames::FreeFrames;
use larder::internal::order::{Rank, Ranked, elsewhere};
use larder_policy::{Block, Frame, Reason, Shadow};
use partitions::{Partitions, SHARED};
use rule::{CacheRule, named_or_default};
use unsynced::Unsynced;

/// Frames that the list of [passed](DirtyBlocks::passed) ones has room for between two evictions. An eviction rarely passes more.
const MOST_PASSED: usize = 1024;

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
    partitions: Partitions,
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
    /// One that has panicked: it is not called again.
    failed_recorder: Option<Recorder>,
    epochs: EpochClock,
    /// Threads that wait for a block that moves.
    waiting: usize,
    /// How many blocks came to rest.
    rested: u64,
}

impl Ranked for State {
    const RANK: Rank = Rank::BlockCache;
}

/// Uses, misses and arrivals.
impl State {
    pub(crate) fn new(
        rule: NamedRule,
        frames: usize,
        limits: DirtyLimits,
    ) -> Result<Self, CacheError> {
        Ok(Self {
            partitions: Partitions::new(rule, frames),
            free: FreeFrames::new(frames as Frame),
            dirty: DirtyBlocks::new(limits),
            unsynced: Unsynced::new(frames),
            unused: FrameSet::new(frames)?,
            moving: FrameSet::new(frames)?,
            files: OpenFiles::new(frames)?,
            read_errors: 0,
            write_errors: 0,
            recorder: None,
            failed_recorder: None,
            epochs: EpochClock::new(),
            waiting: 0,
            rested: 0,
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
        if self.partitions.any_parked() {
            self.unpark_used(table, uses);
        }
        let marks = match mark {
            true => self.epochs.open(table),
            false => None,
        };
        let unsettled = match self.partitions.is_one() {
            true => self.partitions.touch_all(SHARED, uses, table, marks),
            false => self.touch_each(table, uses, marks),
        };
        if unsettled {
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
                // What has left since, the rule did not hear of.
                if table.frames().key(used.frame) == used.key {
                    self.report(used.key, used.request, AccessKind::Read, true);
                }
            }
        }
    }

    /// The rules look again at blocks that were used, before they learn of the uses.
    #[cold]
    fn unpark_used(&mut self, table: &Table, uses: &[Use]) {
        for used in uses.iter().filter(|used| used.frame != Use::MANY) {
            if self.partitions.is_parked(used.frame) && table.frames().key(used.frame) == used.key {
                self.unpark(table, used.key, used.frame);
            }
        }
    }

    /// The rule looks at a block's frame again, if it does not.
    fn unpark(&mut self, table: &Table, key: Key, frame: Frame) {
        let partition = self.partition(key.file());
        if self.partitions.unpark(partition, frame) {
            self.end_epoch(table);
        }
    }

    /// The rules look at all frames again: one of them is about to be replaced, or to get another size or other blocks. Whatever must
    /// stay then is passed once more. The epoch has ended.
    fn unpark_all(&mut self) {
        if !self.partitions.any_parked() {
            return;
        }
        let Self {
            dirty,
            files,
            partitions,
            ..
        } = self;
        for (key, frame) in dirty.iter() {
            partitions.unpark(files.get(key.file()).partition, frame);
        }
    }

    /// Reports uses to the rules of their partitions.
    fn touch_each(&mut self, table: &Table, uses: &[Use], marks: Option<Marks>) -> bool {
        let mut unsettled = false;
        let Self {
            files, partitions, ..
        } = self;
        let partition = |used: &Use| files.get(used.key.file()).partition;
        for run in uses.chunk_by(|one, next| partition(one) == partition(next)) {
            unsettled |= partitions.touch_all(partition(&run[0]), run, table, marks);
        }
        unsettled
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
        let former = core::mem::replace(&mut self.recorder, recorder);
        former.or_else(|| self.failed_recorder.take())
    }

    #[inline]
    fn report(&mut self, key: Key, request: u32, kind: AccessKind, hit: bool) {
        if self.recorder.is_some() {
            self.record_access(key, request, kind, hit);
        }
    }

    #[cold]
    fn record_access(&mut self, key: Key, request: u32, kind: AccessKind, hit: bool) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let (file, index, block) = match key {
            Key::NONE => (FileId(0), 0, 0),
            key => (self.files.of(key).id, key.index(), key.0),
        };
        let access = Access {
            file,
            index,
            block: Block(block),
            request,
            kind,
            hit,
        };
        let _other_caches = elsewhere();
        // Its panic must not go up through what is half done here.
        let called = catch_unwind(AssertUnwindSafe(|| recorder(access)));
        if let Err(payload) = called {
            // Under the lock neither is dropped: what they own may use the cache then.
            core::mem::forget(payload);
            self.failed_recorder = self.recorder.take();
        }
    }

    /// Reports to the recorder which blocks a rule was told are held, by its numbers.
    #[inline]
    fn report_held(&mut self, table: &Table, partition: u32, slots: &[Frame]) {
        if self.recorder.is_some() {
            for &slot in slots {
                let frame = self.partitions.frame(partition, slot);
                self.report(table.frames().key(frame), 0, AccessKind::Held, false);
            }
        }
    }

    /// Reports to the recorder that a block which came is not there any more.
    pub(crate) fn report_removed(&mut self, key: Key) {
        self.report(key, 0, AccessKind::Remove, false);
    }

    /// Reports a miss to the rule, before room is made. It counts when it is known what becomes of it.
    #[inline]
    pub(crate) fn miss(&mut self, table: &Table, miss: Miss) -> Admitted {
        self.end_epoch(table);
        let partition = self.partition(miss.key.file());
        self.partitions.miss(partition, miss.key, miss.reason)
    }

    /// Counts a miss, and reports it to the recorder.
    #[inline]
    fn count_miss(&mut self, miss: Miss, admitted: Admitted) {
        let Miss {
            key,
            reason,
            request,
        } = miss;
        self.report(key, request, reason.into(), false);
        if reason != Reason::Readahead {
            let refault = u64::from(admitted.remembered);
            self.files.count(key.file(), |stats| {
                stats.misses += 1;
                stats.refaults += refault;
            });
        }
    }

    /// No room could be made for a block: it was missed, and does not come.
    pub(crate) fn refuse(&mut self, miss: Miss, admitted: Admitted) {
        self.count_miss(miss, admitted);
        self.report_removed(miss.key);
    }

    /// Gives a block that was missed a frame, and counts the miss. The caller holds the frame, fills it and [ends](Self::end_load) the
    /// transfer.
    #[inline(always)]
    pub(crate) fn admit<'c>(
        &mut self,
        table: &'c Table,
        miss: Miss,
        admitted: Admitted,
    ) -> Result<(Claimed<'c>, Transfer), CacheError> {
        let Miss {
            key,
            reason,
            request,
        } = miss;
        let partition = self.partition(key.file());
        let Some(mut claimed) = self.room(table, partition) else {
            return Err(self.pinned(partition));
        };
        if let Err(error) = claimed.take_page() {
            claimed = self.other_page(table, partition, claimed).ok_or(error)?;
        }
        let frame = claimed.frame();
        self.count_miss(miss, admitted);
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
        let transfer = self.begin_transfer(table, key, frame);
        let arrival = (key, reason, request);
        self.partitions.insert(partition, frame, arrival, admitted);
        Ok((claimed, transfer))
    }

    #[cold]
    fn pinned(&self, partition: u32) -> CacheError {
        CacheError::Pinned {
            frames: self.partitions.get(partition).rule.capacity(),
        }
    }

    /// Among whose frames a file's blocks are.
    #[inline(always)]
    fn partition(&self, file: u32) -> u32 {
        self.files.get(file).partition
    }

    /// A block that the caller holds comes from the storage, or goes there.
    pub(crate) fn begin_transfer(&mut self, table: &Table, key: Key, frame: Frame) -> Transfer {
        self.moving.put(frame);
        let size = table.frames().block_size() as u64;
        let opened = self.files.of(key);
        self.partitions.get_mut(opened.partition).moving += 1;
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
        self.rests(key, frame);
        match loaded {
            Loaded::Overwritten => {
                self.unsynced.overwritten(key);
                // At once, so that a sync that fails before it is written finds it.
                self.make_dirty(key, frame);
            }
            Loaded::Read if self.unsynced.is_empty() => {}
            Loaded::Read => {
                let opened = self.files.of(key);
                if opened.failed_syncs == load.failed_syncs {
                    let running = opened.is_syncing();
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

    /// A block does not move any more.
    fn rests(&mut self, key: Key, frame: Frame) {
        self.moving.take(frame);
        let partition = self.partition(key.file());
        let partition = self.partitions.get_mut(partition);
        partition.moving -= 1;
        partition.rested += 1;
        self.rested += 1;
    }

    /// A block that was asked for could not be read.
    pub(crate) fn count_read_error(&mut self) {
        self.read_errors += 1;
    }

    /// Readahead takes what is easily had, and not the last frames of others: blocks that are being read or written cannot leave.
    pub(crate) fn has_room_for_readahead(&self, file: u32) -> bool {
        let partition = self.partitions.get(self.partition(file));
        partition.moving * 4 <= partition.rule.capacity()
    }

    /// A block is being read or written.
    pub(crate) fn is_moving(&self, frame: Frame) -> bool {
        self.moving.has(frame)
    }

    /// A block is being read or written; with a file, one that may make room for its blocks.
    pub(crate) fn is_any_moving(&self, with: Option<u32>) -> bool {
        with.map_or(self.moving.any(), |file| {
            self.partitions.get(self.partition(file)).moving > 0
        })
    }

    /// How many have come to rest so far, of the same blocks.
    pub(crate) fn rested(&self, with: Option<u32>) -> u64 {
        with.map_or(self.rested, |file| {
            self.partitions.get(self.partition(file)).rested
        })
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
    /// Changes how many frames the cache has, beside those that tenants have for themselves.
    pub(crate) fn resize(&mut self, table: &Table, frames: usize) -> Result<(), CacheError> {
        self.end_epoch(table);
        self.unpark_all();
        self.partitions.resize(frames)
    }

    /// Blocks in memory.
    pub(crate) fn resident(&self) -> usize {
        self.partitions.len()
    }

    /// A block must leave before one more of this file comes.
    pub(crate) fn is_full(&self, file: u32) -> bool {
        let partition = self.partitions.get(self.partition(file));
        partition.rule.over() > 0 || self.free.is_empty()
    }

    /// The pool has reached its limit: the page of another block will do, with its frame. Rather one of its own partition.
    #[cold]
    fn other_page<'c>(
        &mut self,
        table: &'c Table,
        partition: u32,
        without: Claimed<'c>,
    ) -> Option<Claimed<'c>> {
        let mut other = self.evict_last(table, partition, 1);
        for partition in self.partitions.numbers() {
            other = other.or_else(|| self.evict_last(table, partition, 1));
        }
        self.set_free(table, Some(without));
        other
    }

    /// An empty frame, if there is one. Where all of the partition's are taken it is the one of a block that leaves for it, with its page.
    #[inline(always)]
    fn room<'c>(&mut self, table: &'c Table, partition: u32) -> Option<Claimed<'c>> {
        let over = self.partitions.get(partition).rule.over();
        if over > 0 {
            return self.evict_last(table, partition, over);
        }
        self.free_frame(table)
            .or_else(|| self.owed_frame(table, partition))
    }

    /// Another partition still has blocks beyond its size, which were held when it became smaller. If they are held yet, this one has as many
    /// fewer for that long.
    #[cold]
    fn owed_frame<'c>(&mut self, table: &'c Table, partition: u32) -> Option<Claimed<'c>> {
        if !self.free.is_empty() {
            return None;
        }
        let mut all = self.partitions.numbers();
        let owed = all.find_map(|partition| match self.partitions.get(partition).excess() {
            0 => None,
            _ => self.evict_last(table, partition, 1),
        });
        owed.or_else(|| self.evict_last(table, partition, 1))
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

    /// Takes clean blocks out that no thread holds: `blocks` of them, or those for which their partitions have no room. Returns how many
    /// left, and how many should: where these are more than leave at once, the caller lets the lock go and calls again.
    pub(crate) fn evict(&mut self, table: &Table, blocks: Option<usize>) -> (usize, usize) {
        let len = self.partitions.len();
        let blocks = blocks.map(|blocks| blocks.min(len));
        let now = blocks.map(|blocks| blocks.min(LEAVE_AT_ONCE));
        let (mut gone, mut all) = (0, 0);
        for partition in self.partitions.numbers() {
            let part = self.partitions.get(partition);
            let before = part.rule.len();
            // Of each partition its share, and of the last ones what the rounding left.
            let wanted = now.map_or(part.excess(), |now| {
                (now * before).div_ceil(len.max(1)).min(now - all)
            });
            all += wanted;
            let latest = self.evict_last(table, partition, wanted);
            self.set_free(table, latest);
            gone += before - self.partitions.get(partition).rule.len();
        }
        (gone, blocks.unwrap_or(all))
    }

    /// Time passes for the rules, which may let blocks go.
    pub(crate) fn tick(&mut self, table: &Table) {
        self.end_epoch(table);
        for partition in self.partitions.numbers() {
            let age = |rule: &mut dyn CacheRule, victims: &mut Victims<'_, '_>| rule.age(victims);
            let Victims {
                latest,
                others,
                held,
                ..
            } = self.partitions.choose(partition, table, &self.dirty, age);
            self.report_held(table, partition, &held.into_inner());
            let latest = self.take_out(table, partition, latest, others);
            self.set_free(table, latest);
        }
        self.report(Key::NONE, 0, AccessKind::Tick, false);
    }

    /// Takes blocks of a partition out, where the frame of the latest one stays in the caller's hands. Never more than leave at once, so
    /// that other threads do not wait for the lock until all of a large part are out.
    #[inline]
    fn evict_last<'c>(
        &mut self,
        table: &'c Table,
        partition: u32,
        wanted: usize,
    ) -> Option<Claimed<'c>> {
        self.end_epoch(table);
        let wanted = wanted.min(LEAVE_AT_ONCE);
        let Victims {
            latest,
            others,
            held,
            ..
        } = self
            .partitions
            .choose(partition, table, &self.dirty, |rule, victims| {
                rule.choose(victims, wanted);
            });
        self.report_held(table, partition, &held.into_inner());
        self.take_out(table, partition, latest, others)
    }

    /// What a rule chose leaves, and the dirty blocks that it had to pass for that are parked.
    #[inline(always)]
    fn take_out<'c>(
        &mut self,
        table: &'c Table,
        partition: u32,
        latest: Option<Evicted<'c>>,
        others: Option<Box<Others<'c>>>,
    ) -> Option<Claimed<'c>> {
        if let Some(others) = others {
            self.take_out_others(table, partition, *others);
        }
        if !self.dirty.passed().is_empty() {
            self.park_passed(table, partition);
        }
        let Evicted { page, shadow } = latest?;
        self.evicted(table, partition, page.frame(), shadow);
        Some(page)
    }

    #[cold]
    fn take_out_others(&mut self, table: &Table, partition: u32, others: Others<'_>) {
        self.dirty.request(others.requested);
        for slot in others.kept {
            let frame = self.partitions.frame(partition, slot);
            let key = table.frames().key(frame);
            self.partitions.insert_again(partition, slot, key);
        }
        for Evicted { page, shadow } in others.before {
            self.evicted(table, partition, page.frame(), shadow);
            self.set_free(table, Some(page));
        }
    }

    /// Dirty blocks that a rule had to pass would be in the way of each eviction until they are written.
    #[cold]
    fn park_passed(&mut self, table: &Table, partition: u32) {
        let Self {
            dirty, partitions, ..
        } = self;
        let passed = dirty.passed();
        partitions.park(partition, table.frames().len(), passed);
        passed.clear();
        passed.shrink_to(MOST_PASSED);
    }

    fn set_free(&mut self, table: &Table, empty: Option<Claimed<'_>>) {
        if let Some(page) = empty {
            let frame = page.frame();
            drop(page);
            self.free.push(table.frames(), frame);
        }
    }

    /// A block has left the rule: it is in memory no more. The frame, which the caller holds, has nothing but its page then.
    fn evicted(&mut self, table: &Table, partition: u32, frame: Frame, shadow: Option<Shadow>) {
        let key = table.frames().key(frame);
        table.remove(frame);
        self.leaves(key, true);
        let wasted = u64::from(self.unused.take(frame));
        self.files.count(key.file(), |stats| {
            stats.evictions += 1;
            stats.wasted += wasted;
        });
        self.files.leaves(key.file(), frame);
        self.partitions.left(partition, frame);
        self.release(key.file());
        if let Some(shadow) = shadow {
            self.partitions.get_mut(partition).keep(key, shadow);
        }
    }

    /// Pages of frames that hold nothing go back to the pool, `most` of them. Returns how many.
    pub(crate) fn trim(&mut self, table: &Table, most: usize) -> usize {
        self.free.trim(table.frames(), most)
    }

    /// A block is gone for other reasons than the rule's: it was invalidated, or could not be read. The caller holds its frame.
    pub(crate) fn forget(&mut self, table: &Table, frame: Frame, invalidated: bool) {
        let key = table.frames().key(frame);
        table.dirty_bits().take(frame);
        self.report_removed(key);
        if self.make_clean(table, key) {
            self.files.count(key.file(), |stats| stats.discarded += 1);
        }
        self.leaves(key, !invalidated);
        table.remove(frame);
        self.end_epoch(table);
        self.partitions.remove(self.partition(key.file()), frame);
        self.unused.take(frame);
        self.free.push(table.frames(), frame);
        self.files.leaves(key.file(), frame);
        self.release(key.file());
    }

    /// Of what was written of a block, and is not synced, nothing is in memory any more. With `ours` the storage has it yet.
    #[inline]
    fn leaves(&mut self, key: Key, ours: bool) {
        if !self.unsynced.is_empty() {
            self.leaves_unsynced(key, ours);
        }
    }

    fn leaves_unsynced(&mut self, key: Key, ours: bool) {
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
        self.make_dirty(key, frame);
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

    fn make_dirty(&mut self, key: Key, frame: Frame) {
        let new = usize::from(self.dirty.insert(key, frame));
        if new > 0 {
            self.report(key, 0, AccessKind::Dirty, false);
        }
        let opened = self.files.of(key);
        opened.dirty += new;
        self.partitions.get_mut(opened.partition).dirty += new;
    }

    /// Says whether it was dirty.
    fn make_clean(&mut self, table: &Table, key: Key) -> bool {
        let Some(frame) = self.dirty.clean(key) else {
            return false;
        };
        let opened = self.files.of(key);
        opened.dirty -= 1;
        self.partitions.get_mut(opened.partition).dirty -= 1;
        self.unpark(table, key, frame);
        true
    }

    /// What is dirty, to be written.
    pub(crate) fn dirty(&mut self) -> &mut DirtyBlocks {
        &mut self.dirty
    }

    /// So many blocks are dirty, of all or of those among which this file's are, that a thread which makes one more block dirty writes some
    /// first.
    pub(crate) fn has_many_dirty(&self, file: u32) -> bool {
        if self.dirty.are_many(self.partitions.capacity()) {
            return true;
        }
        let partition = self.partition(file);
        let part = self.partitions.get(partition);
        partition != SHARED && self.dirty.is_beyond_share(part.dirty, part.rule.capacity())
    }

    /// So many more blocks of this file may become dirty, and none has to be written first.
    pub(crate) fn may_dirty(&self, file: u32, more: usize) -> bool {
        let partition = self.partition(file);
        let part = self.partitions.get(partition);
        let fits = |dirty: usize, frames| !self.dirty.is_beyond_share(dirty + more, frames);
        more == 0
            || !self.has_many_dirty(file)
                && fits(self.dirty.len(), self.partitions.capacity())
                && (partition == SHARED || fits(part.dirty, part.rule.capacity()))
    }

    pub(crate) fn has_dirty_beyond_share(&self) -> bool {
        let capacity = self.partitions.capacity();
        self.dirty.is_beyond_share(self.dirty.len(), capacity)
    }

    /// The first dirty block from a key on, before another, that shares its frames with this file's blocks, or of all.
    pub(crate) fn next_dirty(
        &self,
        from: Key,
        until: Key,
        with: Option<u32>,
    ) -> Option<(Key, Frame)> {
        let mut next = self.dirty.next(from, until)?;
        if let Some(with) = with.filter(|_| !self.partitions.is_one()) {
            while self.partition(next.0.file()) != self.partition(with) {
                let from = Key::new(next.0.file() + 1, 0);
                next = self.dirty.next(from, until.max(from))?;
            }
        }
        Some(next)
    }

    /// Whether a dirty block is held by no thread, among those that make room for this file, or all.
    pub(crate) fn is_any_kept_back(&self, table: &Table, with: Option<u32>) -> bool {
        let mut from = Key(0);
        while let Some((key, frame)) = self.next_dirty(from, Key::NONE, with) {
            if table.frames().try_read(frame, key).is_some() {
                return true;
            }
            from = Key(key.0 + 1);
        }
        false
    }

    /// Where writing went on to when room was last made for this file, or for any.
    pub(crate) fn swept(&mut self, file: Option<u32>) -> &mut Key {
        let partition = file.map_or(SHARED, |file| self.partition(file));
        &mut self.partitions.get_mut(partition).swept
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
        self.rests(write.key, write.frame);
    }

    /// A block was written, or could not be; the caller still holds it. True if it is clean now.
    pub(crate) fn end_write(
        &mut self,
        table: &Table,
        write: &Transfer,
        end: io::Result<()>,
    ) -> Result<bool, CacheError> {
        self.rests(write.key, write.frame);
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
                if self.make_clean(table, write.key) {
                    self.report(write.key, 0, AccessKind::Clean, false);
                }
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
        let failure = CacheError::Sync {
            file: opened.id,
            source: Arc::new(failure),
        };
        opened.sync_failed(lost, failure);
        for (key, frame) in again {
            self.make_dirty(key, frame);
        }
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

    /// Opens once more each file of which something was written that no sync says is safe, or that is lost. Looks at each file.
    pub(crate) fn open_unsynced(&mut self) -> Vec<Opening> {
        let is_unsynced = |&number: &u32| {
            let opened = self.files.get(number);
            opened.dirty > 0 || opened.must_report() || self.unsynced.has(number)
        };
        let numbers = 0..self.files.numbers() as u32;
        let unsynced: Vec<u32> = numbers.filter(is_unsynced).collect();
        let open = |number| self.files.open_number(number);
        unsynced.into_iter().map(open).collect()
    }

    /// One more has the file open.
    pub(crate) fn open(&mut self, id: FileId, tenant: TenantId) -> Result<Opening, CacheError> {
        let partition = self.partitions.of_tenant(tenant);
        self.files.open(id, tenant, partition)
    }

    /// The storage has `bytes` of a file, unless more is known of it.
    pub(crate) fn has_size(&mut self, table: &Table, number: u32, bytes: u64) {
        let last = self.dirty.last(Some(number));
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
            dirty: opened.dirty,
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

    /// The frames that a tenant has for itself, and the name of its rule.
    pub(crate) fn tenant_limit(&self, tenant: TenantId) -> Option<(usize, &'static str)> {
        let partition = self.partitions.of_tenant(tenant);
        let part = self.partitions.get(partition);
        (partition != SHARED).then(|| (part.rule.capacity(), part.name))
    }

    /// Gives a tenant so many frames for itself, and the others as many less; also with a rule of this name. Blocks beyond that are to
    /// be [evicted](Self::evict).
    pub(crate) fn limit_tenant(
        &mut self,
        table: &Table,
        tenant: TenantId,
        frames: usize,
        policy: Option<&str>,
    ) -> Result<(), CacheError> {
        self.end_epoch(table);
        self.unpark_all();
        // Before anything is made that is as large.
        self.partitions.beside_limit(tenant, frames)?;
        let most = table.frames().len();
        let partition = self.partitions.of_tenant(tenant);
        if partition == SHARED {
            let blocks = self.blocks_of(table, tenant)?;
            let room = blocks.len().max(frames);
            let rule = match policy {
                Some(name) => by_name(name.to_owned())(room)?,
                None => named_or_default(self.partitions.shared().name, room)?,
            };
            let to = self.partitions.limit(tenant, frames, most, Some(rule))?;
            return self.move_tenant(tenant, (SHARED, to), frames, &blocks);
        }
        let other = policy.filter(|&name| name != self.partitions.get(partition).name);
        let names = self.partitions.names(partition).max(frames);
        let rule = other.map(|name| by_name(name.to_owned())(names));
        let rule = rule.transpose()?;
        self.partitions.limit(tenant, frames, most, None)?;
        match rule {
            Some(rule) => self.replace_rule(table, partition, rule),
            None => Ok(()),
        }
    }

    /// A tenant has no frames for itself any more.
    pub(crate) fn unlimit_tenant(
        &mut self,
        table: &Table,
        tenant: TenantId,
    ) -> Result<(), CacheError> {
        let partition = self.partitions.of_tenant(tenant);
        if partition == SHARED {
            return Ok(());
        }
        self.end_epoch(table);
        self.unpark_all();
        let blocks = self.blocks_of(table, tenant)?;
        let frames = self.partitions.share(partition)?;
        let moved = self.move_tenant(tenant, (partition, SHARED), frames, &blocks);
        if let Some((from, to)) = self.partitions.unlimit(tenant) {
            self.files.renumber(from, to);
        }
        moved
    }

    /// The blocks of a tenant's files that are in memory, those of a file from the first that came.
    fn blocks_of(&self, table: &Table, tenant: TenantId) -> Result<Vec<(Key, Frame)>, CacheError> {
        let files = || self.files.numbers_of(tenant);
        let frames = files().map(|file| self.files.get(file).resident()).sum();
        let mut blocks = Vec::new();
        let reserved = blocks.try_reserve_exact(frames);
        reserved.map_err(|_| CacheError::Memory { frames })?;
        for file in files() {
            let block = |frame| (table.frames().key(frame), frame);
            blocks.extend(self.files.frames(file).map(block));
        }
        Ok(blocks)
    }

    /// The blocks of a tenant's files are in another partition from now on, which has so many frames.
    fn move_tenant(
        &mut self,
        tenant: TenantId,
        (from, to): (u32, u32),
        frames: usize,
        blocks: &[(Key, Frame)],
    ) -> Result<(), CacheError> {
        let moving = |&&(_, frame): &&(Key, Frame)| self.moving.has(frame);
        let moving = blocks.iter().filter(moving).count();
        let dirty = self.files.dirty_of(tenant);
        self.files.set_partition(tenant, to);
        let part = self.partitions.get_mut(from);
        (part.moving, part.dirty) = (part.moving - moving, part.dirty - dirty);
        let part = self.partitions.get_mut(to);
        (part.moving, part.dirty) = (part.moving + moving, part.dirty + dirty);
        let way = (from, to);
        self.partitions.transfer(way, frames, blocks, &self.unused)
    }

    fn replace_rule(
        &mut self,
        table: &Table,
        partition: u32,
        rule: NamedRule,
    ) -> Result<(), CacheError> {
        let Self {
            partitions, unused, ..
        } = self;
        partitions.replace_rule(partition, rule, table, unused)
    }

    /// Another rule chooses among the blocks that are not of a tenant with a limit.
    pub(crate) fn set_policy(&mut self, table: &Table, name: &str) -> Result<(), CacheError> {
        self.end_epoch(table);
        self.unpark_all();
        let names = self.partitions.names(SHARED);
        let rule = by_name(name.to_owned())(names)?;
        self.replace_rule(table, SHARED, rule)
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
            resident: self.partitions.len(),
            dirty: self.dirty.len(),
            files: self.files.len(),
            capacity: self.partitions.capacity(),
            table_bytes: table.bytes()
                + self.partitions.bytes()
                + self.unused.bytes()
                + self.moving.bytes()
                + self.dirty.bytes()
                + self.unsynced.bytes()
                + self.files.bytes(),
            policy: self.partitions.shared().name,
            explanation: self.partitions.shared().rule.explain(),
        }
    }

    /// Whether all of it agrees with the table; a sentence that names the frame and what is wrong with it. Looks at each frame and
    /// each list: for tests.
    pub(crate) fn check(&self, table: &Table) -> Result<(), String> {
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
        let parked = self.partitions.parked();
        let is_parked = |&(_, frame): &(Key, Frame)| self.partitions.is_parked(frame);
        let dirty = self.dirty.iter().filter(is_parked).count();
        if parked != dirty {
            return Err(format!(
                "{parked} frames are parked, and {dirty} of them hold a dirty block"
            ));
        }
        let all: usize = resident.iter().sum();
        for (partition, _) in self.partitions.iter() {
            let numbers = 0..self.files.numbers() as u32;
            let files = numbers.filter(|&file| self.partition(file) == partition);
            let (blocks, dirty) = files.fold((0, 0), |(blocks, dirty), file| {
                (
                    blocks + resident[file as usize],
                    dirty + self.dirty.count(file),
                )
            });
            self.partitions.check(partition, blocks, dirty)?;
        }
        let free = self.free.check(frames)?;
        if all + free != frames.len() {
            let len = frames.len();
            return Err(format!(
                "{all} frames hold a block and {free} are free, but there are {len}"
            ));
        }
        let holds = |number, frame| frames.key(frame).file() == number;
        let has = |number: u32| (resident[number as usize], self.dirty.count(number));
        self.files.check(has, holds)
    }
}
