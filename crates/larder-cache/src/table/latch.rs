//! The latch of a block, in one word: any number of readers hold it, or one writer.
//!
//! A reader enters and leaves with one atomic addition each, and nothing else. All other cases (another thread is in
//! the way, or waits) leave that path. A thread that must wait does so at a [`Park`], which all latches of the process
//! share by their addresses.

use std::cell::Cell;

use super::epoch::{Epoch, MARK, MARK_SHIFT, OLD};
use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, Parked};

/// A thread waits, and a thread that leaves wakes it. This is the sign bit, which costs no instruction to test.
const WAITING: u32 = 1 << 31;
/// A writer is in.
const WRITER: u32 = 1 << 30;
/// A writer waits: no reader enters before it.
const WANTED: u32 = 1 << 29;
/// With so many readers the next one is refused, before the count runs into the bits above.
const FULL: u32 = MOST_READERS;
/// Readers at a time.
pub(crate) const MOST_READERS: u32 = 1 << 15;
/// The count of readers.
const READERS: u32 = (1 << MARK_SHIFT) - 1;

/// What a reader has found as it entered.
pub(crate) struct Entry(u32);

impl Entry {
    /// The reader is in, and the block is saturated in this epoch. All that may be in the way is above the count, and one
    /// comparison sees it together with the mark.
    pub(crate) fn is_saturated(&self, epoch: Epoch) -> bool {
        self.0 ^ epoch.0 < FULL
    }
}

/// A block has as many readers as it can have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// Where threads wait that cannot have a latch now.
#[derive(Debug)]
struct Park {
    lock: Mutex<Parked>,
    gone: Condvar,
}

#[cfg(not(any(loom, shuttle)))]
static PARKS: [Park; 16] = [const {
    Park {
        lock: Mutex::new(Parked),
        gone: Condvar::new(),
    }
}; 16];

#[cfg(shuttle)]
shuttle::lazy_static! {
    static ref PARKS: [Park; 1] = [Park { lock: Mutex::new(Parked), gone: Condvar::new() }];
}

#[cfg(loom)]
loom::lazy_static! {
    static ref PARKS: [Park; 1] = [Park { lock: Mutex::new(Parked), gone: Condvar::new() }];
}

/// Readers or a writer. Readers alone make no reader wait, but a writer that waits keeps new readers out.
#[derive(Debug, Default)]
pub(crate) struct Latch(AtomicU32);

impl Latch {
    /// A reader enters, perhaps: what it found says whether it may stay, see [`entered`](Self::entered). 1 atomic addition.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Entry {
        Entry(self.0.fetch_add(1, Ordering::Acquire))
    }

    /// Whether the reader that has found this is in. It is not if a writer is in or waits, nor if there are too many readers.
    pub(crate) fn entered(&self, entry: &Entry) -> bool {
        let free = entry.0 & (WRITER | WANTED | FULL) == 0;
        if !free {
            self.end_read();
        }
        free
    }

    /// A reader enters, if it can at once.
    pub(crate) fn try_read(&self) -> bool {
        self.entered(&self.enter())
    }

    /// The block is saturated in this epoch, and no thread changes it or waits to: for a reader that enters by a
    /// [pin](super::pins). 3 instructions.
    #[inline(always)]
    pub(crate) fn is_saturated(&self, epoch: Epoch) -> bool {
        self.0.load(Ordering::Acquire) ^ epoch.0 < FULL
    }

    /// Says that the block is saturated in this epoch. By one thread at a time.
    pub(crate) fn mark(&self, epoch: Epoch) {
        if self.0.load(Ordering::Relaxed) & MARK != epoch.0 {
            self.change(|now| Some(now & !MARK | epoch.0));
        }
    }

    /// Its mark, if there is one, names no epoch any more. That there was one stays known.
    pub(crate) fn unmark(&self) {
        if self.0.load(Ordering::Relaxed) & MARK != 0 {
            self.change(|now| (now & MARK != 0).then_some(now & !MARK | OLD));
        }
    }

    /// A reader comes in, and waits for that if it must. False if it is not in, because what it waits for is [`here`](Self::wait) no
    /// more.
    ///
    /// # Errors
    /// There are [`MOST_READERS`] already.
    #[cold]
    pub(crate) fn read(&self, here: impl Fn() -> bool) -> Result<bool, TooMany> {
        let enters = Cell::new(true);
        let was = self.wait(0, here, |now| {
            enters.set(now & FULL == 0);
            match enters.get() {
                true => (now & (WRITER | WANTED) == 0).then_some(now + 1),
                false => Some(now),
            }
        });
        match enters.get() {
            true => Ok(was.is_some()),
            false => Err(TooMany),
        }
    }

    /// A reader comes in, unless a writer is there: one of the cache's own, of which there are few. It passes writers that wait.
    pub(crate) fn push(&self) -> bool {
        self.change(|now| (now & WRITER == 0).then_some(now + 1))
            .is_some()
    }

    /// Waits until no writer is there, as long as what the caller waits for is [`here`](Self::wait). False if it is not.
    pub(crate) fn wait_for_writer(&self, here: impl Fn() -> bool) -> bool {
        self.wait(0, here, |now| (now & WRITER == 0).then_some(now))
            .is_some()
    }

    /// A reader goes. 1 atomic subtraction and a jump by the sign it leaves.
    #[inline(always)]
    pub(crate) fn end_read(&self) {
        let left = self.0.fetch_sub(1, Ordering::Release).wrapping_sub(1);
        if (left as i32) < 0 {
            self.left(left);
        }
    }

    /// A reader has left and a thread waits, perhaps for this reader.
    #[cold]
    fn left(&self, now: u32) {
        if now & READERS == 0 {
            self.wake();
        }
    }

    /// A reader that was not counted has left. 2 instructions if no thread waits.
    #[inline(always)]
    pub(crate) fn unpinned(&self) {
        if (self.0.load(Ordering::Relaxed) as i32) < 0 {
            self.wake();
        }
    }

    /// The block may be another one afterwards: its mark goes.
    fn writing(now: u32) -> Option<u32> {
        (now & (WRITER | READERS) == 0).then_some(now & !(WANTED | MARK) | WRITER)
    }

    /// The writer enters, unless another thread is in. Returns the mark that there was: without a mark no reader can
    /// have pinned the block.
    pub(crate) fn try_write(&self) -> Option<Epoch> {
        self.change(Self::writing).map(|was| Epoch(was & MARK))
    }

    /// The writer comes in, and waits for that if it must, as long as what it waits for is [`here`](Self::wait).
    pub(crate) fn write(&self, here: impl Fn() -> bool) -> Option<Epoch> {
        let was = self.change(Self::writing);
        let was = was.or_else(|| self.wait(WANTED, here, Self::writing));
        was.map(|was| Epoch(was & MARK))
    }

    /// Without a writer, and with a mark, since a reader may have pinned the block.
    fn stepping_back(now: u32) -> u32 {
        now & !(WRITER | MARK) | OLD
    }

    /// The writer leaves, since a reader has pinned the block.
    #[cold]
    pub(crate) fn step_back(&self) {
        let was = self.change(|now| Some(Self::stepping_back(now)));
        if was.is_some_and(|was| was & WAITING != 0) {
            self.wake();
        }
    }

    /// [`step_back`](Self::step_back), and waits as long as the block is [`here`](Self::wait) and `pinned`, which is asked when
    /// every reader that [unpins](Self::unpinned) it from then on sees that a writer waits, and again whenever something happens. The
    /// caller comes again in any case.
    #[cold]
    pub(crate) fn wait_for_pins(&self, here: impl Fn() -> bool, pinned: impl Fn() -> bool) {
        let park = self.park();
        let mut lock = park.lock.lock().unwrap_or_else(|e| e.into_inner());
        self.change(|now| Some(Self::stepping_back(now) | WAITING | WANTED));
        // Wakes the threads that waited for this writer. Only once: two writers that both wait for pins would wake each
        // other for ever.
        park.gone.notify_all();
        while here() && pinned() {
            lock = park.gone.wait(lock).unwrap_or_else(|e| e.into_inner());
            self.0.fetch_or(WAITING | WANTED, Ordering::Acquire);
        }
    }

    /// What waiters wait for has changed, although the latch is not let go: each of them looks whether it is still
    /// [`here`](Self::wait). 1 atomic operation if none waits.
    pub(crate) fn changed(&self) {
        // Not a load: either the waiter's mark comes before this and is found, or it comes after, and the waiter finds the change.
        if self.0.fetch_or(0, Ordering::AcqRel) & WAITING != 0 {
            self.wake();
        }
    }

    /// The writer goes.
    pub(crate) fn end_write(&self) {
        let was = self.0.fetch_and(!WRITER, Ordering::Release);
        if was & WAITING != 0 {
            self.wake();
        }
    }

    /// The writer becomes a reader; no thread writes in between.
    pub(crate) fn downgrade(&self) {
        let was = self.0.fetch_sub(WRITER - 1, Ordering::Release);
        if was & WAITING != 0 {
            self.wake();
        }
    }

    fn park(&self) -> &'static Park {
        let at = core::ptr::from_ref(self).addr() / 16;
        &PARKS[at % PARKS.len()]
    }

    /// What it was, if it was changed.
    fn change(&self, to: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let (yes, no) = (Ordering::AcqRel, Ordering::Relaxed);
        self.0.fetch_update(yes, no, to).ok()
    }

    /// Changes the word, as soon as `to` allows it, and returns what it was; or gives up, as soon as what the caller waits for is not
    /// `here` any more. A frame may hold another block before the caller is awake: to wait for that one could be to wait for a thread
    /// that waits for the caller. `here` is asked after the mark is set, and what makes it untrue is said by
    /// [`changed`](Self::changed) or by the end of a write.
    ///
    /// A thread that lets go after the mark was set finds it, and cannot wake before the waiter sleeps, since both have the park's
    /// lock.
    #[cold]
    fn wait(
        &self,
        mark: u32,
        here: impl Fn() -> bool,
        to: impl Fn(u32) -> Option<u32>,
    ) -> Option<u32> {
        let park = self.park();
        let mut lock = park.lock.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            self.0.fetch_or(WAITING | mark, Ordering::Acquire);
            if !here() {
                // Others may have found the mark: they look again, and those that need one set it anew.
                self.0.fetch_and(!(WAITING | WANTED), Ordering::Relaxed);
                drop(lock);
                park.gone.notify_all();
                return None;
            }
            if let Some(was) = self.change(&to) {
                return Some(was);
            }
            lock = park.gone.wait(lock).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// All threads that wait at the park look again; those for which it is too early set their mark anew.
    #[cold]
    fn wake(&self) {
        let park = self.park();
        let lock = park.lock.lock().unwrap_or_else(|e| e.into_inner());
        self.0.fetch_and(!WAITING, Ordering::Relaxed);
        drop(lock);
        park.gone.notify_all();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_alone_and_readers_are_not() {
        let latch = Latch::default();
        assert!(latch.try_read() && latch.try_read());
        assert!(latch.try_write().is_none());
        latch.end_read();
        assert!(latch.try_write().is_none());
        latch.end_read();
        assert!(latch.try_write().is_some());
        assert!(!latch.try_read() && latch.try_write().is_none());
        latch.downgrade();
        assert!(latch.try_read() && latch.try_write().is_none());
    }

    #[test]
    fn a_waiting_writer_keeps_new_readers_out_but_not_those_that_push() {
        let latch = Latch::default();
        assert!(latch.try_read());
        std::thread::scope(|threads| {
            let writer = threads.spawn(|| latch.write(|| true));
            while latch.0.load(Ordering::Relaxed) & WANTED == 0 {
                std::thread::yield_now();
            }
            assert!(!latch.try_read());
            assert!(latch.push());
            latch.end_read();
            latch.end_read();
            writer.join().unwrap();
        });
        assert!(!latch.try_read());
        latch.end_write();
        assert!(latch.try_read());
    }

    #[test]
    fn a_mark_names_its_epoch_until_a_thread_writes() {
        let latch = Latch::default();
        let (one, two) = (Epoch::number(0), Epoch::number(1));
        let saturated = |epoch| {
            let entry = latch.enter();
            assert!(latch.entered(&entry));
            latch.end_read();
            assert_eq!(entry.is_saturated(epoch), latch.is_saturated(epoch));
            entry.is_saturated(epoch)
        };
        assert!(!saturated(one) && !saturated(Epoch::NEVER));
        latch.mark(one);
        assert!(saturated(one) && !saturated(two) && !saturated(Epoch::NEVER));
        latch.mark(two);
        assert!(!saturated(one) && saturated(two));
        assert_eq!(latch.write(|| true), Some(two));
        let entry = latch.enter();
        assert!(!latch.is_saturated(two) && !entry.is_saturated(two) && !latch.entered(&entry));
        latch.end_write();
        assert!(!saturated(two));
        latch.mark(two);
        latch.unmark();
        assert!(!saturated(two));
        assert_eq!(latch.try_write(), Some(Epoch(OLD)), "there was one");
        latch.step_back();
        assert_eq!(latch.try_write(), Some(Epoch(OLD)));
        latch.end_write();
        assert_eq!(latch.try_write(), Some(Epoch(0)));
        let last = Epoch::number(Epoch::COUNT - 1);
        assert!(last != Epoch::NEVER && last != Epoch(OLD));
        assert_eq!(Epoch::number(Epoch::COUNT), one);
    }

    #[test]
    fn writers_that_wait_for_pins_do_not_wake_each_other_again_and_again() {
        use std::sync::atomic::{AtomicBool, AtomicUsize};
        use std::time::Duration;
        let latch = Latch::default();
        let (pinned, asked) = (AtomicBool::new(true), AtomicUsize::new(0));
        let write = || {
            latch.write(|| true).unwrap();
            while pinned.load(Ordering::SeqCst) {
                latch.wait_for_pins(
                    || true,
                    || {
                        asked.fetch_add(1, Ordering::SeqCst);
                        pinned.load(Ordering::SeqCst)
                    },
                );
                latch.write(|| true).unwrap();
            }
            latch.end_write();
        };
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(write);
            }
            while asked.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
            // Long enough for thousands of turns, if they took any.
            std::thread::sleep(Duration::from_millis(50));
            pinned.store(false, Ordering::SeqCst);
            latch.wake();
        });
        assert!(asked.into_inner() < 100);
    }

    /// A waiter that gives up takes its mark away, and those that waited for its sake come in.
    #[test]
    fn waiters_give_up_what_is_not_here_any_more() {
        use std::sync::atomic::AtomicU64;
        let (latch, key) = (Latch::default(), AtomicU64::new(1));
        let here = || key.load(Ordering::Relaxed) == 1;
        assert!(latch.try_write().is_some());
        std::thread::scope(|threads| {
            let writers = [0; 2].map(|_| threads.spawn(|| latch.write(here)));
            let (latch, here) = (&latch, &here);
            let reader = threads.spawn(move || latch.read(here));
            let other = threads.spawn(move || latch.wait_for_writer(here));
            while latch.0.load(Ordering::Relaxed) & WANTED == 0 {
                std::thread::yield_now();
            }
            key.store(2, Ordering::Relaxed);
            latch.changed();
            // Still held by the writer of what is there now.
            for writer in writers {
                assert_eq!(writer.join().unwrap(), None);
            }
            assert_eq!(reader.join().unwrap(), Ok(false));
            assert!(!other.join().unwrap());
        });
        latch.end_write();
        assert!(latch.try_read(), "no mark is left");
    }

    #[test]
    fn the_count_of_readers_does_not_run_over() {
        let latch = Latch(AtomicU32::new(FULL));
        assert!(!latch.try_read());
        assert_eq!(latch.read(|| true), Err(TooMany));
        assert!(latch.push(), "one of the cache's own");
        latch.end_read();
        latch.end_read();
        assert!(latch.try_read());
    }
}
