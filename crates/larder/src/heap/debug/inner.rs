//! What the debug heap's lock protects, and the checks.
//!
//! Nothing here calls the loader or touches a thread-local variable: the loader may free and allocate on the way, by this
//! very thread. So the memory of blocks comes and goes outside of the lock.

use core::alloc::Layout;
use std::sync::Arc;

use super::incident::{Incident, Kind, Seen};
use super::options::Options;
use super::records::{GONE, KEPT, LIVE, Queue, Record, Records};
use super::storage::{Ownership, Storage};
use super::{Frames, MOST_FRAMES};
use crate::heap::pattern;
use crate::heap::stacks::Stacks;
use crate::heap::{Claim, Outcome};
use crate::os::lock::order::{Rank, Ranked};
use crate::os::{OsError, System};

/// Freed blocks between guard pages that are kept.
const MOST_GUARDED_KEPT: usize = 4_000;
/// Freed blocks whose memory went and that are still known, so that a second free is found.
const MOST_GONE: usize = 20_000;

impl Ranked for Inner {
    const RANK: Rank = Rank::DebugHeap;
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) records: Records,
    pub(super) stacks: Stacks<MOST_FRAMES>,
    options: Options,
    /// Freed blocks, the oldest first: ordinary ones, those between guard pages, and those whose memory went.
    kept: Queue,
    kept_guarded: Queue,
    gone: Queue,
}

impl Inner {
    pub(super) fn new(system: &Arc<dyn System>, options: Options) -> Result<Self, OsError> {
        Ok(Self {
            records: Records::new(system)?,
            stacks: Stacks::new(system, u32::MAX)?,
            options,
            kept: Queue::default(),
            kept_guarded: Queue::default(),
            gone: Queue::default(),
        })
    }

    /// Shows where the heap itself keeps addresses of blocks.
    pub(super) fn own(&self, f: &mut dyn FnMut((usize, usize))) {
        self.records.own(f);
    }

    pub(super) fn find(&self, storage: &Storage, at: usize) -> Option<&Record> {
        self.known(storage, at)
            .map(|number| self.records.get(number))
    }

    /// The record of the block that begins at an address. A record whose memory went does not count if that memory has
    /// another owner now.
    fn known(&self, storage: &Storage, at: usize) -> Option<u32> {
        // A number that was overwritten is not that of the block's record, which is searched for then.
        let number = storage.number(at);
        let number = number
            .filter(|&number| self.records.is(number, at))
            .or_else(|| self.records.find(at))
            .or_else(|| number.and_then(|_| self.records.search(at)))?;
        if self.records.get(number).state != GONE {
            return Some(number);
        }
        let others = match storage.owner(at) {
            Ownership::Own => false,
            Ownership::Other => true,
            // Inside of a block of this heap's it would be a mistake.
            Ownership::Run => self.around(at).is_none_or(|record| record.state == GONE),
        };
        (!others).then_some(number)
    }

    pub(super) fn around(&self, at: usize) -> Option<&Record> {
        self.records
            .around(at, self.options.redzone)
            .map(|number| self.records.get(number))
    }

    pub(super) fn incident(
        &self,
        kind: Kind,
        address: usize,
        record: &Record,
        here: &Frames,
    ) -> Incident {
        Incident {
            kind,
            address,
            block: Some(*record),
            allocated: self.stacks.frames(record.alloc_stack),
            freed: self.stacks.frames(record.free_stack),
            here: *here,
        }
    }

    /// Keeps a new block's record, and makes the block ready. False when there is no memory for it.
    ///
    /// # Safety
    /// The block is what the storage gave, and no other code knows it yet.
    pub(super) unsafe fn begin(
        &mut self,
        storage: &Storage,
        record: Record,
        zeroed: bool,
        here: &Frames,
    ) -> bool {
        if self.records.reserve().is_err() {
            return false;
        }
        let alloc_stack = self.stacks.number(here);
        // What went before at this address says nothing any more, and a search for an address looks at all its records.
        if let Some(former) = self.records.find(record.at)
            && self.records.get(former).state == GONE
        {
            self.gone.remove(&mut self.records, former);
            self.records.remove(former);
        }
        let number = self.records.insert(Record {
            alloc_stack,
            ..record
        });
        // SAFETY: the caller's promise.
        unsafe {
            if self.options.fill && !zeroed {
                pattern::fill(
                    record.at,
                    record.size.min(pattern::MOST_FILLED),
                    pattern::NEW,
                );
            }
            storage.draw_zones(&record, number);
        }
        true
    }

    /// Takes a block back; the first thing that is wrong with it is returned.
    ///
    /// # Safety
    /// As for `DebugHeap::free`.
    pub(super) unsafe fn end(
        &mut self,
        storage: &Storage,
        at: usize,
        claim: Claim,
        here: &Frames,
        thread: u32,
    ) -> Outcome<Option<Incident>> {
        let Some(number) = self.known(storage, at) else {
            return Outcome::Unknown;
        };
        let record = *self.records.get(number);
        if record.state != LIVE {
            let incident = self.incident(Kind::Double(claim), at, &record, here);
            return Outcome::Done(Some(incident));
        }
        let incident = self.wrong(storage, number, claim, here);
        if incident.is_some() {
            // Filled anew, so that the damage is reported once.
            // SAFETY: the block's own memory, accessible still.
            unsafe { storage.draw_zones(&record, number) };
        }
        let free_stack = self.stacks.number(here);
        let record = self.records.get_mut(number);
        record.state = KEPT;
        record.free_stack = free_stack;
        record.free_thread = thread;
        let record = *record;
        if record.guarded && !record.opened {
            storage.forbid(&record);
            self.kept_guarded.push(&mut self.records, number);
        } else {
            if self.options.fill && !record.guarded {
                // SAFETY: the program has given the block up.
                unsafe { fill_freed(&record) };
            }
            self.kept.push(&mut self.records, number);
        }
        Outcome::Done(incident)
    }

    /// What is wrong with a block that is brought to a function.
    fn wrong(
        &self,
        storage: &Storage,
        number: u32,
        claim: Claim,
        here: &Frames,
    ) -> Option<Incident> {
        let record = self.records.get(number);
        self.contradiction(record, claim)
            .or_else(|| broken_zone(storage, record, number, Seen::By(claim)))
            .map(|kind| self.incident(kind, record.at, record, here))
    }

    /// What the caller says and what is known.
    fn contradiction(&self, record: &Record, claim: Claim) -> Option<Kind> {
        if self.options.families && claim.call.origin() != record.origin {
            return Some(Kind::Family(claim));
        }
        match (claim.size, claim.align) {
            (Some(size), _) if size != record.size => Some(Kind::Size(claim, size)),
            (_, Some(align)) if align != record.asked_align() => Some(Kind::Align(claim, align)),
            _ => None,
        }
    }

    /// Whether a freed block was written to.
    fn used_after_free(
        &self,
        storage: &Storage,
        record: &Record,
        number: u32,
        seen: Seen,
    ) -> Option<Kind> {
        // A guarded block is not filled: any access to it faults at once.
        if !self.options.fill || record.guarded {
            return None;
        }
        let bytes = record.size.min(pattern::MOST_FILLED);
        // SAFETY: kept memory of a freed block, which is accessible.
        let offset = unsafe { pattern::changed(record.at, bytes, pattern::FREED) };
        offset
            .map(|offset| Kind::AfterFree(offset, seen))
            .or_else(|| broken_zone(storage, record, number, seen))
    }

    /// The oldest freed block, while there are too many.
    pub(super) fn evict(&mut self, storage: &Storage) -> Option<Evicted> {
        let number = match self.is_full() {
            (true, _) => self.kept.pop(&mut self.records)?,
            (_, true) => self.kept_guarded.pop(&mut self.records)?,
            _ => return None,
        };
        let record = *self.records.get(number);
        let wrong = self.used_after_free(storage, &record, number, Seen::Reuse);
        let incident = wrong.map(|kind| self.incident(kind, record.at, &record, &Frames::NONE));
        if self.records.end(number) {
            self.gone.push(&mut self.records, number);
        }
        if self.gone.count > MOST_GONE
            && let Some(oldest) = self.gone.pop(&mut self.records)
        {
            self.records.remove(oldest);
        }
        self.records.foresee(&self.kept);
        self.records.foresee(&self.gone);
        Some(Evicted {
            record,
            incident,
            more: self.is_full() != (false, false),
        })
    }

    /// Whether too many freed blocks are kept: ordinary ones, and those between guard pages.
    fn is_full(&self) -> (bool, bool) {
        (
            self.kept.bytes > self.options.quarantine,
            self.kept_guarded.count > MOST_GUARDED_KEPT,
        )
    }

    /// Looks at blocks from record `from` on; returns where to go on, and what is wrong with the first that is damaged.
    pub(super) fn check_from(&self, storage: &Storage, from: u32) -> (u32, Option<Incident>) {
        for (number, &record) in self.records.after(from) {
            let wrong = match record.state {
                LIVE => broken_zone(storage, &record, number, Seen::Check),
                KEPT => self.used_after_free(storage, &record, number, Seen::Check),
                _ => None,
            };
            if let Some(kind) = wrong {
                let incident = self.incident(kind, record.at, &record, &Frames::NONE);
                // Filled anew, so that the damage is reported once.
                // SAFETY: the block's own memory, which is accessible; freed bytes are not in use.
                unsafe {
                    storage.draw_zones(&record, number);
                    if record.state == KEPT {
                        fill_freed(&record);
                    }
                }
                return (number, Some(incident));
            }
        }
        (0, None)
    }

    /// A block becomes larger where it is; the first thing that is wrong with it is returned. `None` where it has no room. As after a
    /// move, it is known by the call that asked last.
    pub(super) fn grow(
        &mut self,
        storage: &Storage,
        at: usize,
        to: Layout,
        claim: Claim,
        here: &Frames,
        (call, thread): (u64, u32),
    ) -> Option<Option<Incident>> {
        let number = self.known(storage, at)?;
        let record = self.records.get(number);
        if record.state != LIVE || !storage.has_room(record, to) {
            return None;
        }
        let incident = self.wrong(storage, number, claim, here);
        let alloc_stack = self.stacks.number(here);
        let record = self.records.get_mut(number);
        record.size = to.size();
        record.asked = to.align().trailing_zeros() as u8;
        record.number = call;
        record.alloc_stack = alloc_stack;
        record.alloc_thread = thread;
        let record = *record;
        // SAFETY: the block's own memory, and the program knows nothing of what lies behind its new end.
        unsafe { storage.draw_zones(&record, number) };
        Some(incident)
    }

    /// A block becomes smaller where it is, which is as aligned as asked for.
    pub(super) fn shrink(&mut self, storage: &Storage, at: usize, to: Layout) {
        if let Some(number) = self.known(storage, at) {
            let record = self.records.get_mut(number);
            if record.state == LIVE && to.size() <= record.size {
                record.size = to.size();
                record.asked = to.align().trailing_zeros() as u8;
                let record = *record;
                // SAFETY: the block's own memory; the bytes behind the new end are not in use.
                unsafe { storage.draw_zones(&record, number) };
            }
        }
    }

    /// The first block after record `from` that is wanted, and its record's number.
    pub(super) fn next(&self, from: u32, wanted: fn(&Record) -> bool) -> Option<(u32, Record)> {
        self.records
            .after(from)
            .find(|(_, record)| wanted(record))
            .map(|(number, record)| (number, *record))
    }

    /// The guard page that was touched: what it means, and the pages are opened if the process shall go on.
    pub(super) fn touched(&mut self, storage: &Storage, address: usize, open: bool) -> Touched {
        let Some(number) = self.records.around(address, self.options.redzone) else {
            return Touched::Foreign;
        };
        let record = *self.records.get(number);
        if !record.guarded || record.state == GONE {
            return Touched::Foreign;
        }
        if record.opened {
            return Touched::Open;
        }
        let after = address.checked_sub(record.at + record.size);
        let kind = match (record.state == KEPT, address < record.at, after) {
            // Guard pages around a block that is free: of the block all that is said is that it is.
            (true, ..) => Kind::AfterFree(address.saturating_sub(record.at), Seen::Access),
            (false, true, _) => Kind::Underflow(record.at - address, Seen::Access),
            (false, false, Some(after)) => Kind::Overflow(after, Seen::Access),
            // Inside of a live block: the program has protected these pages itself.
            (false, false, None) => return Touched::Foreign,
        };
        if open && !storage.open(&record) {
            return Touched::Foreign;
        }
        // Nothing is known of its contents from here on.
        self.records.get_mut(number).opened = open;
        Touched::Guard(self.incident(kind, address, &record, &Frames::NONE))
    }
}

/// A freed block that is kept no longer.
pub(super) struct Evicted {
    /// Its memory is the caller's to give back.
    pub(super) record: Record,
    /// What is wrong with it.
    pub(super) incident: Option<Incident>,
    /// There are still too many.
    pub(super) more: bool,
}

/// What a fault at an address means.
#[expect(
    clippy::large_enum_variant,
    reason = "made once, on the stack of a signal handler, which must not allocate"
)]
pub(super) enum Touched {
    /// A guard page: this is to be reported.
    Guard(Incident),
    /// A guard page that another thread has touched, reported and opened meanwhile.
    Open,
    /// No page of this heap.
    Foreign,
}

/// # Safety
/// The block is free, and its memory accessible.
unsafe fn fill_freed(record: &Record) {
    let bytes = record.size.min(pattern::MOST_FILLED);
    // SAFETY: the caller's promise.
    unsafe { pattern::fill(record.at, bytes, pattern::FREED) };
}

fn broken_zone(storage: &Storage, record: &Record, number: u32, seen: Seen) -> Option<Kind> {
    let [far, near, after] = storage.zones(record);
    // SAFETY: the block's own memory, which is accessible while the block is live.
    unsafe {
        if let Some(offset) = pattern::changed(after.0, after.1, after.2) {
            return Some(Kind::Overflow(offset, seen));
        }
        let before = |(at, bytes, with)| {
            let offset = pattern::changed(at, bytes, with)?;
            Some(record.at - at - offset)
        };
        before(far)
            .or_else(|| storage.wrong_number(record, number))
            .or_else(|| before(near))
            .map(|bytes| Kind::Underflow(bytes, seen))
    }
}
