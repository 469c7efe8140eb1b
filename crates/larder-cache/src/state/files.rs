//! Files that are open, and those that are not but have blocks in memory yet: their numbers, counts and failures.

use std::collections::HashMap;
use std::sync::Arc;

use larder::ids::rule::{Lowest, NearFull, Rested};
use larder::ids::{IdError, Ids};
use larder_base::list::{List, ShortLinks};

use crate::error::CacheError;
use crate::key::{FileId, Key, MOST_FILES, TenantId};
use crate::limits::RESTING_FILES;
use crate::stats::FileStats;
use crate::sync::{Mutex, Syncing};
use larder_policy::Frame;

/// What an opener gets.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) id: FileId,
    pub(crate) number: u32,
    /// How many numbers had been given again by then, with the file's own; 0 if no file had its number before. So a use of this
    /// number that was noted when there were fewer is another file's.
    pub(crate) born: u64,
    /// Failures that there were before.
    pub(crate) failures: u64,
}

/// A file that was opened.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(super) id: FileId,
    tenant: TenantId,
    /// Among whose frames its blocks are.
    pub(super) partition: u32,
    /// [`Opening::born`].
    born: u64,
    pub(super) stats: FileStats,
    /// The frames that hold its blocks.
    frames: List,
    /// How many of its blocks are dirty.
    pub(super) dirty: usize,
    /// Bytes behind this are not written back; `u64::MAX` until it is said.
    pub(super) end: u64,
    /// Bytes that the storage has of it, or fewer; `u64::MAX` if that is not known. What is behind grows in order.
    stored: u64,
    /// Writes and syncs that failed, and the latest failure.
    failures: u64,
    failure: Option<CacheError>,
    /// Blocks were written, and left before the storage was synced, for which there was no room among the
    /// [unsynced](super::unsynced) ones. This is the sync after which the latest of them was written.
    left_unsynced: Option<u64>,
    /// A failed sync took blocks that cannot be written again.
    lost: bool,
    /// Syncs that were begun, those that ended, and those that failed.
    pub(super) syncs: u64,
    ended_syncs: u64,
    pub(super) failed_syncs: u64,
    /// Held over a sync: of two syncs at a time, the system could report success to one while the other still gets the error.
    syncing: Arc<Mutex<Syncing>>,
    openers: usize,
}

impl OpenFile {
    fn new(id: FileId, tenant: TenantId, partition: u32) -> Self {
        Self {
            id,
            tenant,
            partition,
            born: 0,
            stats: FileStats::default(),
            frames: List::new(),
            dirty: 0,
            end: u64::MAX,
            stored: u64::MAX,
            failures: 0,
            failure: None,
            left_unsynced: None,
            lost: false,
            syncs: 0,
            ended_syncs: 0,
            failed_syncs: 0,
            syncing: Arc::new(Mutex::new(Syncing)),
            openers: 0,
        }
    }

    pub(crate) fn syncing(&self) -> Arc<Mutex<Syncing>> {
        Arc::clone(&self.syncing)
    }

    /// Blocks in memory.
    pub(crate) fn resident(&self) -> usize {
        self.frames.len()
    }

    /// Bytes behind this are not written back.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that the storage has of it, or fewer; `u64::MAX` if that is not known.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// The storage has `bytes` of it. What was said of its end already stays: the cache knows what was written since.
    pub(super) fn has_size(&mut self, bytes: u64, dirty_end: u64) {
        if self.end == u64::MAX {
            self.end = bytes.max(dirty_end);
            self.stored = bytes;
        }
    }

    /// The storage has what lies before `bytes`.
    pub(super) fn grew(&mut self, bytes: u64) {
        self.stored = self.stored.max(bytes.min(self.end));
    }

    /// A sync has begun and not ended.
    pub(super) fn is_syncing(&self) -> bool {
        self.syncs != self.ended_syncs
    }

    /// What was written before the sync of this number began is safe.
    pub(super) fn sync_succeeded(&mut self, begun: u64) {
        self.ended_syncs += 1;
        self.left_unsynced = self.left_unsynced.filter(|&after| after >= begun);
    }

    /// A sync failed; with `lost` it took blocks that cannot be written again.
    pub(super) fn sync_failed(&mut self, lost: bool, failure: CacheError) {
        self.lost |= lost | self.left_unsynced.take().is_some();
        self.ended_syncs += 1;
        self.failed_syncs += 1;
        self.fail(failure);
    }

    pub(super) fn fail(&mut self, failure: CacheError) {
        self.failures += 1;
        self.failure = Some(failure);
    }

    /// How many failures there were, and what an opener that knows of `seen` must learn.
    pub(crate) fn outcome(&self, seen: u64) -> (u64, Result<(), CacheError>) {
        let result = match self.failure.clone() {
            _ if self.lost => Err(CacheError::Lost { file: self.id }),
            Some(failure) if seen != self.failures => Err(failure),
            _ => Ok(()),
        };
        (self.failures, result)
    }

    /// All that left until now is remembered block by block.
    pub(super) fn knows_what_left(&self) -> bool {
        self.left_unsynced.is_none()
    }

    /// Blocks left that are not remembered one by one, the latest written after this sync.
    pub(super) fn left_unsynced(&mut self, after: u64) {
        self.left_unsynced = self.left_unsynced.max(Some(after));
    }

    /// The file ends at `bytes`. If nothing is left of it, no block is missed. If nothing is left with the storage either, for
    /// which `truncated` stands, it begins anew.
    pub(super) fn set_end(&mut self, bytes: u64, truncated: bool) {
        self.end = bytes;
        if self.stored != u64::MAX {
            self.stored = self.stored.min(bytes);
        }
        if bytes == 0 {
            self.left_unsynced = None;
            self.lost &= !truncated;
        }
    }

    /// Its next opener must learn of something.
    pub(super) fn must_report(&self) -> bool {
        self.lost || self.left_unsynced.is_some()
    }
}

/// Why a cache of so many frames has no number for a file.
fn refused(error: &IdError, frames: usize) -> CacheError {
    match error {
        IdError::OutOfMemory => CacheError::Memory { frames },
        _ => CacheError::Files { most: MOST_FILES },
    }
}

/// All of them, by number.
#[derive(Debug)]
pub(super) struct OpenFiles {
    files: Vec<OpenFile>,
    /// Of the lists of all files' frames.
    links: ShortLinks,
    numbers: HashMap<FileId, u32>,
    /// Which numbers have a file. One that is given up rests, so that a use that was noted before rarely meets another file.
    ids: Ids<Rested<Lowest>, u32>,
    /// Numbers that were given again.
    births: u64,
    /// What files that are not open any more have counted, and room for those that are.
    former: HashMap<TenantId, FileStats>,
    /// What all files have counted.
    total: FileStats,
    /// Frames of the cache.
    most: usize,
}

impl OpenFiles {
    pub(super) fn new(frames: usize) -> Result<Self, CacheError> {
        let rests = Rested::allocations(Lowest, RESTING_FILES, NearFull::Relax);
        Ok(Self {
            files: Vec::new(),
            links: ShortLinks::new(frames).map_err(|_| CacheError::Memory { frames })?,
            numbers: HashMap::new(),
            ids: Ids::new(0..MOST_FILES, rests).map_err(|error| refused(&error, frames))?,
            births: 0,
            former: HashMap::new(),
            total: FileStats::default(),
            most: frames,
        })
    }

    pub(super) fn get(&self, number: u32) -> &OpenFile {
        &self.files[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut OpenFile {
        &mut self.files[number as usize]
    }

    /// The file of a block.
    pub(super) fn of(&mut self, key: Key) -> &mut OpenFile {
        self.get_mut(key.file())
    }

    /// A block of the file is in this frame from now on.
    pub(super) fn comes(&mut self, file: u32, frame: Frame) {
        let frames = &mut self.files[file as usize].frames;
        frames.push_newest(&mut self.links, frame);
    }

    /// The frame holds no block of the file any more.
    pub(super) fn leaves(&mut self, file: u32, frame: Frame) {
        let frames = &mut self.files[file as usize].frames;
        frames.unlink(&mut self.links, frame);
    }

    /// The frames that hold blocks of a file, in no order.
    pub(super) fn frames(&self, file: u32) -> impl Iterator<Item = Frame> {
        self.get(file).frames.iter(&self.links)
    }

    /// Counts something for a file and for all of them.
    pub(super) fn count(&mut self, file: u32, add: impl Fn(&mut FileStats)) {
        add(&mut self.total);
        add(&mut self.files[file as usize].stats);
    }

    /// Counts uses that were noted when `since` numbers had been given again.
    pub(super) fn count_hits(&mut self, file: u32, count: u64, since: u64) {
        self.total.hits += count;
        let opened = self.files.get_mut(file as usize);
        if let Some(opened) = opened.filter(|opened| opened.born <= since) {
            opened.stats.hits += count;
        }
    }

    pub(super) fn total(&self) -> &FileStats {
        &self.total
    }

    /// Files that have a number.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Numbers that were given again after `since`.
    pub(super) fn births_after(&self, since: u64) -> bool {
        self.births > since
    }

    pub(super) fn is_born_after(&self, file: u32, since: u64) -> bool {
        self.get(file).born > since
    }

    /// One more has the file open. If it is new, it belongs to this tenant and partition.
    pub(super) fn open(
        &mut self,
        id: FileId,
        tenant: TenantId,
        partition: u32,
    ) -> Result<Opening, CacheError> {
        let number = match self.numbers.get(&id) {
            Some(&number) => number,
            None => self.number(OpenFile::new(id, tenant, partition))?,
        };
        Ok(self.open_number(number))
    }

    /// [`open`](Self::open), of a file that has this number.
    pub(super) fn open_number(&mut self, number: u32) -> Opening {
        let opened = self.get_mut(number);
        opened.openers += 1;
        Opening {
            id: opened.id,
            number,
            born: opened.born,
            failures: opened.failures,
        }
    }

    fn number(&mut self, mut file: OpenFile) -> Result<u32, CacheError> {
        let frames = self.most;
        // Two tenants: this file's, and that of the one that had the number before.
        if self.numbers.try_reserve(1).is_err()
            || self.former.try_reserve(2).is_err()
            || self.files.try_reserve(1).is_err()
        {
            return Err(CacheError::Memory { frames });
        }
        // What the file has counted will find a place here.
        self.former.entry(file.tenant).or_default();
        let number = self.ids.alloc().map_err(|error| refused(&error, frames))?;
        self.numbers.insert(file.id, number);
        if number as usize == self.files.len() {
            self.files.push(file);
        } else {
            self.births += 1;
            file.born = self.births;
            // Uses that were reported since it was given up are the former file's.
            let former = core::mem::replace(self.get_mut(number), file);
            if former.stats != FileStats::default() {
                let sum = self.former.entry(former.tenant).or_default();
                sum.add(&former.stats);
            }
        }
        Ok(number)
    }

    /// The same one is open once more.
    pub(super) fn open_again(&mut self, number: u32) {
        self.get_mut(number).openers += 1;
    }

    /// One less has it open. The file is to be [released](Self::release) then.
    pub(super) fn close(&mut self, number: u32) {
        self.get_mut(number).openers -= 1;
    }

    /// Gives the number up when the file has no opener, nothing of it is in memory, and its next opener need not learn
    /// of anything, of blocks that left neither. What the file has counted stays with its tenant.
    pub(super) fn release(&mut self, number: u32, has_left: impl FnOnce() -> bool) {
        let opened = &mut self.files[number as usize];
        let is_used = opened.openers > 0 || !opened.frames.is_empty();
        // Where the number cannot rest for want of memory, the file keeps it. It has none if it was released before.
        if is_used || opened.must_report() || has_left() || self.ids.free(number).is_err() {
            return;
        }
        let stats = core::mem::take(&mut opened.stats);
        let (id, tenant) = (opened.id, opened.tenant);
        self.numbers.remove(&id);
        self.former.entry(tenant).or_default().add(&stats);
    }

    /// A tenant's files, by number.
    fn of_tenant(&self, tenant: TenantId) -> impl Iterator<Item = (u32, &OpenFile)> {
        let all = (0_u32..).zip(&self.files);
        all.filter(move |(_, opened)| opened.tenant == tenant)
    }

    /// Numbers of a tenant's files.
    pub(super) fn numbers_of(&self, tenant: TenantId) -> impl Iterator<Item = u32> {
        self.of_tenant(tenant).map(|(number, _)| number)
    }

    /// How many blocks of a tenant's files are dirty.
    pub(super) fn dirty_of(&self, tenant: TenantId) -> usize {
        self.of_tenant(tenant).map(|(_, opened)| opened.dirty).sum()
    }

    /// A tenant's files belong to this partition from now on.
    pub(super) fn set_partition(&mut self, tenant: TenantId, partition: u32) {
        let all = self.files.iter_mut();
        for opened in all.filter(|opened| opened.tenant == tenant) {
            opened.partition = partition;
        }
    }

    /// Files of a partition are another one's from now on.
    pub(super) fn renumber(&mut self, from: u32, to: u32) {
        let all = self.files.iter_mut();
        for opened in all.filter(|opened| opened.partition == from) {
            opened.partition = to;
        }
    }

    /// What a tenant's files have counted; `of` says it of a file that has a number or had it last.
    pub(super) fn tenant_stats(
        &self,
        tenant: TenantId,
        of: impl Fn(u32) -> FileStats,
    ) -> FileStats {
        let mut sum = self.former.get(&tenant).copied().unwrap_or_default();
        for number in self.numbers_of(tenant) {
            sum.add(&of(number));
        }
        sum
    }

    /// Of a tenant's files that have no number any more nothing is kept.
    pub(super) fn forget_tenant(&mut self, tenant: TenantId) {
        // Whether they have their numbers still.
        let is_here = |(number, opened): (u32, &OpenFile)| {
            (number, self.numbers.get(&opened.id) == Some(&number))
        };
        let all: Vec<_> = self.of_tenant(tenant).map(is_here).collect();
        for &(number, is_here) in &all {
            if !is_here {
                // What was reported since it was given up.
                self.get_mut(number).stats = FileStats::default();
            }
        }
        if all.iter().any(|&(_, is_here)| is_here) {
            // Its place: where these will be counted, there may be no memory for one.
            self.former.insert(tenant, FileStats::default());
        } else {
            self.former.remove(&tenant);
        }
    }

    /// A file that counts other blocks than it has, those that are resident and those of them that are dirty, or whose list names a frame
    /// that `holds` no block of it, in words: for tests.
    pub(super) fn check(
        &self,
        has: impl Fn(u32) -> (usize, usize),
        holds: impl Fn(u32, Frame) -> bool,
    ) -> Result<(), String> {
        for (opened, number) in self.files.iter().zip(0..) {
            opened
                .frames
                .check(&self.links, &format!("file {number}"))?;
            let (count, dirty) = has(number);
            let said = opened.resident();
            if said != count {
                return Err(format!(
                    "file {number} has {count} blocks in memory, not {said}"
                ));
            }
            if opened.dirty != dirty {
                let said = opened.dirty;
                return Err(format!(
                    "{dirty} blocks of file {number} are dirty, not {said}"
                ));
            }
            if let Some(frame) = self.frames(number).find(|&frame| !holds(number, frame)) {
                return Err(format!(
                    "frame {frame} is listed for file {number}, of which it holds no block"
                ));
            }
        }
        Ok(())
    }

    /// How many numbers were given.
    pub(super) fn numbers(&self) -> usize {
        self.files.len()
    }

    /// Bytes of the lists, about.
    pub(super) fn bytes(&self) -> usize {
        // Each has the lock of its syncs in a block of its own, of four words.
        let files = self.files.capacity() * (size_of::<OpenFile>() + size_of::<usize>() * 4);
        files
            + self.links.bytes()
            + self.ids.bytes()
            + hashed_bytes(&self.numbers)
            + hashed_bytes(&self.former)
    }
}

/// Bytes of a hash table, about: an entry and a byte for each slot, of which 7 in 8 may be full.
fn hashed_bytes<K, V>(map: &HashMap<K, V>) -> usize {
    map.capacity() * 8 / 7 * (size_of::<(K, V)>() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_gets_no_number_for_want_of_memory_is_not_one_too_many() {
        let refused = |error: IdError| refused(&error, 8);
        assert!(matches!(
            refused(IdError::OutOfMemory),
            CacheError::Memory { frames: 8 }
        ));
        assert!(matches!(
            refused(IdError::Full { allocated: 3 }),
            CacheError::Files { most: MOST_FILES }
        ));
    }
}
