//! A growing hash table whose entries have numbers and never move, in memory straight from the system.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use std::sync::Arc;

use crate::os::{MetaRegion, MetaSlice, OsError, Span, System, ZeroIsValid, huge};

/// Entries of the first chunk; every later one doubles.
const FIRST: usize = 64;
const CHUNKS: usize = 27;

pub(super) trait Entry: ZeroIsValid {
    /// The hash of its key; `None` for an unused entry.
    fn hash(&self) -> Option<u64>;
}

#[derive(Debug, Clone, Copy)]
struct Slot<T> {
    entry: T,
    /// The next one of the same bucket; 0 is none.
    next: u32,
}

// SAFETY: an entry and a number.
unsafe impl<T: ZeroIsValid> ZeroIsValid for Slot<T> {}
// SAFETY: a number.
unsafe impl ZeroIsValid for u32 {}

/// The table. Number 0 is no entry.
#[derive(Debug)]
pub(super) struct Table<T> {
    system: Arc<dyn System>,
    /// Slot i is number i + FIRST, and chunk c has the numbers from FIRST * 2^c on.
    chunks: [Option<Span>; CHUNKS],
    room: usize,
    /// The first of each bucket.
    buckets: MetaSlice<u32>,
    /// Highest number so far.
    used: u32,
    of: PhantomData<T>,
}

// SAFETY: the table owns its chunks, as a vector does.
unsafe impl<T: Send> Send for Table<T> {}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        for span in self.chunks.iter().flatten() {
            // SAFETY: a whole region, whose pointers went with the table. A refusal leaks addresses.
            let _ = unsafe { self.system.release(*span) };
        }
    }
}

fn place(number: u32) -> (usize, usize) {
    let place = number as usize + FIRST;
    let log = place.ilog2();
    ((log - FIRST.ilog2()) as usize, place - (1 << log))
}

/// Memory that is looked into at random: in huge pages, if the system has them.
fn at_random(region: MetaRegion) -> MetaRegion {
    let Span { at, len } = region.span();
    // SAFETY: the region's own bytes, to which there is no other pointer yet; nothing is written.
    huge::want(unsafe {
        core::slice::from_raw_parts_mut(at.cast::<MaybeUninit<u8>>().as_ptr(), len)
    });
    region
}

impl<T: Entry> Table<T> {
    /// A table with so many buckets at first, a power of two.
    pub(super) fn new(system: &Arc<dyn System>, buckets: usize) -> Result<Self, OsError> {
        Ok(Self {
            system: system.clone(),
            chunks: [const { None }; CHUNKS],
            room: 0,
            buckets: MetaSlice::new(system.clone(), buckets)?,
            used: 0,
            of: PhantomData,
        })
    }

    #[cfg(feature = "debug-heap")]
    pub(super) fn system(&self) -> &Arc<dyn System> {
        &self.system
    }

    /// Makes room for another number.
    ///
    /// # Errors
    /// The system's refusal.
    pub(super) fn reserve(&mut self) -> Result<(), OsError> {
        let wanted = self.used as usize + 1;
        while wanted >= self.room {
            let refused = OsError::new("records", self.room, rustix::io::Errno::NOMEM);
            let (chunk, _) = place(self.room as u32);
            let place = self.chunks.get_mut(chunk).ok_or(refused)?;
            let bytes = (FIRST << chunk) * size_of::<Slot<T>>();
            let region = MetaRegion::new(self.system.clone(), bytes, align_of::<Slot<T>>())?;
            *place = Some(at_random(region).into_span());
            self.room += FIRST << chunk;
        }
        if wanted > self.buckets.len() {
            self.widen();
        }
        Ok(())
    }

    /// Twice as many buckets. Without memory the lists get longer, and that is all.
    fn widen(&mut self) {
        let Ok(buckets) = MetaSlice::new(self.system.clone(), self.buckets.len() * 2) else {
            return;
        };
        self.buckets = buckets;
        for number in self.numbers() {
            self.link(number);
        }
    }

    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// Puts a used entry in the front of its bucket.
    fn link(&mut self, number: u32) {
        if let Some(hash) = self.get(number).hash() {
            let bucket = self.bucket(hash);
            self.slot_mut(number).next = self.buckets[bucket];
            self.buckets[bucket] = number;
        }
    }

    /// Keeps an entry under a new number, for which there is [room](Self::reserve).
    pub(super) fn add(&mut self, entry: T) -> u32 {
        self.used += 1;
        self.put(self.used, entry);
        self.used
    }

    /// Keeps an entry under the number of an unused one.
    pub(super) fn put(&mut self, number: u32, entry: T) {
        self.slot_mut(number).entry = entry;
        self.link(number);
    }

    /// Puts an unused entry in the place of a used one.
    pub(super) fn remove(&mut self, number: u32, unused: T) {
        if let Some(hash) = self.get(number).hash() {
            let bucket = self.bucket(hash);
            let next = self.slot(number).next;
            let before = self.chain(hash).find(|&n| self.slot(n).next == number);
            match before {
                _ if self.buckets[bucket] == number => self.buckets[bucket] = next,
                Some(before) => self.slot_mut(before).next = next,
                None => {}
            }
        }
        self.slot_mut(number).entry = unused;
    }

    /// Numbers of the entries that may have a hash.
    pub(super) fn chain(&self, hash: u64) -> impl Iterator<Item = u32> {
        let used = |number: u32| (number != 0).then_some(number);
        let first = used(self.buckets[self.bucket(hash)]);
        core::iter::successors(first, move |&number| used(self.slot(number).next))
    }

    /// The entry of a number that was given out.
    pub(super) fn get(&self, number: u32) -> &T {
        &self.slot(number).entry
    }

    #[cfg(feature = "debug-heap")]
    /// As [`get`](Self::get). Its hash stays.
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.slot_mut(number).entry
    }

    fn at(&self, number: u32) -> *mut Slot<T> {
        let (chunk, at) = place(number);
        match &self.chunks[chunk] {
            // SAFETY: a chunk has as many slots as it has numbers.
            Some(chunk) => unsafe { chunk.at.as_ptr().cast::<Slot<T>>().add(at) },
            None => unreachable!("there is no room for {number}"),
        }
    }

    fn slot(&self, number: u32) -> &Slot<T> {
        // SAFETY: zero at first, which is a value, and borrowed with the table.
        unsafe { &*self.at(number) }
    }

    fn slot_mut(&mut self, number: u32) -> &mut Slot<T> {
        // SAFETY: as above.
        unsafe { &mut *self.at(number) }
    }

    /// All numbers that were given out.
    pub(super) fn numbers(&self) -> core::ops::RangeInclusive<u32> {
        1..=self.used
    }

    #[cfg(feature = "debug-heap")]
    /// Shows where the entries lie.
    pub(super) fn own(&self, f: &mut dyn FnMut((usize, usize))) {
        for chunk in self.chunks.iter().flatten() {
            f((chunk.addr(), chunk.addr() + chunk.len));
        }
    }

    /// Entries of the fullest bucket.
    #[cfg(all(test, not(loom), not(shuttle)))]
    pub(super) fn longest(&self) -> usize {
        let all = 0..self.buckets.len() as u64;
        all.map(|bucket| self.chain(bucket).count())
            .max()
            .unwrap_or(0)
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    // SAFETY: a number.
    unsafe impl ZeroIsValid for u16 {}

    impl Entry for u16 {
        fn hash(&self) -> Option<u64> {
            (*self != 0).then_some(u64::from(*self))
        }
    }

    #[test]
    fn elements_stay_and_are_distinct() {
        let mut table = Table::<u16>::new(&system(), 4).unwrap();
        for i in 1..=1000 {
            table.reserve().unwrap();
            assert_eq!(table.add(i), u32::from(i));
        }
        assert!((1..=1000).all(|i| *table.get(u32::from(i)) == i));
        assert_eq!(table.longest(), 1, "there are as many buckets");
        table.remove(500, 0);
        assert_eq!(table.chain(500).count(), 0);
        table.put(500, 500);
        assert_eq!(Vec::from_iter(table.chain(500)), [500]);
    }
}
