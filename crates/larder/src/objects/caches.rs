//! All caches of a family: visits to each, their upkeep, and what a fork does to them.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::cache::{Cache, CacheRef, Config};
use super::error::ObjectError;
use super::family::{Family, Inner};
use crate::magazine::thread_number;
use crate::os::lock::order::{Rank, calls};
use crate::os::{coarse_now, fork, turns, wait_turn};

/// Looks at another thread that reclaims memory, without a cache more that it has visited, before it is not waited for any
/// more: it may be descheduled, and a callback of its may wait for this thread.
const PATIENCE: u32 = turns(Duration::from_secs(1));
impl Family {
    /// Ends a working-set interval of all caches: objects that it did not need go to their slabs, slabs that are whole to the
    /// pool, and pages that the pool has not needed for its decay time to the system. Returns bytes of slabs that went.
    ///
    /// Unused memory is gone after two calls, a decay time apart. Slow paths call it by themselves when the
    /// interval is over; see also [`start_helper`](Self::start_helper), whose thread alone also looks whether the machine is short of
    /// memory.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || 0_u64)?;
    /// drop(cache.get()?);
    /// let bytes: usize = (0..4).map(|_| family.maintain()).sum();
    /// assert!(bytes > 0, "unused for four intervals");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn maintain(&self) -> usize {
        let now = coarse_now();
        let bytes = self.inner.maintain(now);
        self.inner.pool.upkeep(now, true);
        bytes
    }

    /// Gives everything back that is not in use and not in a handle, now. Returns bytes of pages that went to the system.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let object = cache.get()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put(object) };
    /// assert!(family.trim() > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) -> usize {
        // Slabs go to the pool first, and count there.
        self.inner.each_cache(|cache| cache.trim());
        self.inner.pool.trim()
    }
}

impl CacheRef {
    /// A cache with one owner. Where metadata is short, the family's other caches are asked for theirs.
    pub(super) fn of(family: &Family, config: Config) -> Result<Self, ObjectError> {
        Self::new(family, config).or_else(|error| {
            if matches!(error, ObjectError::System(_)) && family.inner.reclaim() {
                Self::new(family, config)
            } else {
                Err(error)
            }
        })
    }
}

impl Inner {
    /// Visits every cache, without a lock, and adds up what `f` returns. A cache whose last owner goes meanwhile ends
    /// with the visit.
    pub(super) fn each_cache(&self, f: impl Fn(&Cache) -> usize) -> usize {
        let mut sum = 0;
        let mut from = 1;
        while let Some(number) = self.table.visit(
            from,
            // SAFETY: a cache in the table is whole, and stays as long as it is visited.
            |block| sum += f(&*unsafe { CacheRef::in_block(self, block) }),
            // SAFETY: the table has let go of it, so no other thread ends it.
            |block| unsafe { CacheRef::in_block(self, block) }.end(),
        ) {
            from = number + 1;
        }
        sum
    }

    /// Ends a working-set interval of the caches.
    pub(super) fn maintain(&self, now: u64) -> usize {
        self.due.begin(now, self.interval_ns);
        let began = self.began.swap(now, Ordering::Relaxed);
        self.intervals.fetch_add(1, Ordering::Relaxed);
        self.each_cache(|cache| cache.maintain(began))
    }

    /// For paths that are slow anyway. They serve some object, so a destructor of another one that panics must not end
    /// them: its message was printed.
    pub(super) fn upkeep_if_due(&self) {
        self.upkeep_if_due_at(coarse_now());
    }

    pub(super) fn upkeep_if_due_at(&self, now: u64) {
        if let Some(f) = self.on_slow {
            let _outside = calls("what slow calls begin with", Rank::Reaper);
            f();
        }
        if self.due.claim(now, self.interval_ns) {
            let _ = catch_unwind(AssertUnwindSafe(|| self.maintain(now)));
            self.pool.upkeep(now, false);
        } else {
            self.pool.upkeep_if_due(now);
        }
    }

    /// Does what is slow: the family's upkeep first. When memory is short once more, after all caches gave up what they could, and
    /// then as long as the family's user makes room.
    #[cold]
    pub(super) fn patiently<T, E>(
        &self,
        mut get: impl FnMut() -> Result<T, E>,
        is_short: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        self.upkeep_if_due();
        let mut got = get();
        if got.as_ref().is_err_and(&is_short) && self.reclaim() {
            got = get();
        }
        while got.as_ref().is_err_and(&is_short) && self.make_room() {
            got = get();
        }
        got
    }

    /// Asks the family's user for room; false when there is none to be had.
    fn make_room(&self) -> bool {
        self.on_shortage.is_some_and(|f| {
            let _outside = calls("what makes room", Rank::Reaper);
            f()
        })
    }

    /// Memory is short: asks the users of all caches for objects, and all caches for slabs. While one thread does that,
    /// other callers wait a while for what it finds. False when it makes no sense to try again: within a callback.
    pub(super) fn reclaim(&self) -> bool {
        let now = fork::generation();
        let me = thread_number();
        let (mut turns, mut visits) = (0, 0);
        loop {
            let seen = self.reclaiming.load(Ordering::Relaxed);
            if seen != now
                && self
                    .reclaiming
                    .compare_exchange(seen, now, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                break;
            }
            if self.reclaimer.load(Ordering::Relaxed) == me {
                return false;
            }
            let visited = self.reclaimed.load(Ordering::Relaxed);
            turns = if visited == visits { turns + 1 } else { 0 };
            visits = visited;
            if turns > PATIENCE {
                return true;
            }
            wait_turn(turns);
        }
        self.reclaimer.store(me, Ordering::Relaxed);
        /// Ends it also when a callback panics.
        struct End<'a>(&'a Inner);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.reclaimer.store(0, Ordering::Relaxed);
                self.0.reclaiming.store(0, Ordering::Release);
            }
        }
        let _end = End(self);
        let visited = || self.reclaimed.fetch_add(1, Ordering::Relaxed);
        self.each_cache(|cache| {
            cache.ask_users();
            visited();
            0
        });
        self.each_cache(|cache| {
            visited();
            // The caller wants an object of another cache: see `upkeep_if_due`.
            let trimmed = catch_unwind(AssertUnwindSafe(|| cache.trim()));
            trimmed.unwrap_or(0)
        });
        self.pool.trim();
        true
    }
}

impl fork::Around for Inner {
    /// The table first, so that caches neither come nor go until `after`; then the caches' locks, by number; then those
    /// of the lists and of the metadata: no thread that holds one of these takes another.
    fn before(&self) {
        self.reaper.raw().lock_around_fork();
        self.table.raw_lock().lock_around_fork();
        for (_, block) in self.table.filled(1) {
            // SAFETY: caches in the table are whole, and the table's lock is held.
            unsafe { CacheRef::in_block(self, block) }
                .raw_lock()
                .lock_around_fork();
        }
        self.links.raw().lock_around_fork();
        self.meta.raw_lock().lock_around_fork();
    }

    fn after(&self, in_child: bool) {
        if in_child {
            self.table.forget_threads();
            self.bound.forget_heaps();
        }
        self.meta.raw_lock().unlock();
        self.links.raw().unlock();
        for (_, block) in self.table.filled(1) {
            // SAFETY: as above.
            unsafe { CacheRef::in_block(self, block) }
                .raw_lock()
                .unlock();
        }
        self.table.raw_lock().unlock();
        self.reaper.raw().unlock();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::alloc::Layout;

    use super::*;
    use crate::objects::RawCache;

    const SECOND: u64 = 1_000_000_000;

    /// Takes 8 MiB of objects and a run as large, and puts them.
    fn burst(family: &Family) {
        let cache = RawCache::new(family, Layout::new::<[u8; 4096]>()).unwrap();
        let mut handle = cache.handle();
        let objects: Vec<_> = (0..2048).map(|_| handle.get().unwrap()).collect();
        let run = family.get_large(8 << 20, 1).unwrap();
        // SAFETY: taken above, each put once.
        unsafe {
            objects.into_iter().for_each(|object| handle.put(object));
            family.put_large(run).unwrap();
        }
    }

    #[test]
    fn a_clock_that_stops_or_jumps_delays_nothing_for_long() {
        let pages = crate::pages::PagePool::builder().decay(Duration::from_secs(1));
        let family = Family::builder().pages(pages).build().unwrap();
        let held = || family.pool().held_bytes() >> 20;
        let pass = |now| family.inner.upkeep_if_due_at(now);
        let now = coarse_now();
        burst(&family);
        for _ in 0..5 {
            pass(now);
        }
        assert!(held() >= 16, "it has stopped: {} MiB", held());
        for (jump, begin) in [("back", 1), ("forward", u64::MAX / 2)] {
            burst(&family);
            for turn in 0..4 {
                pass(begin + turn * SECOND);
            }
            assert!(held() < 2, "it jumped {jump}: {} MiB", held());
        }
    }
}
