//! Which caches a family has, by number.
//!
//! Whoever visits a cache that is not its own pins it for that time; a cache that goes waits for its pins. A pin
//! carries the fork generation in which it was set, so that a child does not wait for a visitor that it does not have.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

use super::map::MOST_CACHES;
use super::meta::BlockNumber;
use crate::os::lock::RawLock;
use crate::os::{MetaRegion, OsError, System, fork};

/// One number. All zero at first; changed under the lock.
#[derive(Debug)]
struct Entry {
    /// The block that the cache lies in; 0 is none.
    cache: AtomicU32,
    /// Who visits it, and since which generation.
    pins: AtomicU32,
    generation: AtomicU32,
    /// The number is taken, though its cache may not be there yet.
    taken: AtomicU32,
}

/// The numbers from 1 on.
#[derive(Debug)]
pub(super) struct Table {
    lock: RawLock,
    /// One more than the highest number that was ever taken.
    top: AtomicUsize,
    memory: MetaRegion,
}

impl Table {
    pub(super) fn new(system: Arc<dyn System>) -> Result<Self, OsError> {
        Ok(Self {
            lock: RawLock::new(),
            top: AtomicUsize::new(1),
            memory: MetaRegion::new(system, (MOST_CACHES + 1) * size_of::<Entry>(), 64)?,
        })
    }

    pub(super) fn raw_lock(&self) -> &RawLock {
        &self.lock
    }

    /// Takes the lowest number that is free.
    pub(super) fn take(&self) -> Option<u16> {
        self.locked(|| {
            let top = self.top.load(Ordering::Relaxed);
            let free = (1..top).find(|&n| self.entry(n).taken.load(Ordering::Relaxed) == 0);
            let number = free.or((top <= MOST_CACHES).then_some(top))?;
            self.top.store(top.max(number + 1), Ordering::Relaxed);
            self.entry(number).taken.store(1, Ordering::Relaxed);
            u16::try_from(number).ok()
        })
    }

    /// The cache of a number that was taken lies in this block from now on.
    pub(super) fn fill(&self, number: u16, cache: BlockNumber) {
        self.locked(|| {
            self.entry(number as usize)
                .cache
                .store(cache, Ordering::Relaxed);
        });
    }

    /// Gives a number back, once nobody visits its cache.
    pub(super) fn give_back(&self, number: u16) {
        let entry = self.entry(number as usize);
        let mut turns = 0_u32;
        while !self.locked(|| {
            let pinned = entry.pins.load(Ordering::Relaxed) > 0
                && entry.generation.load(Ordering::Relaxed) == fork::generation();
            // Nobody new comes.
            entry.cache.store(0, Ordering::Relaxed);
            if !pinned {
                entry.pins.store(0, Ordering::Relaxed);
                entry.taken.store(0, Ordering::Relaxed);
            }
            !pinned
        }) {
            turns += 1;
            if turns < 100 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(core::time::Duration::from_micros(50));
            }
        }
    }

    /// Pins the cache with the lowest number from `from` on: its number and block. The caller unpins it.
    pub(super) fn pin_next(&self, from: u16) -> Option<(u16, BlockNumber)> {
        self.locked(|| {
            let (number, cache) = self.filled(from as usize).next()?;
            let entry = self.entry(number as usize);
            let now = fork::generation();
            if entry.generation.swap(now, Ordering::Relaxed) != now {
                entry.pins.store(0, Ordering::Relaxed);
            }
            let pins = entry.pins.load(Ordering::Relaxed);
            entry.pins.store(pins + 1, Ordering::Relaxed);
            Some((number, cache))
        })
    }

    /// Ends a visit.
    pub(super) fn unpin(&self, number: u16) {
        self.locked(|| {
            let entry = self.entry(number as usize);
            if entry.generation.load(Ordering::Relaxed) == fork::generation() {
                let pins = entry.pins.load(Ordering::Relaxed);
                entry.pins.store(pins.saturating_sub(1), Ordering::Relaxed);
            }
        });
    }

    /// Numbers and blocks of all caches, for who holds the lock.
    pub(super) fn filled(&self, from: usize) -> impl Iterator<Item = (u16, BlockNumber)> {
        (from.max(1)..self.top.load(Ordering::Relaxed)).filter_map(|n| {
            let cache = self.entry(n).cache.load(Ordering::Relaxed);
            (cache != 0).then_some((n as u16, cache))
        })
    }

    fn entry(&self, number: usize) -> &Entry {
        debug_assert!(number <= MOST_CACHES);
        // SAFETY: the region has an entry for each number, and zero is a value of its atomics.
        unsafe { self.memory.span().at.cast::<Entry>().add(number).as_ref() }
    }

    fn locked<T>(&self, f: impl FnOnce() -> T) -> T {
        self.lock.lock();
        let result = f();
        self.lock.unlock();
        result
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    #[test]
    fn numbers_are_used_again_lowest_first() {
        let table = Table::new(system()).unwrap();
        assert_eq!([1, 2, 3].map(|_| table.take()), [1, 2, 3].map(Some));
        table.give_back(2);
        table.give_back(1);
        assert_eq!(
            [table.take(), table.take(), table.take()],
            [1, 2, 4].map(Some)
        );
    }

    #[test]
    fn numbers_end() {
        let table = Table::new(system()).unwrap();
        table.top.store(MOST_CACHES, Ordering::Relaxed);
        for n in 1..MOST_CACHES {
            table.entry(n).taken.store(1, Ordering::Relaxed);
        }
        assert_eq!(table.take(), Some(MOST_CACHES as u16));
        assert_eq!(table.take(), None);
    }

    #[test]
    fn a_cache_waits_for_its_visitors() {
        let table = Table::new(system()).unwrap();
        let number = table.take().unwrap();
        table.fill(number, 7);
        assert_eq!(table.pin_next(0), Some((number, 7)));
        let left = core::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            let gone = s.spawn(|| {
                table.give_back(number);
                left.load(Ordering::Acquire)
            });
            while table.locked(|| table.filled(0).next().is_some()) {
                std::thread::yield_now();
            }
            left.store(true, Ordering::Release);
            table.unpin(number);
            assert!(gone.join().unwrap(), "gone while it was visited");
        });
        assert_eq!(table.pin_next(0), None);
    }
}
