//! Which caches a family has, by number.
//!
//! A thread that visits a cache that is not its own is counted in the cache's entry for that time, and a cache that
//! goes waits for its visitors. But no thread waits within a visit: a destructor that is called there may drop the last
//! owner of any cache, the visited one among them. Such a cache is ended by the last of its visitors.
//!
//! A thread's visits are also on a list of its own, so that the child of a fork can count anew those of the one thread
//! that it has.

#[cfg(all(test, loom))]
mod loom_tests;

use core::cell::Cell;
use std::sync::Arc;

use super::map::MOST_CACHES;
use super::meta::BlockNumber;
use crate::magazine::sync::{AtomicU32, AtomicUsize, Ordering, yield_now};
use crate::os::lock::order::Rank;
use crate::os::{MetaRegion, OsError, System, wait_turn};

#[cfg(not(all(test, loom)))]
type RawLock = crate::os::lock::RawLock;
#[cfg(all(test, loom))]
type RawLock = crate::os::lock::RawLock<crate::os::lock::Modelled>;

/// The number is free. All entries are zero at first.
const FREE: u32 = 0;
/// The number is taken, though its cache may not be there yet, or is gone already.
const TAKEN: u32 = 1;
/// Its cache has no owner and goes with its last visitor.
const LEFT: u32 = 2;
/// Its cache has no owner, and a thread waits for its visitors to end it.
const AWAITED: u32 = 3;

/// So many of the lowest numbers go only to a caller that asks for one of them by number: so an owner of many caches
/// knows by the number which one it is.
pub(crate) const KEPT: usize = if cfg!(loom) { 0 } else { 72 };

/// One number. Changed under the lock.
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
struct Entry {
    /// The block that the cache lies in; 0 is none.
    cache: AtomicU32,
    visitors: AtomicU32,
    state: AtomicU32,
}

/// The numbers from 1 on.
#[derive(Debug)]
pub(super) struct Table {
    lock: RawLock,
    /// One more than the highest number that was ever taken.
    top: AtomicUsize,
    /// No number that is not kept is free below this one. Changed under the lock.
    lowest: AtomicUsize,
    memory: MetaRegion,
}

/// One visit, on its thread's stack.
struct Visit<'t, F: FnMut(BlockNumber)> {
    table: &'t Table,
    number: u16,
    /// Ends a cache whose last visitor this was.
    end: F,
    link: Link,
}

/// The part of a visit that its thread's list is made of.
#[derive(Clone, Copy)]
struct Link {
    table: *const Table,
    number: u16,
    /// The visit further up the stack.
    outer: *const Link,
}

#[cfg(not(loom))]
thread_local! {
    /// The innermost visit of this thread.
    static VISITS: Cell<*const Link> = const { Cell::new(core::ptr::null()) };
}

#[cfg(loom)]
loom::thread_local! {
    static VISITS: Cell<*const Link> = Cell::new(core::ptr::null());
}

impl Table {
    pub(super) fn new(system: Arc<dyn System>) -> Result<Self, OsError> {
        let memory = MetaRegion::new(system, (MOST_CACHES + 1) * size_of::<Entry>(), 64)?;
        // Zero is no value of loom's atomics, and its tests need few numbers.
        #[cfg(loom)]
        for n in 0..8 {
            // SAFETY: the region has room for more entries, and no other thread knows of it yet.
            unsafe {
                memory
                    .span()
                    .at
                    .cast::<Entry>()
                    .add(n)
                    .write(Entry::default())
            };
        }
        Ok(Self {
            lock: RawLock::new(Rank::CacheTable),
            top: AtomicUsize::new(KEPT + 1),
            lowest: AtomicUsize::new(KEPT + 1),
            memory,
        })
    }

    pub(super) fn raw_lock(&self) -> &RawLock {
        &self.lock
    }

    /// Takes the lowest number that is free and not [kept](KEPT).
    pub(super) fn take(&self) -> Option<u16> {
        self.locked(|| {
            let top = self.top.load(Ordering::Relaxed);
            let lowest = self.lowest.load(Ordering::Relaxed);
            let free = (lowest..top).find(|&n| get(&self.entry(n).state) == FREE);
            let number = free.or((top <= MOST_CACHES).then_some(top))?;
            self.lowest.store(number + 1, Ordering::Relaxed);
            self.top.store(top.max(number + 1), Ordering::Relaxed);
            set(&self.entry(number).state, TAKEN);
            u16::try_from(number).ok()
        })
    }

    /// Takes a kept number; false when it is taken already.
    pub(super) fn take_kept(&self, number: u16) -> bool {
        debug_assert!((1..=KEPT).contains(&usize::from(number)));
        let state = &self.entry(number as usize).state;
        self.locked(|| {
            let free = get(state) == FREE;
            if free {
                set(state, TAKEN);
            }
            free
        })
    }

    /// The cache of a number that was taken lies in this block from now on.
    pub(super) fn fill(&self, number: u16, cache: BlockNumber) {
        self.locked(|| set(&self.entry(number as usize).cache, cache));
    }

    /// The cache of a number has no owner any more. True when the caller ends it, and no other thread knows the cache
    /// then; false when the last visitor of the cache ends it.
    pub(super) fn leave(&self, number: u16) -> bool {
        let entry = self.entry(number as usize);
        let within = !innermost().is_null();
        let mut turns = 0_u32;
        loop {
            let alone = self.locked(|| {
                set(&entry.state, if within { LEFT } else { AWAITED });
                self.let_go(entry).is_some()
            });
            if alone || within {
                return alone;
            }
            if cfg!(loom) {
                yield_now();
            } else {
                wait_turn(turns);
            }
            turns = turns.saturating_add(1);
        }
    }

    /// A number is free, whose cache is gone.
    pub(super) fn give_back(&self, number: u16) {
        let number = usize::from(number);
        self.locked(|| {
            set(&self.entry(number).state, FREE);
            if (KEPT + 1..self.lowest.load(Ordering::Relaxed)).contains(&number) {
                self.lowest.store(number, Ordering::Relaxed);
            }
        });
    }

    /// Calls `f` with the block of the cache that has the lowest number from `from` on, and says that number; `None` when
    /// there is none. Calls `end` afterwards if the cache was left meanwhile.
    pub(super) fn visit(
        &self,
        from: u16,
        f: impl FnOnce(BlockNumber),
        end: impl FnMut(BlockNumber),
    ) -> Option<u16> {
        let (number, cache) = self.locked(|| {
            // One that was left and has no visitor is there only in the child of a fork without the visitor's thread:
            // this visit ends it.
            let mut all = self.filled(from as usize).filter(|&(number, _)| {
                let entry = self.entry(number as usize);
                get(&entry.state) == TAKEN || get(&entry.visitors) == 0
            });
            let (number, cache) = all.next()?;
            let visitors = &self.entry(number as usize).visitors;
            set(visitors, get(visitors) + 1);
            Some((number, cache))
        })?;
        let visit = Visit {
            table: self,
            number,
            end,
            link: Link {
                table: self,
                number,
                outer: innermost(),
            },
        };
        // The value stays where it is until it takes itself off the list, also when `f` unwinds.
        VISITS.with(|v| v.set(&raw const visit.link));
        f(cache);
        Some(number)
    }

    /// Numbers and blocks of all caches. The caller holds the lock.
    pub(super) fn filled(&self, from: usize) -> impl Iterator<Item = (u16, BlockNumber)> {
        (from.max(1)..self.top.load(Ordering::Relaxed)).filter_map(|n| {
            let cache = get(&self.entry(n).cache);
            (cache != 0).then_some((n as u16, cache))
        })
    }

    /// In the child of a fork only the visits of its one thread are left. The caller holds the lock.
    pub(super) fn forget_threads(&self) {
        for (number, _) in self.filled(1) {
            let entry = self.entry(number as usize);
            set(&entry.visitors, 0);
            // The thread that forks does not wait here, so the thread that waited does not exist in the child.
            if get(&entry.state) == AWAITED {
                set(&entry.state, LEFT);
            }
        }
        let mut at = innermost();
        // SAFETY: null, or a visit of this thread, which is on its stack until it takes itself off the list.
        while let Some(link) = unsafe { at.as_ref() } {
            if core::ptr::eq(link.table, self) {
                let visitors = &self.entry(link.number as usize).visitors;
                set(visitors, get(visitors) + 1);
            }
            at = link.outer;
        }
    }

    /// The block of a cache that was left and has no visitor: no thread finds it from now on. The caller holds the lock.
    fn let_go(&self, entry: &Entry) -> Option<BlockNumber> {
        let gone = matches!(get(&entry.state), LEFT | AWAITED) && get(&entry.visitors) == 0;
        gone.then(|| {
            set(&entry.state, TAKEN);
            entry.cache.swap(0, Ordering::Relaxed)
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

impl<F: FnMut(BlockNumber)> Drop for Visit<'_, F> {
    fn drop(&mut self) {
        VISITS.with(|v| v.set(self.link.outer));
        let table = self.table;
        let gone = table.locked(|| {
            let entry = table.entry(self.number as usize);
            set(&entry.visitors, get(&entry.visitors) - 1);
            (get(&entry.state) == LEFT)
                .then(|| table.let_go(entry))
                .flatten()
        });
        if let Some(block) = gone {
            (self.end)(block);
        }
    }
}

/// The innermost visit of this thread.
fn innermost() -> *const Link {
    VISITS.with(Cell::get)
}

fn get(word: &AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}

fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    fn never(_: BlockNumber) {
        panic!("it has an owner");
    }

    #[test]
    fn numbers_are_used_again_lowest_first() {
        let table = Table::new(system()).unwrap();
        let number = |n: usize| Some((KEPT + n) as u16);
        let take = || table.take();
        assert_eq!([(); 3].map(|()| take()), [1, 2, 3].map(number));
        for n in [2, 1] {
            table.give_back(number(n).unwrap());
        }
        assert_eq!([(); 3].map(|()| take()), [1, 2, 4].map(number));
        let lowest = table.lowest.load(Ordering::Relaxed);
        assert_eq!(lowest, KEPT + 5, "those below are not looked at again");
    }

    #[test]
    fn who_asks_for_a_kept_number_gets_it_and_nobody_else() {
        let table = Table::new(system()).unwrap();
        assert!(table.take_kept(3) && !table.take_kept(3));
        assert_eq!(table.take(), Some(KEPT as u16 + 1));
        table.fill(3, 7);
        assert_eq!(table.visit(0, |block| assert_eq!(block, 7), never), Some(3));
        assert!(table.leave(3));
        table.give_back(3);
        assert_eq!(table.take(), Some(KEPT as u16 + 2));
        assert!(table.take_kept(3));
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many numbers")]
    fn numbers_end() {
        let table = Table::new(system()).unwrap();
        table.top.store(MOST_CACHES, Ordering::Relaxed);
        for n in 1..MOST_CACHES {
            set(&table.entry(n).state, TAKEN);
        }
        assert_eq!(table.take(), Some(MOST_CACHES as u16));
        assert_eq!(table.take(), None);
    }

    #[test]
    fn a_cache_that_is_left_ends_with_its_last_visitor() {
        let table = Table::new(system()).unwrap();
        let number = table.take().unwrap();
        table.fill(number, 7);
        let ended = Cell::new(0);
        let end = |block| ended.set(ended.get() + block);
        let visited = table.visit(
            0,
            |block| {
                assert_eq!(block, 7);
                table.visit(0, |_| assert!(!table.leave(number), "two visit it"), end);
                assert_eq!(ended.get(), 0, "one visits it still");
                assert_eq!(table.visit(0, |_| (), never), None, "nobody new comes");
                assert_eq!(table.filled(0).count(), 1, "and its lock is known");
            },
            end,
        );
        assert_eq!((visited, ended.get()), (Some(number), 7));
        assert_eq!(table.filled(0).count(), 0);
        assert_eq!(table.take(), Some(number + 1), "the number is in use");
        table.give_back(number);
        assert_eq!(table.take(), Some(number));
        assert!(table.leave(number), "nobody visits it");
    }

    #[test]
    fn a_cache_waits_for_visitors_of_other_threads() {
        let table = Table::new(system()).unwrap();
        let number = table.take().unwrap();
        table.fill(number, 7);
        let left = core::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            let mut gone = None;
            table.visit(
                0,
                |_| {
                    gone = Some(s.spawn(|| {
                        assert!(table.leave(number), "who waited ends it");
                        left.load(Ordering::Acquire)
                    }));
                    while get(&table.entry(number as usize).state) != AWAITED {
                        yield_now();
                    }
                    assert_eq!(table.visit(0, |_| (), never), None, "nobody new comes");
                    left.store(true, Ordering::Release);
                },
                never,
            );
            assert!(gone.unwrap().join().unwrap(), "gone while it was visited");
        });
    }

    #[test]
    fn a_visit_that_unwinds_is_over() {
        let table = Table::new(system()).unwrap();
        let number = table.take().unwrap();
        table.fill(number, 7);
        let unwinding =
            std::panic::AssertUnwindSafe(|| table.visit(0, |_| panic!("as meant"), never));
        assert!(std::panic::catch_unwind(unwinding).is_err());
        assert!(innermost().is_null());
        assert!(table.leave(number));
    }

    #[test]
    fn a_child_counts_the_visits_of_the_thread_that_it_has() {
        let table = Table::new(system()).unwrap();
        let [mine, others] = [7, 8].map(|block| {
            let number = table.take().unwrap();
            table.fill(number, block);
            number
        });
        let ended = Cell::new(0);
        let end = |block| ended.set(ended.get() + block);
        // A visitor that the child does not have, and a cache that was left to it.
        set(&table.entry(others as usize).visitors, 1);
        table.visit(
            mine,
            |_| {
                set(&table.entry(mine as usize).visitors, 3);
                table.locked(|| table.forget_threads());
                assert_eq!(get(&table.entry(mine as usize).visitors), 1);
                assert!(!table.leave(mine), "this thread visits it");
                assert!(table.leave(others), "nobody does");
            },
            end,
        );
        assert_eq!(ended.get(), 7);
        // A cache that was left to a thread that is gone is ended by the next visit.
        let [number, held] = [9, 10].map(|block| {
            let number = table.take().unwrap();
            table.fill(number, block);
            number
        });
        let entry = table.entry(number as usize);
        table.visit(
            held,
            |_| {
                set(&entry.visitors, 1);
                assert!(!table.leave(number), "another thread visits it");
            },
            never,
        );
        table.locked(|| table.forget_threads());
        assert_eq!(table.visit(0, |_| (), end), Some(number));
        assert_eq!(ended.get(), 7 + 9);
        assert_eq!(table.visit(0, |_| (), never), Some(held));
    }
}
