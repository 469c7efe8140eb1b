//! Files that are open, and those that are not but have blocks in memory yet.

use std::sync::Arc;

use super::error::CacheError;
use super::inner::Inner;
use super::key::{FileId, Key, MOST_FILES, MOST_INDEX, TenantId};
use super::stats::FileStats;
use super::sync::{Mutex, Syncing};

/// Numbers of files that were given up rest until so many do: by then the rule has forgotten most of the file's blocks, and takes few
/// of them for the next one's.
const REST: usize = if cfg!(test) { 4 } else { 1024 };

/// What an opener gets.
pub(super) struct Opening {
    pub(super) number: u32,
    /// [`Opened::born`].
    pub(super) born: u64,
    /// Failures that there were before.
    pub(super) failures: u64,
}

/// A file that was opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) id: FileId,
    pub(super) tenant: TenantId,
    /// How many numbers had been given again by then, with its own; 0 if no file had its number before. So a use of
    /// this number that was noted when there were fewer is another file's.
    pub(super) born: u64,
    pub(super) stats: FileStats,
    /// Writes and syncs that failed, and the latest failure.
    pub(super) failures: u64,
    pub(super) failure: Option<CacheError>,
    /// Bytes behind this are not written back.
    pub(super) end: u64,
    /// Blocks were written, and left before the storage was synced, for which there was no room among the
    /// [unsynced](super::unsynced) ones. This is the sync after which the latest of them was written.
    pub(super) left_unsynced: Option<u64>,
    /// A failed sync took blocks that cannot be written again.
    pub(super) lost: bool,
    /// Syncs that were begun, those that ended, and those that failed.
    pub(super) syncs: u64,
    pub(super) ended_syncs: u64,
    pub(super) failed_syncs: u64,
    /// Held over a sync: of two syncs at a time, the system could report success to one while the other still gets the error.
    pub(super) syncing: Arc<Mutex<Syncing>>,
    /// How many openers it has.
    openers: usize,
}

impl Opened {
    fn new(id: FileId, tenant: TenantId) -> Self {
        Self {
            id,
            tenant,
            born: 0,
            stats: FileStats::default(),
            failures: 0,
            failure: None,
            end: u64::MAX,
            left_unsynced: None,
            lost: false,
            syncs: 0,
            ended_syncs: 0,
            failed_syncs: 0,
            syncing: Arc::new(Mutex::new(Syncing)),
            openers: 0,
        }
    }
}

impl Opened {
    /// A sync has begun and not ended.
    pub(super) fn is_syncing(&self) -> bool {
        self.syncs != self.ended_syncs
    }
}

impl Inner {
    /// One more has the file open.
    pub(super) fn open(&mut self, id: FileId, tenant: TenantId) -> Result<Opening, CacheError> {
        let number = match self.numbers.get(&id) {
            Some(&number) => number,
            None => self.number(Opened::new(id, tenant))?,
        };
        let opened = &mut self.files[number as usize];
        opened.openers += 1;
        Ok(Opening {
            number,
            born: opened.born,
            failures: opened.failures,
        })
    }

    fn number(&mut self, mut file: Opened) -> Result<u32, CacheError> {
        let refused = CacheError::Files { most: MOST_FILES };
        let all = self.files.len() >= MOST_FILES as usize;
        // Two tenants: this file's, and that of the one that had the number before.
        if self.numbers.try_reserve(1).is_err() || self.former.try_reserve(2).is_err() {
            return Err(refused);
        }
        // What the file has counted will find a place here.
        self.former.entry(file.tenant).or_default();
        let rested = match all || self.vacant.len() >= REST {
            true => self.vacant.pop_front(),
            false => None,
        };
        let id = file.id;
        let number = match rested {
            Some(number) => {
                self.births += 1;
                file.born = self.births;
                // Uses that were reported since it was given up are the former file's.
                let former = core::mem::replace(&mut self.files[number as usize], file);
                if former.stats != FileStats::default() {
                    let sum = self.former.entry(former.tenant).or_default();
                    sum.add(&former.stats);
                }
                number
            }
            None if all || self.files.try_reserve(1).is_err() => return Err(refused),
            None => {
                self.files.push(file);
                self.files.len() as u32 - 1
            }
        };
        self.numbers.insert(id, number);
        Ok(number)
    }

    /// The same one is open once more.
    pub(super) fn open_again(&mut self, number: u32) {
        self.files[number as usize].openers += 1;
    }

    /// One less has it open.
    pub(super) fn close(&mut self, number: u32) {
        self.files[number as usize].openers -= 1;
        self.release(number);
    }

    /// A block of the file has left.
    pub(super) fn gone(&mut self, key: Key) {
        let opened = &mut self.files[key.file() as usize];
        opened.stats.resident -= 1;
        if opened.openers == 0 {
            self.release(key.file());
        }
    }

    /// Gives the number up when the file has no opener, nothing of it is in memory, and its next opener need not learn
    /// of anything. What the file has counted stays with its tenant.
    fn release(&mut self, number: u32) {
        let opened = &mut self.files[number as usize];
        if opened.openers > 0 || opened.stats.resident > 0 {
            return;
        }
        if opened.lost || opened.left_unsynced.is_some() || self.unsynced.has_left(number) {
            return;
        }
        if self.vacant.try_reserve(1).is_err() {
            return;
        }
        let stats = core::mem::take(&mut opened.stats);
        let (id, tenant) = (opened.id, opened.tenant);
        if self.numbers.remove(&id).is_some() {
            self.former.entry(tenant).or_default().add(&stats);
            self.vacant.push_back(number);
        }
    }

    pub(super) fn file_stats(&self, number: u32) -> FileStats {
        let mine = Key::new(number, 0)..=Key::new(number, MOST_INDEX);
        FileStats {
            dirty: self.dirty.range(mine).count(),
            ..self.files[number as usize].stats
        }
    }

    /// What a tenant's files have counted; of those that have no number any more nothing is kept.
    pub(super) fn forget_tenant(&mut self, tenant: TenantId) -> FileStats {
        let sum = self.tenant_stats(tenant);
        let mut has_some = false;
        for (opened, number) in self.files.iter_mut().zip(0..) {
            if opened.tenant == tenant {
                let here = self.numbers.get(&opened.id) == Some(&number);
                if !here {
                    // What was reported since it was given up.
                    opened.stats = FileStats::default();
                }
                has_some |= here;
            }
        }
        if has_some {
            // Its place: where these will be counted, there may be no memory for one.
            self.former.insert(tenant, FileStats::default());
        } else {
            self.former.remove(&tenant);
        }
        sum
    }

    pub(super) fn tenant_stats(&self, tenant: TenantId) -> FileStats {
        let mut sum = self.former.get(&tenant).copied().unwrap_or_default();
        for (opened, number) in self.files.iter().zip(0..) {
            if opened.tenant == tenant {
                sum.add(&self.file_stats(number));
            }
        }
        sum
    }
}
