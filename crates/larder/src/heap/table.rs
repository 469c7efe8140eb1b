//! A growing hash table whose entries have numbers and never move, in memory straight from the system.
//!
//! An index leads from hashes to numbers. It is apart from the entries and has half of each hash in it, so that a search looks at
//! no entry but the one that it finds: the entries of a large table are in no cache.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use std::sync::Arc;

use crate::os::{MetaRegion, MetaSlice, OsError, Span, System, ZeroIsValid, huge};

/// Entries of the first chunk; every later one doubles.
const FIRST: usize = 64;
const CHUNKS: usize = 27;

pub(super) trait Entry: ZeroIsValid {
    /// The hash of its key, of which the lower half counts; `None` for an unused entry.
    fn hash(&self) -> Option<u64>;
}

/// A place of the index. Number 0 is an empty one.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The lower half of the entry's hash. Its lowest bits name the place where a search begins.
    half: u32,
    number: u32,
}

const EMPTY: Place = Place { half: 0, number: 0 };

// SAFETY: two numbers.
unsafe impl ZeroIsValid for Place {}

/// The table. Number 0 is no entry.
#[derive(Debug)]
pub(super) struct Table<T> {
    system: Arc<dyn System>,
    /// Number n is at n + FIRST, and chunk c has the places from FIRST * 2^c on.
    chunks: [Option<Span>; CHUNKS],
    room: usize,
    /// Twice as many places as entries, or more, if there is memory for them. Entries lie behind one another from where their hashes
    /// name (linear probing), without gaps.
    index: MetaSlice<Place>,
    /// Entries in it.
    listed: usize,
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

/// An index of so many places.
fn index(system: &Arc<dyn System>, places: usize) -> Result<MetaSlice<Place>, OsError> {
    let mut index = MetaSlice::<Place>::new(system.clone(), places)?;
    let (at, len) = (index.as_mut_ptr().cast(), size_of_val(&*index));
    // SAFETY: the index's own bytes, to which there is no other pointer yet.
    unsafe { at_random(at, len) };
    Ok(index)
}

/// Memory that is looked into at random: in huge pages, if the system has them.
///
/// # Safety
/// There is no other pointer to these bytes.
unsafe fn at_random(at: *mut u8, len: usize) {
    // SAFETY: the caller's promise; nothing is written.
    huge::want(unsafe { core::slice::from_raw_parts_mut(at.cast::<MaybeUninit<u8>>(), len) });
}

/// Brings a line of memory to the caches, if it can be read.
#[cfg(feature = "debug-heap")]
pub(super) fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: it reads nothing that the program could see, and faults nowhere.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

impl<T: Entry> Table<T> {
    /// A table whose index is for so many entries at first, a power of two.
    pub(super) fn new(system: &Arc<dyn System>, entries: usize) -> Result<Self, OsError> {
        Ok(Self {
            system: system.clone(),
            chunks: [const { None }; CHUNKS],
            room: 0,
            index: index(system, 2 * entries)?,
            listed: 0,
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
            let (chunk, _) = place(self.room as u32);
            let refused = OsError::new("records", self.room, rustix::io::Errno::NOMEM);
            let place = self.chunks.get_mut(chunk).ok_or(refused)?;
            let bytes = (FIRST << chunk) * size_of::<T>();
            let region = MetaRegion::new(self.system.clone(), bytes, align_of::<T>())?;
            let span = region.into_span();
            // SAFETY: a new region.
            unsafe { at_random(span.at.as_ptr(), span.len) };
            *place = Some(span);
            self.room += FIRST << chunk;
        }
        self.reserve_place()
    }

    /// Makes room for another one in the index.
    ///
    /// # Errors
    /// The system's refusal.
    pub(super) fn reserve_place(&mut self) -> Result<(), OsError> {
        let (wanted, places) = (self.listed + 1, self.index.len());
        // Without memory searches get longer, and without a place they would not end.
        if 2 * wanted > places && !self.widen() && 8 * wanted > 7 * places {
            return Err(OsError::new("index", places, rustix::io::Errno::NOMEM));
        }
        Ok(())
    }

    /// Twice as many places. False if there is no memory for them.
    fn widen(&mut self) -> bool {
        let Ok(index) = index(&self.system, self.index.len() * 2) else {
            return false;
        };
        self.index = index;
        self.listed = 0;
        for number in self.numbers() {
            self.list(number);
        }
        true
    }

    /// The places for a hash, in the order of a search.
    fn places(&self, hash: u32) -> impl Iterator<Item = usize> + use<T> {
        let last = self.index.len() - 1;
        (0..=last).map(move |step| (hash as usize).wrapping_add(step) & last)
    }

    /// Writes an entry that has a hash into the index, where it has a [place](Self::reserve_place) and is not yet.
    pub(super) fn list(&mut self, number: u32) {
        let Some(half) = self.get(number).hash().map(|hash| hash as u32) else {
            return;
        };
        let empty = self.places(half).find(|&at| self.index[at].number == 0);
        if let Some(at) = empty {
            self.index[at] = Place { half, number };
            self.listed += 1;
        }
    }

    /// Empties a place. Those behind it that a search would not reach any more move up (Knuth, volume 3, algorithm 6.4 R).
    fn unlist(&mut self, mut gap: usize) {
        let last = self.index.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & last;
            let place = self.index[at];
            if place.number == 0 {
                break;
            }
            let from_its_own = at.wrapping_sub(place.half as usize) & last;
            if from_its_own >= at.wrapping_sub(gap) & last {
                self.index[gap] = place;
                gap = at;
            }
        }
        self.index[gap] = EMPTY;
        self.listed -= 1;
    }

    /// Keeps an entry under a new number, for which there is [room](Self::reserve).
    pub(super) fn add(&mut self, entry: T) -> u32 {
        self.used += 1;
        self.put(self.used, entry);
        self.used
    }

    /// Keeps an entry under the number of an unused one.
    pub(super) fn put(&mut self, number: u32, entry: T) {
        *self.at_mut(number) = entry;
        self.list(number);
    }

    /// Puts an unused entry in the place of a used one.
    pub(super) fn remove(&mut self, number: u32, unused: T) {
        if let Some(hash) = self.get(number).hash() {
            let mut places = self.places(hash as u32);
            if let Some(at) = places.find(|&at| self.index[at].number == number) {
                self.unlist(at);
            }
        }
        *self.at_mut(number) = unused;
    }

    /// Numbers of the entries that may have a hash.
    pub(super) fn chain(&self, hash: u64) -> impl Iterator<Item = u32> {
        let half = hash as u32;
        self.places(half)
            .map(|at| self.index[at])
            .take_while(|place| place.number != 0)
            .filter(move |place| place.half == half)
            .map(|place| place.number)
    }

    #[cfg(feature = "debug-heap")]
    /// The entry of a number that was given out will be looked at soon.
    pub(super) fn foresee(&self, number: u32) {
        prefetch(self.at(number).cast());
    }

    #[cfg(feature = "debug-heap")]
    /// A hash will be looked for soon.
    pub(super) fn foresee_hash(&self, hash: u64) {
        let at = hash as u32 as usize & (self.index.len() - 1);
        prefetch((&raw const self.index[at]).cast());
    }

    /// The entry of a number that was given out.
    pub(super) fn get(&self, number: u32) -> &T {
        // SAFETY: zero at first, which is a value, and borrowed with the table.
        unsafe { &*self.at(number) }
    }

    #[cfg(feature = "debug-heap")]
    /// As [`get`](Self::get). Its hash stays.
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        self.at_mut(number)
    }

    fn at(&self, number: u32) -> *mut T {
        let (chunk, at) = place(number);
        match &self.chunks[chunk] {
            // SAFETY: a chunk has as many entries as it has numbers.
            Some(chunk) => unsafe { chunk.at.as_ptr().cast::<T>().add(at) },
            None => unreachable!("there is no room for {number}"),
        }
    }

    fn at_mut(&mut self, number: u32) -> &mut T {
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
        let index = self.index.as_ptr_range();
        f((index.start.addr(), index.end.addr()));
    }

    /// Places that the longest search for an entry looks at.
    #[cfg(all(test, not(loom), not(shuttle)))]
    pub(super) fn longest(&self) -> usize {
        let last = self.index.len() - 1;
        let used = self.index.iter().enumerate();
        let used = used.filter(|(_, place)| place.number != 0);
        let steps = used.map(|(at, place)| at.wrapping_sub(place.half as usize) & last);
        steps.max().map_or(0, |most| most + 1)
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
        assert_eq!(table.longest(), 1, "each has a place of its own");
        table.remove(500, 0);
        assert_eq!(table.chain(500).count(), 0);
        table.put(500, 500);
        assert_eq!(Vec::from_iter(table.chain(500)), [500]);
    }

    /// A hash that many entries have.
    #[derive(Clone, Copy)]
    struct Crowded(u64);

    // SAFETY: a number.
    unsafe impl ZeroIsValid for Crowded {}

    impl Entry for Crowded {
        fn hash(&self) -> Option<u64> {
            // The last ones go on at the beginning of the index.
            (self.0 != 0).then_some(0xffff_fff8 + self.0 % 5 * 3)
        }
    }

    #[test]
    fn entries_that_share_places_are_found_until_they_are_removed() {
        use std::collections::BTreeSet;
        let mut table = Table::<Crowded>::new(&system(), 8).unwrap();
        let mut inside = BTreeSet::new();
        let mut unused = Vec::new();
        let mut word = 1_u64;
        for value in 1..3000 {
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let removed = inside.iter().copied().nth((word >> 33) as usize % 40);
            if let Some(number) = removed {
                inside.remove(&number);
                unused.push(number);
                table.remove(number, Crowded(0));
            }
            if word >> 40 & 1 == 0 || inside.len() < 20 {
                let entry = Crowded(value);
                table.reserve().unwrap();
                let number = match unused.pop() {
                    Some(number) => {
                        table.put(number, entry);
                        number
                    }
                    None => table.add(entry),
                };
                inside.insert(number);
            }
            for hash in 0..5 {
                let hash = 0xffff_fff8 + hash * 3;
                let mut found: Vec<u32> = table.chain(hash).collect();
                found.sort_unstable();
                let of_hash = |number: &u32| table.get(*number).hash() == Some(hash);
                let known: Vec<u32> = inside.iter().copied().filter(of_hash).collect();
                assert_eq!(found, known);
            }
            assert_eq!(table.listed, inside.len());
        }
        assert!(table.index.len() > 16 && table.listed > 10);
    }
}
