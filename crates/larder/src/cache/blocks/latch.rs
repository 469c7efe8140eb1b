//! One word that says who has a block: any number of readers, or one writer.
//!
//! A reader comes and goes with one atomic addition each, and nothing else. Everybody else's cases (somebody is in the way, or
//! waits) leave that path. Who must wait does so at a [`Park`], which all latches of the process share by their addresses.

use std::cell::Cell;

#[cfg(not(loom))]
use super::sync::{AtomicU32, Condvar, Mutex, Ordering};

#[cfg(loom)]
use loom::sync::{
    Condvar, Mutex,
    atomic::{AtomicU32, Ordering},
};

/// Somebody waits, and whoever goes wakes him. The sign, which the processor tests for nothing.
const WAITING: u32 = 1 << 31;
/// Somebody changes the block.
const WRITER: u32 = 1 << 30;
/// Somebody waits to change it: no reader comes in before.
const WANTED: u32 = 1 << 29;
/// The [`Epoch`] in which the block was last found settled; 0 if it was in none since the frame was last somebody's alone.
const MARK: u32 = LAST_MARK << MARK_SHIFT;
/// In place of an epoch's number that comes again.
const OLD: u32 = (LAST_MARK - 1) << MARK_SHIFT;
const MARK_SHIFT: u32 = 16;
const LAST_MARK: u32 = (1 << 13) - 1;
/// With so many readers the next one is refused, before the count runs into the bits above.
const FULL: u32 = MOST_READERS;
/// Readers at a time.
pub(super) const MOST_READERS: u32 = 1 << 15;
/// The count of readers.
const READERS: u32 = (1 << MARK_SHIFT) - 1;

/// A time in which nothing but uses happens, in bits of a latch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch(u32);

impl Epoch {
    /// How many there are before the first one comes again.
    pub(super) const COUNT: u32 = LAST_MARK - 3;

    /// No latch is marked with it.
    pub(super) const NEVER: Self = Self(MARK);

    /// Number `at` of all epochs, modulo [`COUNT`](Self::COUNT).
    pub(super) const fn number(at: u32) -> Self {
        Self((1 + at % Self::COUNT) << MARK_SHIFT)
    }

    /// The one of these bits.
    pub(super) fn of(bits: u32) -> Self {
        Self(bits)
    }

    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        self.0
    }
}

/// What a reader has found who came in.
pub(super) struct Entry(u32);

impl Entry {
    /// He is in, and the block is settled in this epoch. All that may be in the way is above the count, and one comparison sees it
    /// together with the mark.
    pub(super) fn is_settled(&self, epoch: Epoch) -> bool {
        self.0 ^ epoch.0 < FULL
    }
}

/// Where those wait who cannot have a latch now.
#[derive(Debug)]
struct Park {
    lock: Mutex<()>,
    gone: Condvar,
}

#[cfg(not(any(loom, shuttle)))]
static PARKS: [Park; 16] = [const {
    Park {
        lock: Mutex::new(()),
        gone: Condvar::new(),
    }
}; 16];

#[cfg(shuttle)]
shuttle::lazy_static! {
    static ref PARKS: [Park; 1] = [Park { lock: Mutex::new(()), gone: Condvar::new() }];
}

#[cfg(loom)]
loom::lazy_static! {
    static ref PARKS: [Park; 1] = [Park { lock: Mutex::new(()), gone: Condvar::new() }];
}

/// Readers or a writer. Nobody waits for a reader's sake alone: a writer who waits keeps new readers out.
#[derive(Debug, Default)]
pub(super) struct Latch(AtomicU32);

impl Latch {
    /// A reader comes in, perhaps: what he found says whether he may stay, see [`entered`](Self::entered). 1 atomic addition.
    #[inline(always)]
    pub(super) fn enter(&self) -> Entry {
        Entry(self.0.fetch_add(1, Ordering::Acquire))
    }

    /// Is a reader in, who has found this? Not if somebody writes or waits to, and not if there are too many.
    pub(super) fn entered(&self, entry: &Entry) -> bool {
        let free = entry.0 & (WRITER | WANTED | FULL) == 0;
        if !free {
            self.end_read();
        }
        free
    }

    /// A reader comes in, if he can at once.
    pub(super) fn try_read(&self) -> bool {
        self.entered(&self.enter())
    }

    /// The block is settled in this epoch, and nobody changes it or waits to: for who comes in by a [pin](super::pins). 3
    /// instructions.
    #[inline(always)]
    pub(super) fn is_settled(&self, epoch: Epoch) -> bool {
        self.0.load(Ordering::Acquire) ^ epoch.0 < FULL
    }

    /// Says that the block is settled in this epoch. By one thread at a time.
    pub(super) fn mark(&self, epoch: Epoch) {
        if self.0.load(Ordering::Relaxed) & MARK != epoch.0 {
            self.change(|now| Some(now & !MARK | epoch.0));
        }
    }

    /// Its mark, if there is one, names no epoch any more. That there was one stays known.
    pub(super) fn unmark(&self) {
        if self.0.load(Ordering::Relaxed) & MARK != 0 {
            self.change(|now| (now & MARK != 0).then_some(now & !MARK | OLD));
        }
    }

    /// A reader comes in, and waits for that if he must. False if he is not in, because there are [`MOST_READERS`] already. With
    /// `push` he passes them, and writers who wait themselves, as somebody may who holds the block already.
    #[cold]
    pub(super) fn read(&self, push: bool) -> bool {
        let (stop, full) = if push {
            (WRITER, 0)
        } else {
            (WRITER | WANTED, FULL)
        };
        let enters = Cell::new(true);
        self.wait(0, |now| {
            enters.set(now & full == 0);
            match enters.get() {
                true => (now & stop == 0).then_some(now + 1),
                false => Some(now),
            }
        });
        enters.get()
    }

    /// A reader goes. 1 atomic subtraction and a jump by the sign it leaves.
    #[inline(always)]
    pub(super) fn end_read(&self) {
        let left = self.0.fetch_sub(1, Ordering::Release).wrapping_sub(1);
        if (left as i32) < 0 {
            self.left(left);
        }
    }

    /// A reader has gone and somebody waits: perhaps for him.
    #[cold]
    fn left(&self, now: u32) {
        if now & READERS == 0 {
            self.wake();
        }
    }

    /// A reader who was not counted has gone. 2 instructions if nobody waits.
    #[inline(always)]
    pub(super) fn unpinned(&self) {
        if (self.0.load(Ordering::Relaxed) as i32) < 0 {
            self.wake();
        }
    }

    /// The block may be another one afterwards: its mark goes.
    fn writing(now: u32) -> Option<u32> {
        (now & (WRITER | READERS) == 0).then_some(now & !(WANTED | MARK) | WRITER)
    }

    /// The writer comes in, unless somebody is there. Returns the mark that there was: without any nobody can have pinned the block.
    pub(super) fn try_write(&self) -> Option<Epoch> {
        self.change(Self::writing).map(|was| Epoch(was & MARK))
    }

    /// The writer comes in, and waits for that if he must.
    pub(super) fn write(&self) -> Epoch {
        let was = self.change(Self::writing);
        Epoch(was.unwrap_or_else(|| self.wait(WANTED, Self::writing)) & MARK)
    }

    /// Without a writer, and with a mark, since somebody may have pinned the block.
    fn stepping_back(now: u32) -> u32 {
        now & !(WRITER | MARK) | OLD
    }

    /// The writer goes, since somebody has pinned the block.
    #[cold]
    pub(super) fn step_back(&self) {
        let was = self.change(|now| Some(Self::stepping_back(now)));
        if was.is_some_and(|was| was & WAITING != 0) {
            self.wake();
        }
    }

    /// [`step_back`](Self::step_back), and waits as long as the block is `pinned`, which is asked when everybody who
    /// [unpins](Self::unpinned) it from then on sees that somebody waits, and again whenever something happens.
    #[cold]
    pub(super) fn wait_for_pins(&self, pinned: impl Fn() -> bool) {
        let park = self.park();
        let mut lock = park.lock.lock().unwrap_or_else(|e| e.into_inner());
        self.change(|now| Some(Self::stepping_back(now) | WAITING | WANTED));
        // Those who waited for this writer. Only once: two writers who both wait for pins would wake each other for ever.
        park.gone.notify_all();
        while pinned() {
            lock = park.gone.wait(lock).unwrap_or_else(|e| e.into_inner());
            self.0.fetch_or(WAITING | WANTED, Ordering::Relaxed);
        }
    }

    /// The writer goes.
    pub(super) fn end_write(&self) {
        let was = self.0.fetch_and(!WRITER, Ordering::Release);
        if was & WAITING != 0 {
            self.wake();
        }
    }

    /// The writer becomes a reader; nobody writes in between.
    pub(super) fn downgrade(&self) {
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

    /// Who goes after the mark was set finds it, and cannot wake before the waiter sleeps, since both have the park's lock.
    #[cold]
    fn wait(&self, mark: u32, to: impl Fn(u32) -> Option<u32>) -> u32 {
        let park = self.park();
        let mut lock = park.lock.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            self.0.fetch_or(WAITING | mark, Ordering::Relaxed);
            if let Some(was) = self.change(&to) {
                return was;
            }
            lock = park.gone.wait(lock).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// All who wait at the park look again; those for whom it is too early set their mark anew.
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
    fn who_waits_to_write_keeps_new_readers_out_but_not_those_who_push() {
        let latch = Latch::default();
        assert!(latch.try_read());
        std::thread::scope(|threads| {
            let writer = threads.spawn(|| latch.write());
            while latch.0.load(Ordering::Relaxed) & WANTED == 0 {
                std::thread::yield_now();
            }
            assert!(!latch.try_read());
            latch.read(true);
            latch.end_read();
            latch.end_read();
            writer.join().unwrap();
        });
        assert!(!latch.try_read());
        latch.end_write();
        assert!(latch.try_read());
    }

    #[test]
    fn a_mark_names_its_epoch_until_somebody_writes() {
        let latch = Latch::default();
        let (one, two) = (Epoch::number(0), Epoch::number(1));
        let settled = |epoch| {
            let entry = latch.enter();
            assert!(latch.entered(&entry));
            latch.end_read();
            assert_eq!(entry.is_settled(epoch), latch.is_settled(epoch));
            entry.is_settled(epoch)
        };
        assert!(!settled(one) && !settled(Epoch::NEVER));
        latch.mark(one);
        assert!(settled(one) && !settled(two) && !settled(Epoch::NEVER));
        latch.mark(two);
        assert!(!settled(one) && settled(two));
        assert_eq!(latch.write(), two);
        let entry = latch.enter();
        assert!(!latch.is_settled(two) && !entry.is_settled(two) && !latch.entered(&entry));
        latch.end_write();
        assert!(!settled(two));
        latch.mark(two);
        latch.unmark();
        assert!(!settled(two));
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
    fn writers_who_wait_for_pins_do_not_wake_each_other_again_and_again() {
        use std::sync::atomic::{AtomicBool, AtomicUsize};
        use std::time::Duration;
        let latch = Latch::default();
        let (pinned, asked) = (AtomicBool::new(true), AtomicUsize::new(0));
        let write = || {
            latch.write();
            while pinned.load(Ordering::SeqCst) {
                latch.wait_for_pins(|| {
                    asked.fetch_add(1, Ordering::SeqCst);
                    pinned.load(Ordering::SeqCst)
                });
                latch.write();
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

    #[test]
    fn the_count_of_readers_does_not_run_over() {
        let latch = Latch(AtomicU32::new(FULL));
        assert!(!latch.try_read() && !latch.read(false));
        assert!(latch.read(true), "the cache's own still come in");
        latch.end_read();
        latch.end_read();
        assert!(latch.try_read());
    }
}
