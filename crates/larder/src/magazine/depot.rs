//! The depot: the full magazines behind all CPUs and handles, and the rule by which they leave.
//!
//! It finds its working set as Bonwick and Adams did. The smallest number of full magazines within an interval is the
//! number that no thread needed, so that many may go back to the supplier.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use super::MAX_ROUNDS;
use super::magazines::{Magazine, Magazines};
use super::stack::Stack;
use super::sync::AtomicU32;
use crate::os::OsError;

/// Failed exchanges on the stack after which the depot looks how many succeeded meanwhile.
const FAILURES: usize = 64;
/// Magazines grow when one exchange failed for this many that succeeded, or fewer. libumem grows them after 2 failed
/// trylocks within an interval of time. A share tells contending CPUs from threads that are descheduled in between,
/// however long the interval was.
const SUCCESSES: u64 = 16;

/// Places for magazines whose owner is gone. Each thread uses one of them.
const PLACES: usize = 4;

/// One more than the number of a magazine that an owner left when it was dropped; 0 is none. It is meant for the next owner
/// that the same thread makes, whose CPU has the magazine and its objects in the cache. It has a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Left(AtomicU32);

/// The place of this thread. Threads get places in turn, so that threads that begin together do not share one.
fn place() -> usize {
    touched_at_start! {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
    }
    thread_local!(static MINE: Cell<Option<u8>> = const { Cell::new(None) });
    let mine = MINE.get().unwrap_or_else(|| {
        let next = NEXT.fetch_add(1, Ordering::Relaxed) as u8;
        MINE.set(Some(next));
        next
    });
    usize::from(mine) % PLACES
}

/// One magazine in a count of magazines and rounds: there are fewer rounds than this.
const ONE: u64 = 1 << 40;

#[derive(Debug)]
pub(crate) struct Depot {
    magazines: Arc<Magazines>,
    full: Stack,
    left: [Left; PLACES],
    /// Full magazines now, in units of [`ONE`], and their rounds: one count, so one exchange. It stands beside the stack, and may be off by
    /// the exchanges under way.
    full_now: AtomicU64,
    /// Fewest full magazines since the interval began.
    full_least: AtomicUsize,
    /// Failed exchanges since the depot last looked at them.
    contended: AtomicUsize,
    /// Exchanges that had succeeded by then.
    looked_at: AtomicU64,
    /// Rounds that a CPU's magazine may hold now, at most [`MAX_ROUNDS`].
    rounds: AtomicUsize,
    most_rounds: usize,
}

impl Depot {
    pub(crate) fn new(magazines: Arc<Magazines>, rounds: usize, most_rounds: usize) -> Self {
        let most_rounds = most_rounds.clamp(1, MAX_ROUNDS);
        Self {
            magazines,
            full: Stack::new(),
            left: core::array::from_fn(|_| Left(AtomicU32::new(0))),
            full_now: AtomicU64::new(0),
            full_least: AtomicUsize::new(0),
            contended: AtomicUsize::new(0),
            looked_at: AtomicU64::new(0),
            rounds: AtomicUsize::new(rounds.clamp(1, most_rounds)),
            most_rounds,
        }
    }

    /// Rounds that a magazine may hold now.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Full magazines now.
    pub(crate) fn full(&self) -> usize {
        (self.full_now.load(Ordering::Relaxed) / ONE) as usize
    }

    /// Rounds in them.
    pub(crate) fn rounds_in_full(&self) -> usize {
        (self.full_now.load(Ordering::Relaxed) % ONE) as usize
    }

    /// Magazines made so far, for all depots that share them.
    pub(crate) fn made(&self) -> usize {
        self.magazines.made()
    }

    /// A magazine with at least one round.
    pub(crate) fn take_full(&self) -> Option<Magazine> {
        let (index, retries) = self.full.pop(&*self.magazines);
        self.note(retries);
        // SAFETY: the stack gives a number to one taker, and `put` left it there.
        let magazine = index.and_then(|index| unsafe { self.magazines.at_index(index) })?;
        let taken = ONE + magazine.len() as u64;
        let left = self.full_now.fetch_sub(taken, Ordering::Relaxed) - taken;
        let left = (left / ONE) as usize;
        // Mostly it is not, and to look costs less than an atomic exchange.
        if left < self.full_least.load(Ordering::Relaxed) {
            self.full_least.fetch_min(left, Ordering::Relaxed);
        }
        Some(magazine)
    }

    /// An empty magazine, made if there is none.
    pub(crate) fn take_empty(&self) -> Result<Magazine, OsError> {
        self.magazines.take_empty()
    }

    /// As [`take_empty`](Self::take_empty), for a caller that can do without a magazine: soon after the system refused
    /// memory, this does not ask it again.
    pub(crate) fn spare_empty(&self) -> Option<Magazine> {
        self.magazines.spare_empty()
    }

    /// A magazine for so many rounds of an owner's. Where they are less than a magazine's worth they join those that came last: each
    /// magazine takes 2 KiB, however few rounds it has.
    pub(crate) fn spare_with_room(&self, rounds: usize) -> Option<Magazine> {
        if rounds < self.rounds()
            && let Some(last) = self.take_full()
        {
            if last.len() + rounds <= MAX_ROUNDS {
                return Some(last);
            }
            self.put(last);
        }
        self.spare_empty()
    }

    /// Puts a magazine where it belongs.
    pub(crate) fn put(&self, magazine: Magazine) {
        if magazine.len() == 0 {
            return self.magazines.put_empty(magazine);
        }
        // Before the push, so that the count never runs below the truth and wraps.
        let put = ONE + magazine.len() as u64;
        self.full_now.fetch_add(put, Ordering::Relaxed);
        let index = self.magazines.index_of(magazine);
        let retries = self.full.push(&*self.magazines, index);
        self.note(retries);
    }

    /// Puts the magazine of an owner that goes. One exchange on a line that other threads hardly use, where [`put`](Self::put)
    /// needs two on lines that all of them use.
    pub(crate) fn leave(&self, magazine: Magazine) {
        if magazine.len() == 0 {
            return self.put(magazine);
        }
        let index = self.magazines.index_of(magazine);
        let left = &self.left[place()].0;
        // Release: the thread that takes the magazine sees its rounds. Acquire: so does the thread that gets the former one
        // from the stack.
        let former = left.swap(index + 1, Ordering::AcqRel).checked_sub(1);
        // SAFETY: the exchange gives a number to one taker, and an earlier call left it there.
        if let Some(former) = former.and_then(|index| unsafe { self.magazines.at_index(index) }) {
            self.put(former);
        }
    }

    /// A magazine with at least one round for an owner: one that an earlier owner left in this thread's place, one of the
    /// stack, or one left in another place.
    pub(crate) fn take_for_owner(&self) -> Option<Magazine> {
        self.take_left_here()
            .or_else(|| self.take_full())
            .or_else(|| self.take_left_anywhere())
    }

    /// A magazine that an owner of this thread's left.
    #[inline]
    pub(crate) fn take_left_here(&self) -> Option<Magazine> {
        self.take_left(place())
    }

    /// A magazine that an owner left anywhere.
    pub(crate) fn take_left_anywhere(&self) -> Option<Magazine> {
        (0..PLACES).find_map(|place| self.take_left(place))
    }

    fn take_left(&self, place: usize) -> Option<Magazine> {
        let left = &self.left[place].0;
        // Mostly there is none, and to look costs less than an exchange.
        if left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let index = left.swap(0, Ordering::Acquire).checked_sub(1)?;
        // SAFETY: the exchange gives a number to one taker, and `leave` left it there.
        unsafe { self.magazines.at_index(index) }
    }

    /// Moves what owners left onto the stack, where the working set is found.
    pub(crate) fn gather_left(&self) {
        for place in 0..PLACES {
            if let Some(magazine) = self.take_left(place) {
                self.put(magazine);
            }
        }
    }

    /// Keeps an own magazine for others, without its rounds.
    pub(crate) fn forget(&self, mut magazine: Magazine) {
        magazine.clear();
        self.magazines.put_empty(magazine);
    }

    /// Whether others use the same magazines.
    pub(crate) fn shares(&self) -> bool {
        Arc::strong_count(&self.magazines) > 1
    }

    /// Counts lost races; when they are many among all exchanges, magazines grow, so that CPUs come here less often.
    fn note(&self, retries: u32) {
        if retries == 0 {
            return;
        }
        let failed = self
            .contended
            .fetch_add(retries as usize, Ordering::Relaxed)
            + retries as usize;
        if failed >= FAILURES {
            self.contended.store(0, Ordering::Relaxed);
            // The stack's tag counts its exchanges anyway.
            let now = self.full.changes();
            let succeeded = now.wrapping_sub(self.looked_at.swap(now, Ordering::Relaxed));
            if succeeded <= SUCCESSES * failed as u64 {
                self.grow();
            }
        }
    }

    /// The next magazine size: one more than twice as many rounds.
    pub(crate) fn grow(&self) {
        let now = self.rounds();
        self.rounds
            .store((2 * now + 1).min(self.most_rounds), Ordering::Relaxed);
    }

    /// Ends an interval and says how many full magazines it did not need.
    pub(crate) fn end_interval(&self) -> usize {
        let now = self.full();
        self.full_least.swap(now, Ordering::Relaxed).min(now)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    fn full(depot: &Depot, round: usize) -> Magazine {
        let mut m = depot.take_empty().unwrap();
        m.push(round).unwrap();
        m
    }

    #[test]
    fn working_set_is_the_fewest_of_the_interval() {
        let depot = depot(1, 1);
        for r in 0..5 {
            depot.put(full(&depot, r));
        }
        depot.end_interval();
        let taken = [depot.take_full().unwrap(), depot.take_full().unwrap()];
        for magazine in taken {
            depot.put(magazine);
        }
        assert_eq!(depot.full(), 5);
        assert_eq!(depot.end_interval(), 3, "two of five were used");
        assert_eq!(depot.end_interval(), 5, "nothing was used since");
    }

    fn depot(rounds: usize, most_rounds: usize) -> Depot {
        Depot::new(Arc::new(Magazines::new(system())), rounds, most_rounds)
    }

    /// `n` exchanges that succeed.
    fn exchange(depot: &Depot, n: usize) {
        depot.put(full(depot, 1));
        for _ in 0..n / 2 {
            let magazine = depot.take_full().unwrap();
            depot.put(magazine);
        }
    }

    #[test]
    fn contention_grows_magazines_up_to_their_bound() {
        let depot = depot(15, 100);
        depot.note(63);
        assert_eq!(depot.rounds(), 15);
        depot.note(1);
        assert_eq!(depot.rounds(), 31);
        for _ in 0..10 {
            depot.note(FAILURES as u32);
        }
        assert_eq!(depot.rounds(), 100);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri lets exchanges fail by lot, and those count")]
    fn failures_that_are_few_among_all_exchanges_grow_nothing() {
        let depot = depot(15, 100);
        let few = FAILURES as u32;
        let many = SUCCESSES as usize * FAILURES;
        for _ in 0..10 {
            exchange(&depot, many + 4);
            depot.note(few);
        }
        assert_eq!(depot.rounds(), 15);
        exchange(&depot, many / 2);
        depot.note(few);
        assert_eq!(depot.rounds(), 31, "now they were many");
    }

    #[test]
    fn what_an_owner_leaves_goes_to_the_next_one_of_its_thread_first() {
        let depot = depot(1, 1);
        depot.put(full(&depot, 1));
        depot.leave(full(&depot, 2));
        assert_eq!(depot.full(), 1, "the one on the stack");
        let rounds = || depot.take_for_owner().map(|mut m| m.pop());
        assert_eq!(rounds(), Some(Some(2)));
        assert_eq!(rounds(), Some(Some(1)));
        assert_eq!(rounds(), None);
    }

    #[test]
    fn what_an_owner_leaves_is_nowhere_lost() {
        let depot = depot(1, 1);
        for round in 0..5 {
            depot.leave(full(&depot, round));
        }
        assert_eq!(depot.full(), 4, "one place for each thread");
        // A thread with another number finds what is left here last of all.
        let all: Vec<_> = std::iter::from_fn(|| depot.take_full()).collect();
        assert_eq!(all.len(), 4);
        assert!(
            depot
                .take_left_anywhere()
                .is_some_and(|m| m.rounds() == [4])
        );
        depot.leave(full(&depot, 9));
        depot.gather_left();
        assert_eq!(depot.full(), 1);
        assert_eq!(depot.take_full().unwrap().rounds(), [9]);
        depot.leave(depot.take_empty().unwrap());
        assert!(depot.take_for_owner().is_none(), "there is no round in it");
    }

    #[test]
    fn rounds_are_counted_with_their_magazines() {
        let depot = depot(3, 3);
        let three = || {
            let mut m = full(&depot, 1);
            m.push(2).unwrap();
            m.push(3).unwrap();
            m
        };
        depot.put(three());
        depot.put(full(&depot, 4));
        assert_eq!((depot.full(), depot.rounds_in_full()), (2, 4));
        // What is left is on the stack from the next one on.
        depot.leave(three());
        depot.leave(three());
        assert_eq!((depot.full(), depot.rounds_in_full()), (3, 7));
        assert_eq!(depot.take_full().map(|m| m.len()), Some(3));
        assert_eq!(depot.take_full().map(|m| m.len()), Some(1));
        assert_eq!((depot.full(), depot.rounds_in_full()), (1, 3));
    }

    #[test]
    fn emptied_magazines_are_used_again() {
        let depot = depot(1, 1);
        for r in 0..1000 {
            depot.put(full(&depot, r));
            let mut m = depot.take_full().unwrap();
            assert_eq!(m.pop(), Some(r));
            depot.put(m);
        }
        assert_eq!(depot.made(), 1);
    }
}
