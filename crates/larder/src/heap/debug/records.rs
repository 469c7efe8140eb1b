//! What is known of each block, out of line: found by the block's address.

use std::sync::Arc;

use crate::heap::Origin;
use crate::heap::stacks::mix;
use crate::heap::table::{Entry, Table};
use crate::os::{OsError, System, ZeroIsValid};

/// In use by the program.
pub(super) const LIVE: u8 = 1;
/// Freed, and its memory is kept from being used again.
pub(super) const KEPT: u8 = 2;
/// Freed, and its memory went; what is known of it is kept for a while.
pub(super) const GONE: u8 = 3;

/// A block. All zero is an unused record.
#[derive(Debug, Clone, Copy, Default)]
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

impl Entry for Record {
    fn hash(&self) -> Option<u64> {
        (self.state != 0).then(|| mix(self.at as u64))
    }
}

/// All records. Number 0 is no record.
#[derive(Debug)]
pub(super) struct Records {
    table: Table<Record>,
    /// Unused records, in a list through `queued`.
    free: u32,
    count: usize,
}

const FIRST_BUCKETS: usize = 1 << 12;

impl Records {
    pub(super) fn new(system: &Arc<dyn System>) -> Result<Self, OsError> {
        Ok(Self {
            table: Table::new(system, FIRST_BUCKETS)?,
            free: 0,
            count: 0,
        })
    }

    /// Makes room for a new record.
    ///
    /// # Errors
    /// The system's refusal.
    pub(super) fn reserve(&mut self) -> Result<(), OsError> {
        match self.free {
            0 => self.table.reserve(),
            _ => Ok(()),
        }
    }

    /// Keeps a record, for which there is [room](Self::reserve).
    pub(super) fn insert(&mut self, record: Record) -> u32 {
        self.count += 1;
        match self.free {
            0 => self.table.add(record),
            number => {
                self.free = self.get(number).queued;
                self.table.put(number, record);
                number
            }
        }
    }

    pub(super) fn remove(&mut self, number: u32) {
        let unused = Record {
            queued: self.free,
            ..Record::default()
        };
        self.table.remove(number, unused);
        self.free = number;
        self.count -= 1;
    }

    /// The record of the block that begins at an address: one in use rather than one that was freed, a kept one rather than
    /// one that is gone.
    pub(super) fn find(&self, at: usize) -> Option<u32> {
        self.table
            .chain(mix(at as u64))
            .filter(|&number| self.get(number).at == at)
            .min_by_key(|&number| self.get(number).state)
    }

    /// The block that an address lies in, or beside: redzones and guard pages count. Looks at every record.
    pub(super) fn around(&self, at: usize) -> Option<u32> {
        self.after(0)
            .filter(|(_, record)| (record.base..record.base + record.bytes).contains(&at))
            .min_by_key(|(_, record)| record.state)
            .map(|(number, _)| number)
    }

    pub(super) fn get(&self, number: u32) -> &Record {
        self.table.get(number)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Record {
        self.table.get_mut(number)
    }

    /// Shows where the addresses of blocks stand.
    pub(super) fn own(&self, f: &mut dyn FnMut((usize, usize))) {
        self.table.own(f);
    }

    pub(super) fn system(&self) -> &Arc<dyn System> {
        self.table.system()
    }

    #[cfg(all(test, not(loom), not(shuttle)))]
    pub(super) fn longest(&self) -> usize {
        self.table.longest()
    }

    /// The used records after a number, with theirs.
    pub(super) fn after(&self, number: u32) -> impl Iterator<Item = (u32, &Record)> {
        self.table
            .numbers()
            .skip(number as usize)
            .map(|number| (number, self.get(number)))
            .filter(|(_, record)| record.state != 0)
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
