//! What is known of each block, out of line: found by the number that stands before the block, or by the block's address.

use std::sync::Arc;

use crate::heap::Origin;
use crate::heap::stacks::mix;
use crate::heap::table::{Entry, Table, prefetch};
use crate::os::{OsError, System, ZeroIsValid, page_size};

/// In use by the program.
pub(super) const LIVE: u8 = 1;
/// Freed, and its memory is kept from being used again.
pub(super) const KEPT: u8 = 2;
/// Freed, and its memory went; what is known of it is kept for a while.
pub(super) const GONE: u8 = 3;

/// A block. All zero is an unused record. One line of the caches, since what is known of a block is in none when it is freed.
#[repr(align(64))]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Record {
    /// The block's first byte, as the program has it.
    pub(super) at: usize,
    /// Bytes that were asked for.
    pub(super) size: usize,
    /// What the storage gave: redzones included.
    pub(super) bytes: usize,
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
    /// Between guard pages and of no byte, so that it begins where the second one does. All others begin on the first page of their own.
    pub(super) past: bool,
    /// Guard pages that were opened, since the process goes on after a misuse.
    pub(super) opened: bool,
    /// Found by its address. Else its number stands before the block.
    pub(super) listed: bool,
    /// Alignment of its memory, as a power of two.
    pub(super) align: u8,
    /// Alignment that was asked for last, as a power of two.
    pub(super) asked: u8,
}

const _: () = assert!(size_of::<Record>() == 64);

impl Record {
    /// Alignment of its memory.
    pub(super) fn align(&self) -> usize {
        1 << (self.align & 63)
    }

    /// Where the memory begins that the storage gave, if redzones have so many bytes.
    pub(super) fn base(&self, redzone: usize) -> usize {
        match self.guarded {
            true => {
                let page = page_size();
                let first = self.at / page * page - usize::from(self.past) * page;
                first - self.align().max(page)
            }
            false => self.at - redzone.next_multiple_of(self.align()),
        }
    }

    /// Alignment that was asked for.
    pub(super) fn asked_align(&self) -> usize {
        1 << (self.asked & 63)
    }
}

// SAFETY: numbers, flags, and an origin, whose first is 0.
unsafe impl ZeroIsValid for Record {}

/// Neighbours have places side by side in the index: programs take and free them one after the other.
fn hash(at: usize) -> u64 {
    let at = at as u64 / 16;
    mix(at / 16) ^ (at % 16)
}

impl Entry for Record {
    fn hash(&self) -> Option<u64> {
        self.listed.then(|| hash(self.at))
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

const FIRST_RECORDS: usize = 1 << 12;

impl Records {
    pub(super) fn new(system: &Arc<dyn System>) -> Result<Self, OsError> {
        Ok(Self {
            table: Table::new(system, FIRST_RECORDS)?,
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
            _ => self.table.reserve_place(),
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

    /// Whether a block that is not gone begins at an address and has this number.
    pub(super) fn is(&self, number: u32, at: usize) -> bool {
        self.table.numbers().contains(&number) && {
            let record = self.get(number);
            record.at == at && matches!(record.state, LIVE | KEPT)
        }
    }

    /// The memory of a freed block goes. Its record is listed from now on, if there is memory for that; else it is removed.
    pub(super) fn end(&mut self, number: u32) -> bool {
        let record = self.get_mut(number);
        record.state = GONE;
        if !record.listed {
            if self.table.reserve_place().is_err() {
                self.remove(number);
                return false;
            }
            self.get_mut(number).listed = true;
            self.table.list(number);
        }
        true
    }

    /// Looks at every record for the block that begins at an address and is not gone.
    pub(super) fn search(&self, at: usize) -> Option<u32> {
        let mut numbers = self.table.numbers();
        numbers.find(|&number| self.is(number, at))
    }

    /// The record of the block that begins at an address, of those that are listed: one in use rather than one that was freed, a
    /// kept one rather than one that is gone.
    pub(super) fn find(&self, at: usize) -> Option<u32> {
        self.table
            .chain(hash(at))
            .filter(|&number| self.get(number).at == at)
            .min_by_key(|&number| self.get(number).state)
    }

    /// The block that an address lies in, or beside: redzones of so many bytes and guard pages count. Looks at every record.
    pub(super) fn around(&self, at: usize, redzone: usize) -> Option<u32> {
        self.after(0)
            .filter(|(_, record)| at.wrapping_sub(record.base(redzone)) < record.bytes)
            .min_by_key(|(_, record)| record.state)
            .map(|(number, _)| number)
    }

    /// A block, the oldest of a queue, goes soon, and then the next one: so what is needed for that is in no cache, but could be.
    pub(super) fn foresee(&self, queue: &Queue) {
        if queue.first == 0 {
            return;
        }
        let record = self.get(queue.first);
        self.table.foresee_hash(hash(record.at));
        if record.state == KEPT {
            prefetch((record.at - 1) as *const u8);
            prefetch((record.at + record.size) as *const u8);
        }
        if record.queued != 0 {
            self.table.foresee(record.queued);
        }
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
                    let number = records.find(at).or_else(|| records.search(at)).unwrap();
                    assert_eq!(records.get(number).size, size);
                    if x & (1 << 42) != 0 {
                        assert!(records.end(number));
                        assert_eq!(records.find(at), Some(number));
                        assert_eq!(records.search(at), None);
                    }
                    records.remove(number);
                    assert!(records.find(at).is_none() && !records.is(number, at));
                }
                had => {
                    if had.is_some() {
                        records.remove(records.search(at).unwrap());
                    }
                    let size = (x >> 20) as usize & 0xfff;
                    model.insert(at, size);
                    records.reserve().unwrap();
                    let record = Record {
                        at,
                        size,
                        bytes: 16,
                        state: LIVE,
                        listed: x & (1 << 41) != 0,
                        ..Record::default()
                    };
                    let number = records.insert(record);
                    assert!(records.is(number, at) && !records.is(number + 1, at));
                }
            }
            assert_eq!(records.count, model.len());
        }
        for (&at, &size) in &model {
            assert_eq!(records.get(records.search(at).unwrap()).size, size);
            let around = records.around(at + 15, 0).unwrap();
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
