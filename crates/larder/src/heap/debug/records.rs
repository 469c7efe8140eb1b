//! What is known of each block, out of line: found by the block's address.

use std::sync::Arc;

use super::chunks::Chunks;
use super::stacks::mix;
use crate::heap::Origin;
use crate::os::{MetaSlice, OsError, System, ZeroIsValid};

/// In use by the program.
pub(super) const LIVE: u8 = 1;
/// Freed, and its memory is kept from being used again.
pub(super) const KEPT: u8 = 2;
/// Freed, and its memory went; what is known of it is kept for a while.
pub(super) const GONE: u8 = 3;

/// A block. All zero is an unused record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    /// The block's first byte, as the program has it.
    pub(super) at: usize,
    /// Bytes that were asked for.
    pub(super) size: usize,
    /// What the storage gave, and how much: redzones included.
    pub(super) base: usize,
    pub(super) bytes: usize,
    /// Alignment of its memory.
    pub(super) align: usize,
    /// Which allocation it was.
    pub(super) number: u64,
    pub(super) alloc_stack: u32,
    pub(super) free_stack: u32,
    pub(super) alloc_thread: u32,
    pub(super) free_thread: u32,
    /// The next record of the same bucket; 0 is none.
    pub(super) next: u32,
    /// The next record of the same queue, and the one before; 0 is none.
    pub(super) queued: u32,
    pub(super) before: u32,
    pub(super) state: u8,
    pub(super) origin: Origin,
    /// Between guard pages.
    pub(super) guarded: bool,
    /// Guard pages that were opened, since the process goes on after a misuse.
    pub(super) opened: bool,
    /// Alignment that was asked for last, as a power of two.
    pub(super) asked: u8,
}

impl Record {
    /// Alignment that was asked for.
    pub(super) fn asked_align(&self) -> usize {
        1 << (self.asked & 63)
    }
}

// SAFETY: numbers, flags, and an origin, whose first is 0.
unsafe impl ZeroIsValid for Record {}

/// All records. Number 0 is no record.
#[derive(Debug)]
pub(super) struct Records {
    records: Chunks<Record>,
    buckets: MetaSlice<u32>,
    /// Highest number in use so far.
    used: u32,
    /// Unused records, in a list through `queued`.
    free: u32,
    count: usize,
}

const FIRST_BUCKETS: usize = 1 << 12;

impl Records {
    pub(super) fn new(system: &Arc<dyn System>) -> Result<Self, OsError> {
        Ok(Self {
            records: Chunks::new(system.clone()),
            buckets: MetaSlice::new(system.clone(), FIRST_BUCKETS)?,
            used: 0,
            free: 0,
            count: 0,
        })
    }

    fn bucket(&self, at: usize) -> usize {
        mix(at as u64) as usize & (self.buckets.len() - 1)
    }

    /// A number for a new record.
    ///
    /// # Errors
    /// The system's refusal.
    pub(super) fn reserve(&mut self) -> Result<(), OsError> {
        if self.free == 0 {
            self.records.reach(self.used as usize + 1)?;
        }
        if self.count >= self.buckets.len() {
            self.widen();
        }
        Ok(())
    }

    /// Twice as many buckets. Without memory the lists get longer, and that is all.
    fn widen(&mut self) {
        let system = self.records.system().clone();
        let Ok(buckets) = MetaSlice::new(system, self.buckets.len() * 2) else {
            return;
        };
        self.buckets = buckets;
        for number in 1..=self.used {
            let record = *self.get(number);
            if record.state != 0 {
                let bucket = self.bucket(record.at);
                self.get_mut(number).next = self.buckets[bucket];
                self.buckets[bucket] = number;
            }
        }
    }

    /// Keeps a record, for which there is [room](Self::reserve).
    pub(super) fn insert(&mut self, record: Record) -> u32 {
        let number = match self.free {
            0 => {
                self.used += 1;
                self.used
            }
            number => {
                self.free = self.get(number).queued;
                number
            }
        };
        let bucket = self.bucket(record.at);
        *self.get_mut(number) = Record {
            next: self.buckets[bucket],
            queued: 0,
            ..record
        };
        self.buckets[bucket] = number;
        self.count += 1;
        number
    }

    pub(super) fn remove(&mut self, number: u32) {
        let bucket = self.bucket(self.get(number).at);
        let next = self.get(number).next;
        let mut at = self.buckets[bucket];
        if at == number {
            self.buckets[bucket] = next;
        }
        while at != 0 && at != number {
            let after = self.get(at).next;
            if after == number {
                self.get_mut(at).next = next;
            }
            at = after;
        }
        // All zero is an unused record.
        *self.get_mut(number) = Record {
            queued: self.free,
            ..UNUSED
        };
        self.free = number;
        self.count -= 1;
    }

    /// The record of the block that begins at an address: one in use rather than one that was freed, a kept one rather than
    /// one that is gone.
    pub(super) fn find(&self, at: usize) -> Option<u32> {
        let mut number = self.buckets[self.bucket(at)];
        let mut best: Option<u32> = None;
        while number != 0 {
            let record = self.get(number);
            if record.at == at && best.is_none_or(|b| record.state < self.get(b).state) {
                best = Some(number);
            }
            number = record.next;
        }
        best
    }

    /// The block that an address lies in, or beside: redzones and guard pages count. Looks at every record.
    pub(super) fn around(&self, at: usize) -> Option<u32> {
        let mut best: Option<u32> = None;
        for number in 1..=self.used {
            let record = self.get(number);
            if record.state != 0
                && (record.base..record.base + record.bytes).contains(&at)
                && best.is_none_or(|b| record.state < self.get(b).state)
            {
                best = Some(number);
            }
        }
        best
    }

    pub(super) fn get(&self, number: u32) -> &Record {
        self.records.get(number as usize)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Record {
        self.records.get_mut(number as usize)
    }

    /// Shows where the addresses of blocks stand.
    pub(super) fn own(&self, f: &mut dyn FnMut((usize, usize))) {
        self.records.own(f);
    }

    pub(super) fn system(&self) -> &Arc<dyn System> {
        self.records.system()
    }

    /// Records of the fullest bucket.
    #[cfg(all(test, not(loom), not(shuttle)))]
    pub(super) fn longest(&self) -> usize {
        let chain = |&first: &u32| {
            core::iter::successors(Some(first), |&number| Some(self.get(number).next))
                .take_while(|&number| number != 0)
                .count()
        };
        self.buckets.iter().map(chain).max().unwrap_or(0)
    }

    /// All numbers that may be in use.
    pub(super) fn numbers(&self) -> core::ops::RangeInclusive<u32> {
        1..=self.used
    }
}

const UNUSED: Record = Record {
    at: 0,
    size: 0,
    base: 0,
    bytes: 0,
    align: 0,
    number: 0,
    alloc_stack: 0,
    free_stack: 0,
    alloc_thread: 0,
    free_thread: 0,
    next: 0,
    queued: 0,
    before: 0,
    state: 0,
    origin: Origin::Malloc,
    guarded: false,
    opened: false,
    asked: 0,
};

impl Default for Record {
    fn default() -> Self {
        UNUSED
    }
}

/// Records in the order in which they came, linked through the records.
#[derive(Debug, Default)]
pub(super) struct Queue {
    first: u32,
    last: u32,
    pub(super) count: usize,
    pub(super) bytes: usize,
}

impl Queue {
    pub(super) fn push(&mut self, records: &mut Records, number: u32) {
        self.link(records, self.last, number);
        self.link(records, number, 0);
        self.count += 1;
        self.bytes += records.get(number).bytes;
    }

    pub(super) fn pop(&mut self, records: &mut Records) -> Option<u32> {
        let number = core::num::NonZeroU32::new(self.first)?.get();
        self.remove(records, number);
        Some(number)
    }

    /// Takes out a record that is in this queue.
    pub(super) fn remove(&mut self, records: &mut Records, number: u32) {
        let Record {
            before,
            queued,
            bytes,
            ..
        } = *records.get(number);
        self.link(records, before, queued);
        self.count -= 1;
        self.bytes -= bytes;
    }

    /// Makes `after` follow `before`; 0 is the queue's end.
    fn link(&mut self, records: &mut Records, before: u32, after: u32) {
        match before {
            0 => self.first = after,
            before => records.get_mut(before).queued = after,
        }
        match after {
            0 => self.last = before,
            after => records.get_mut(after).before = before,
        }
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use crate::os::testing::system;
    use std::collections::BTreeMap;

    #[test]
    fn it_is_a_map_that_grows() {
        let mut records = Records::new(&system()).unwrap();
        let mut model = BTreeMap::new();
        let mut x = 1_u64;
        for _ in 0..30_000 {
            x = mix(x.wrapping_add(0x9e37_79b9_7f4a_7c15));
            let at = (x % 9000) as usize * 16;
            match model.remove(&at) {
                Some(size) if x & (1 << 40) != 0 => {
                    let number = records.find(at).unwrap();
                    assert_eq!(records.get(number).size, size);
                    records.remove(number);
                    assert_eq!(records.find(at), None);
                }
                had => {
                    if had.is_some() {
                        records.remove(records.find(at).unwrap());
                    }
                    let size = (x >> 20) as usize & 0xfff;
                    model.insert(at, size);
                    records.reserve().unwrap();
                    let record = Record {
                        at,
                        size,
                        base: at,
                        bytes: 16,
                        state: LIVE,
                        ..Record::default()
                    };
                    records.insert(record);
                }
            }
            assert_eq!(records.count, model.len());
        }
        for (&at, &size) in &model {
            assert_eq!(records.get(records.find(at).unwrap()).size, size);
            let around = records.around(at + 15).unwrap();
            assert_eq!(records.get(around).at, at);
        }
    }

    #[test]
    fn queues_keep_their_order() {
        let mut records = Records::new(&system()).unwrap();
        let mut queue = Queue::default();
        for i in 1..=5 {
            records.reserve().unwrap();
            let number = records.insert(Record {
                at: i * 16,
                bytes: i,
                state: KEPT,
                ..Record::default()
            });
            queue.push(&mut records, number);
        }
        assert_eq!((queue.count, queue.bytes), (5, 15));
        for i in 1..=5 {
            let number = queue.pop(&mut records).unwrap();
            assert_eq!(records.get(number).at, i * 16);
        }
        assert_eq!(queue.pop(&mut records), None);
        assert_eq!((queue.count, queue.bytes), (0, 0));
        for number in 1..=5 {
            queue.push(&mut records, number);
        }
        for number in [1, 3, 5] {
            queue.remove(&mut records, number);
        }
        assert_eq!((queue.count, queue.bytes), (2, 2 + 4));
        queue.push(&mut records, 3);
        assert_eq!(
            [(); 4].map(|()| queue.pop(&mut records)),
            [Some(2), Some(4), Some(3), None]
        );
    }
}
