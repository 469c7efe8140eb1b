//! The most free memory that a family keeps, whatever the time.
//!
//! Time passes without a call, but memory goes back by calls only, unless a thread maintains the family. So puts see to it
//! that little is left to time: a family keeps a constant, and beside it no more than is in use. They look when so much was
//! put that the bound could be reached, or a quarter of what is in use, which spreads the cost of a look, and then give back
//! down to half of what is in use beside the constant: what is put up to the next look brings it to the bound at most.
//!
//! A program that frees much and takes it again soon would pay for the system's calls and faults each time. So the constant
//! doubles, up to a share of the machine's memory, when what went back is backed again within an interval.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::cache::Cache;
use super::family::Inner;
use super::upkeep::Panic;
use crate::os::{coarse_now, physical_memory};

/// Bytes that a family keeps by default beside what the use allows: what a small program frees and takes again at once never
/// costs a call.
const CACHED_BYTES: usize = 64 << 20;
/// Of the machine's memory so much at most becomes the constant.
const MACHINE_SHARE: usize = 16;
/// Bytes that are put between two looks: at least so many, which bounds what a look costs for each byte, and at most, since
/// full magazines take memory, too.
const STEP: usize = 4 << 20;
const MOST_STEP: usize = 64 << 20;
/// The same where nothing is kept.
const SHORT_STEP: usize = 1 << 20;
/// Bytes at most that heaps may have in magazines beside what each has of small objects, since a thread that rests gives nothing back: a
/// constant, a share of what is backed, and both together; and of a limit on memory this share.
const LEAST_LENT: usize = 32 << 20;
const LENT_SHARE: usize = 4;
const MOST_LENT: usize = 64 << 20;
const LENT_SHARE_OF_LIMIT: usize = 8;
/// A cache that has less free memory keeps it: its depot is worth more than that.
const WORTH: usize = 256 << 10;

/// What is kept.
#[derive(Debug)]
pub(super) struct Bound {
    /// Bytes beside a share of what is in use, and how many these may become.
    cached: AtomicUsize,
    most_cached: usize,
    /// Bytes of runs that heaps may keep when these are freed.
    kept_by_heaps: AtomicUsize,
    /// Bytes of objects that they may have in magazines when these are lent.
    lent_to_heaps: AtomicUsize,
    /// Nothing is kept, whatever is in use.
    nothing: bool,
    /// Bytes that were backed after the last ones went back by a look, and when that was.
    held: AtomicUsize,
    at: AtomicU64,
    /// What came in magazines, and in runs of pages: to look at the pool alone takes a hundredth of a look at all caches.
    objects: Looks,
    runs: Looks,
    /// Bytes that were free in caches when they were looked at last, and what had come in magazines by then.
    in_caches: AtomicUsize,
    seen: AtomicUsize,
}

/// When puts look again.
#[derive(Debug)]
struct Looks {
    /// Bytes put so far. It may wrap.
    put: AtomicUsize,
    /// When so many are put, it is time to look.
    due: AtomicUsize,
}

impl Looks {
    fn new(step: usize) -> Self {
        Self {
            put: AtomicUsize::new(0),
            due: AtomicUsize::new(step),
        }
    }

    /// Counts bytes that were put. When it is time to look, one caller looks, and says [`looked`](Self::looked) with what it has here.
    fn is_due(&self, bytes: usize) -> Option<usize> {
        let put = self.put.fetch_add(bytes, Ordering::Relaxed);
        let put = put.wrapping_add(bytes);
        let due = self.due.load(Ordering::Relaxed);
        // A whole step, until the look says how long the next one is.
        let next = put.wrapping_add(STEP);
        let is_due = put.wrapping_sub(due) as isize >= 0
            && self
                .due
                .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        is_due.then_some(put)
    }

    /// After a look, which began when so much was put: the next one is after so many bytes more, unless another thread has begun a look
    /// since, which saw more. If so much was put meanwhile, and maybe nothing will be any more, it is the caller's.
    fn looked(&self, put: usize, step: usize) -> Option<usize> {
        let (next, due) = (put.wrapping_add(STEP), put.wrapping_add(step));
        let _ = self
            .due
            .compare_exchange(next, due, Ordering::Relaxed, Ordering::Relaxed);
        self.is_due(0)
    }
}

impl Bound {
    /// For a constant that is given, or for one that adapts. `interval_ns` 0 keeps nothing; `u64::MAX` is no bound, unless it
    /// is given.
    pub(super) fn new(given: Option<usize>, interval_ns: u64) -> Self {
        let nothing = interval_ns == 0;
        let (cached, most_cached) = match (given, interval_ns) {
            (_, 0) => (0, 0),
            (Some(given), _) => (given, given),
            (None, u64::MAX) => (usize::MAX, usize::MAX),
            (None, _) => {
                let most = physical_memory() / MACHINE_SHARE;
                (CACHED_BYTES, most.max(CACHED_BYTES))
            }
        };
        Self {
            cached: AtomicUsize::new(cached),
            most_cached,
            kept_by_heaps: AtomicUsize::new(0),
            lent_to_heaps: AtomicUsize::new(0),
            nothing,
            held: AtomicUsize::new(usize::MAX),
            at: AtomicU64::new(0),
            objects: Looks::new(if nothing { SHORT_STEP } else { STEP }),
            runs: Looks::new(if nothing { SHORT_STEP } else { STEP }),
            in_caches: AtomicUsize::new(0),
            seen: AtomicUsize::new(0),
        }
    }

    /// Bytes that may stay free while so many are in use.
    fn most(&self, used: usize) -> usize {
        let share = if self.nothing { 0 } else { used / 2 };
        self.cached.load(Ordering::Relaxed).saturating_add(share)
    }

    /// Bytes that are to go back at `now`, when so many are backed, in use and free.
    fn over(&self, held: usize, used: usize, free: usize, now: u64, interval_ns: u64) -> usize {
        let over = free.saturating_sub(self.most(used));
        let came = held.saturating_sub(self.held.load(Ordering::Relaxed));
        let soon = now.wrapping_sub(self.at.load(Ordering::Relaxed)) < interval_ns;
        if over > 0 && soon && came > over / 2 {
            let cached = self.cached.load(Ordering::Relaxed);
            let more = cached.saturating_mul(2).min(self.most_cached);
            self.cached.store(more, Ordering::Relaxed);
            self.went(held, now);
            return free.saturating_sub(self.most(used));
        }
        over
    }

    /// Some went back at `now`, and so many are backed.
    fn went(&self, held: usize, now: u64) {
        self.held.store(held, Ordering::Relaxed);
        self.at.store(now, Ordering::Relaxed);
    }

    /// Bytes to be put before the next look, if so many are in use and free now. The step of each of the two counters may be a
    /// third of what is missing up to the bound: when both are put, the bound has sunk by another third, and is reached.
    fn step(&self, used: usize, free: usize) -> usize {
        if self.nothing {
            return SHORT_STEP;
        }
        let missing = self.most(used).saturating_sub(free);
        (used / 4).max(missing / 3).clamp(STEP, MOST_STEP)
    }

    /// As [`Family::let_keep`](super::Family::let_keep).
    pub(super) fn let_keep(&self, more: usize) -> bool {
        let most = self.cached.load(Ordering::Relaxed);
        let add = |kept: usize| kept.checked_add(more).filter(|kept| *kept <= most);
        let relaxed = Ordering::Relaxed;
        self.kept_by_heaps
            .fetch_update(relaxed, relaxed, add)
            .is_ok()
    }

    /// As [`Family::keep_less`](super::Family::keep_less).
    pub(super) fn keep_less(&self, bytes: usize) {
        subtract(&self.kept_by_heaps, bytes);
    }

    /// As [`Family::lend`](super::Family::lend), where so many bytes are backed, and may be.
    fn lend(&self, rounds: usize, bytes: usize, held: usize, limit: usize) -> usize {
        let most = (LEAST_LENT + held / LENT_SHARE)
            .min(MOST_LENT)
            .min(limit / LENT_SHARE_OF_LIMIT)
            .min(self.cached.load(Ordering::Relaxed));
        // Of several half of what is left, so one heap that needs much leaves something for the others.
        let granted = |lent: usize| {
            let left = most.saturating_sub(lent);
            let left = if rounds == 1 { left } else { left / 2 };
            rounds.min(left / bytes)
        };
        let relaxed = Ordering::Relaxed;
        let add = |lent| (granted(lent) > 0).then(|| lent + granted(lent) * bytes);
        let before = self.lent_to_heaps.fetch_update(relaxed, relaxed, add);
        before.map_or(0, granted)
    }

    /// As [`Family::take_back`](super::Family::take_back).
    pub(super) fn take_back(&self, bytes: usize) {
        subtract(&self.lent_to_heaps, bytes);
    }

    /// In the child of a fork: the heaps of its parent's other threads return nothing any more. Those that the child has may return
    /// what they had before.
    pub(super) fn forget_heaps(&self) {
        self.kept_by_heaps.store(0, Ordering::Relaxed);
        self.lent_to_heaps.store(0, Ordering::Relaxed);
    }

    /// Whether there is a bound.
    fn is_some(&self) -> bool {
        self.most_cached < usize::MAX
    }
}

/// Less in a counter, which may have been set to 0 since so many bytes were added.
fn subtract(counter: &AtomicUsize, bytes: usize) {
    let less = |had: usize| Some(had.saturating_sub(bytes));
    let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

impl Inner {
    /// As [`Family::lend`](super::Family::lend).
    pub(super) fn lend(&self, rounds: usize, bytes: usize) -> usize {
        let (held, limit) = (self.pool.held_bytes(), self.pool.limit_bytes());
        self.bound.lend(rounds, bytes, held, limit)
    }

    /// The upkeep of a put that leaves the magazines: what is due by time, and by `bytes` that came since the last one.
    pub(super) fn upkeep_of_put(&self, bytes: usize) {
        self.upkeep_if_due();
        self.put_bytes(bytes);
    }

    /// So many bytes of objects are free now. Called without a lock.
    fn put_bytes(&self, bytes: usize) {
        let bound = &self.bound;
        if !bound.is_some() {
            return;
        }
        let mut due = bound.objects.is_due(bytes);
        while let Some(put) = due {
            // Where all that is backed may stay, no cache need be looked at.
            let held = self.pool.held_bytes();
            let (used, free) = if held <= bound.most(0) {
                (0, held)
            } else {
                self.keep_bound()
            };
            due = bound.objects.looked(put, bound.step(used, free));
        }
    }

    /// So many bytes of pages are free now. Called without a lock.
    pub(super) fn put_pages(&self, bytes: usize) {
        let bound = &self.bound;
        if !bound.is_some() {
            return;
        }
        let mut due = bound.runs.is_due(bytes);
        while let Some(put) = due {
            let in_caches = bound.in_caches.load(Ordering::Relaxed);
            // What came in magazines since may be free, too: a thread that puts runs alone from now on must find it.
            let objects = bound.objects.put.load(Ordering::Relaxed);
            let unseen = objects.wrapping_sub(bound.seen.load(Ordering::Relaxed));
            let (_, mut used, mut free) = self.in_use(in_caches.saturating_add(unseen));
            if free > bound.most(used) {
                (used, free) = self.keep_bound();
            }
            due = bound.runs.looked(put, bound.step(used, free));
        }
    }

    /// Gives back what is beyond the bound. Returns bytes in use, and those that were free before.
    #[cold]
    fn keep_bound(&self) -> (usize, usize) {
        let bound = &self.bound;
        let put = bound.objects.put.load(Ordering::Relaxed);
        bound.seen.store(put, Ordering::Relaxed);
        let in_caches = self.each_cache(Cache::free_bytes);
        let (held, used, free) = self.in_use(in_caches);
        let now = coarse_now();
        let over = bound.over(held, used, free, now, self.interval_ns);
        if over > 0 {
            let pages = self.pool.release_free(over);
            let left = Cell::new(over.saturating_sub(pages));
            let give = |cache: &Cache| {
                let bytes = cache.give_free(left.get(), bound.nothing);
                left.set(left.get().saturating_sub(bytes));
                bytes
            };
            if left.get() > 0 {
                // A destructor that panics must not end the put; its message was printed.
                let bytes = catch_unwind(AssertUnwindSafe(|| self.each_cache(give)));
                self.pool.release_free(bytes.unwrap_or(0).min(over));
            }
            bound.went(self.pool.held_bytes(), now);
        }
        bound.in_caches.store(in_caches, Ordering::Relaxed);
        (used, free)
    }

    /// Bytes backed, in use and free, if so many are free in caches.
    fn in_use(&self, in_caches: usize) -> (usize, usize, usize) {
        let (held, out) = self.pool.bytes();
        let used = out.saturating_sub(in_caches);
        (held, used, held.saturating_sub(out) + in_caches.min(out))
    }
}

impl Cache {
    /// Bytes that are free in the depot and in slabs, and could go.
    fn free_bytes(&self) -> usize {
        if self.is_type_stable() {
            return 0;
        }
        let free = self.slabs().free();
        (free + self.stock.in_depot()) * self.shape.stride
    }

    /// From now on the depot may be worth a look again.
    pub(super) fn forget_barren(&self) {
        self.barren.store(usize::MAX, Ordering::Relaxed);
    }

    /// Whole slabs go to the pool, of about `most` bytes; if there are fewer, the depot's objects go to the slabs first. `all`:
    /// however little there is. Returns bytes of slabs that went.
    fn give_free(&self, most: usize, all: bool) -> usize {
        let free = self.free_bytes();
        if most == 0 || (!all && free < WORTH) {
            return 0;
        }
        let used = self.held.load(Ordering::Relaxed).saturating_sub(free);
        // Where slabs are in use in part, the objects of the depot make few of them whole before others are put.
        let barren = used / 3 * 4 > self.barren.load(Ordering::Relaxed);
        let slabs = |bytes: usize| bytes.div_ceil(self.shape.bytes());
        let now = coarse_now();
        let (bytes, panic) = self.release_whole(slabs(most), now);
        let rest = most.saturating_sub(bytes);
        let (more, late): (usize, Panic) = if rest > 0 && (all || !barren) {
            let before = self.slabs().free();
            let rounds = self.stock.empty_depot(1, &self.as_supply());
            let (more, panic) = self.release_whole(slabs(rest), now);
            // By what stayed: another thread may have released what became whole.
            let stayed = self.slabs().free().saturating_sub(before);
            if more < rest && stayed * 4 > rounds * 3 {
                self.barren.store(used, Ordering::Relaxed);
            }
            (more, panic)
        } else {
            (0, None)
        };
        if let Some(payload) = panic.or(late) {
            std::panic::resume_unwind(payload);
        }
        bytes + more
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn looks_are_spread_and_the_bound_holds_between_them() {
        let bound = Bound::new(Some(CACHED_BYTES), 1);
        for used in [0, 1 << 20, 1 << 30, 1 << 40] {
            for free in [0, bound.most(used) / 2, bound.most(used)] {
                let step = bound.step(used, free);
                // Until the next look both counters' steps are put, which are in use no more.
                let (used, free) = (used.saturating_sub(2 * step), free + 2 * step);
                assert!(free <= used + CACHED_BYTES + 4 * STEP, "{used} {free}");
            }
        }
        let looks = Looks::new(STEP);
        let looks = (0..1024).filter_map(|_| looks.is_due(1 << 20)).count();
        assert_eq!(looks, 256, "once for each step");
        assert!(!Bound::new(None, u64::MAX).is_some());
    }

    #[test]
    fn a_look_that_takes_long_does_not_put_off_the_next_one() {
        let looks = Looks::new(STEP);
        let slow = looks.is_due(STEP).expect("a step was put");
        assert!(looks.is_due(STEP - 1).is_none());
        let quick = looks.is_due(1).expect("another step was put");
        assert!(looks.looked(quick, STEP).is_none());
        assert!(looks.looked(slow, MOST_STEP).is_none());
        let quick = looks.is_due(STEP).expect("the quick one saw more");
        assert!(looks.looked(quick, 2 * STEP).is_none());
        assert!(looks.is_due(STEP).is_none(), "two steps were allowed");
        // Meanwhile so much is put as the look allows, and then nothing.
        let slow = looks.is_due(STEP).expect("two steps were put");
        assert!(looks.is_due(STEP - 1).is_none());
        let again = looks.looked(slow, STEP - 1).expect("it looks again");
        assert!(looks.looked(again, STEP).is_none());
    }

    #[test]
    fn lent_is_half_of_what_is_left_under_every_bound() {
        let (mib, none) = (1 << 20, usize::MAX);
        let bound = |cached: usize| Bound::new(Some(cached * mib), 1);
        let all = bound(1000);
        assert_eq!(all.lend(100, mib, 0, none), 16, "of a constant of 32 MiB");
        assert_eq!(all.lend(100, mib, 0, none), 8);
        assert_eq!(all.lend(100, mib, 40 * mib, none), 9, "of 10 MiB more");
        all.take_back(33 * mib);
        assert_eq!(all.lend(100, mib, 1000 * mib, none), 32, "of 64 MiB");
        assert_eq!(all.lend(5, mib, 1000 * mib, none), 5, "no more than asked");
        assert_eq!(all.lend(5, 20 * mib, 1000 * mib, none), 0);
        assert_eq!(all.lend(1, 20 * mib, 1000 * mib, none), 1, "one of all");
        assert_eq!(all.lend(1, 20 * mib, 1000 * mib, none), 0);
        assert_eq!(bound(10).lend(100, mib, 0, none), 5, "of what is cached");
        assert_eq!(bound(1000).lend(100, mib, 0, 80 * mib), 5, "of the limit");
        assert_eq!(bound(0).lend(100, 1, 0, none), 0);
    }

    #[test]
    fn what_was_lent_before_it_was_forgotten_may_still_come_back() {
        let (mib, none) = (1 << 20, usize::MAX);
        let bound = Bound::new(Some(10 * mib), 1);
        for _ in 0..3 {
            assert_eq!(bound.lend(1, 10 * mib, 0, none), 1);
            assert_eq!(bound.lend(1, mib, 0, none), 0, "all is lent");
            assert!(bound.let_keep(10 * mib) && !bound.let_keep(1));
            bound.forget_heaps();
            bound.take_back(mib);
            bound.keep_less(mib);
        }
    }

    #[test]
    fn the_constant_grows_when_what_went_back_comes_again_soon() {
        let (mib, second) = (1 << 20, 1_000_000_000);
        let over =
            |bound: &Bound, held, now| bound.over(held * mib, 0, held * mib, now, second) / mib;
        let adapts = Bound::new(None, second);
        assert_eq!(over(&adapts, 100, 0), 36, "the first time");
        adapts.went(99 * mib, 0);
        assert_eq!(over(&adapts, 100, 1), 36, "hardly any came again");
        adapts.went(64 * mib, 0);
        assert_eq!(over(&adapts, 100, second), 36, "not soon");
        assert_eq!(over(&adapts, 100, 1), 0, "128 MiB");
        adapts.went(64 * mib, 2);
        assert_eq!(over(&adapts, 200, 1), 72, "the clock jumped back");
        for turn in 0..40 {
            adapts.went(0, turn);
            over(&adapts, 1 << 30, turn);
        }
        let most = adapts.most(0);
        assert_eq!(most, (physical_memory() / MACHINE_SHARE).max(CACHED_BYTES));
        let given = Bound::new(Some(mib), second);
        given.went(0, 0);
        assert_eq!(over(&given, 100, 0), 99, "as it was given");
    }
}
