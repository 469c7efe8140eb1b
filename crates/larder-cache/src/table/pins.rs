//! Blocks that are held without a count: a reader stores in a place of its own handle, a *pin*, which latch it is in
//! by, and writes to nothing that threads share. So two threads that read the same blocks do not take cache lines from
//! each other, and there is no atomic addition.
//!
//! These are hazard pointers (Michael, IEEE TPDS 15(6), 2004). The thread that claims a frame passes their full
//! barrier, for all threads (`membarrier`, as in Goetz et al. for RCU, 2012). A claim asks for that only if the frame
//! is marked with the epoch that is open, so a cache in which blocks come and go never does:
//!
//! - A reader pins, and then looks whether the frame is marked with the present epoch and no writer is in or waits. If
//!   so, the reader is in.
//! - A thread that claims a frame takes its mark, so that no reader enters after that, and finds the readers that came
//!   before in the pins. If the epoch of the mark is open, the thread passes the barrier between the two. If it has
//!   ended, its [end](Pins::close) has passed it.

use std::ptr::NonNull;
use std::sync::{OnceLock, PoisonError};

use larder_base::bitmap::Bitmap;
use larder_base::table::table;

use super::epoch::{CurrentEpochs, Epoch};
use super::latch::Latch;
use crate::limits::{FIRST_ROWS as FIRST, PINS};
use crate::sync::{AtomicU32, AtomicUsize, Mutex, Ordering, barrier};
use larder::internal::order::{Rank, Ranked};

/// Chunks of rows: each has as many as all before it, and as these, so 2^24 handles at a time find one.
const CHUNKS: usize = 22;

/// Holds nothing.
const FREE: usize = 0;

/// The address of the latch by which its handle's owner is in, or [`FREE`]. Only the owner writes others than that.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Pin(AtomicUsize);

impl Pin {
    /// Another thread may have taken the pin's guard along and ended it: what it read it has read.
    #[inline(always)]
    pub(crate) fn is_free(&self) -> bool {
        self.0.load(Ordering::Acquire) == FREE
    }

    /// The address of the latch that the owner has [entered](Self::enter) and not left.
    pub(crate) fn latch(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// A reader enters, if this is true; else it must [leave](Self::leave) at once.
    #[inline(always)]
    pub(crate) fn enter(&self, latch: &Latch, current: &CurrentEpochs) -> bool {
        let at = core::ptr::from_ref(latch).addr();
        self.0.store(at, Ordering::Release);
        barrier::light();
        latch.is_saturated(current.pinned())
    }

    /// A reader goes.
    #[inline(always)]
    pub(crate) fn leave(&self, latch: &Latch) {
        self.0.store(FREE, Ordering::Release);
        barrier::light();
        latch.unpinned();
    }
}

/// Which pin a handle uses: an address, so that the handle may own the cache whose pin it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PinAt(NonNull<Pin>);

// SAFETY: it only names a pin, which threads share.
unsafe impl Send for PinAt {}
// SAFETY: as above.
unsafe impl Sync for PinAt {}

impl PinAt {
    /// # Safety
    /// The [`Pins`] that it is one of are there for `'c`, and where they were.
    #[inline(always)]
    pub(crate) unsafe fn get<'c>(self) -> &'c Pin {
        // SAFETY: the caller says so; a chunk of pins stays as long as the rest.
        unsafe { self.0.as_ref() }
    }
}

impl From<&Pin> for PinAt {
    fn from(pin: &Pin) -> Self {
        Self(NonNull::from(pin))
    }
}

/// A handle's pins.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Row([Pin; PINS]);

impl Row {
    fn new() -> Self {
        Self(core::array::from_fn(|_| Pin(AtomicUsize::new(FREE))))
    }

    /// A pin that holds nothing.
    pub(crate) fn free(&self) -> Option<&Pin> {
        self.0.iter().find(|pin| pin.is_free())
    }

    /// None of its pins holds anything.
    fn is_free(&self) -> bool {
        self.0.iter().all(Pin::is_free)
    }

    fn has(&self, latch: &Latch) -> bool {
        let at = core::ptr::from_ref(latch).addr();
        self.0.iter().any(|pin| pin.0.load(Ordering::Acquire) == at)
    }
}

/// Which rows no handle has.
#[derive(Debug, Default)]
struct Rows {
    /// Those that no handle has.
    free: Bitmap<Vec<u64>>,
    /// How many there are.
    made: usize,
}

impl Ranked for Rows {
    const RANK: Rank = Rank::PinRows;
}

/// The pins of all handles, and how a frame is claimed from the readers that have pinned it.
#[derive(Debug)]
pub(crate) struct Pins {
    chunks: [OnceLock<Box<[Row]>>; CHUNKS],
    rows: Mutex<Rows>,
    /// From this row on, no pin holds anything: so many are looked at for a claim.
    end: AtomicUsize,
    /// The epoch with whose mark blocks can be pinned, or could until a moment ago.
    open: AtomicU32,
    /// Never free: the pin of a handle that has none.
    none: Pin,
    usable: bool,
}

impl Pins {
    /// Blocks cannot be pinned where the system has no barrier.
    pub(crate) fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            rows: Mutex::new(Rows::default()),
            end: AtomicUsize::new(0),
            open: AtomicU32::new(Epoch::NEVER.0),
            none: Pin(AtomicUsize::new(usize::MAX)),
            usable: barrier::register(),
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.usable
    }

    /// A row for a new handle, and its number; none if there is no memory for one. Some of its pins may be taken: by guards that are
    /// there longer than the handle that they are from.
    pub(crate) fn row(&self) -> Option<(u32, &Row)> {
        if !self.usable {
            return None;
        }
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match rows.free.first() {
            Some(number) => number,
            None => self.new_rows(&mut rows)?,
        };
        rows.free.set(number, false);
        // Stored before the row has pins, so that a thread that must find one of them finds this.
        self.end.fetch_max(number + 1, Ordering::Relaxed);
        Some((number as u32, self.at(number)?))
    }

    /// Makes another chunk of rows, when none is free; the first of them.
    fn new_rows(&self, rows: &mut Rows) -> Option<usize> {
        let first = rows.made;
        let (chunk, _) = place(first);
        let chunk = self.chunks.get(chunk)?;
        let len = first.max(FIRST);
        let all = first + len;
        // So that giving them back allocates nothing.
        let words = table(Bitmap::<Vec<u64>>::words(all), 0).ok()?;
        let mut made = Vec::new();
        made.try_reserve_exact(len).ok()?;
        made.extend((0..len).map(|_| Row::new()));
        // Under the lock: no other thread does.
        chunk.set(made.into_boxed_slice()).ok()?;
        rows.free = Bitmap::new(words, all);
        (first..all).for_each(|number| rows.free.set(number, true));
        rows.made = all;
        Some(first)
    }

    /// The next pin for the handle that has this row, or one that is never free.
    pub(crate) fn next(&self, row: Option<u32>) -> PinAt {
        let row = row.and_then(|number| self.at(number as usize));
        row.and_then(Row::free).unwrap_or(&self.none).into()
    }

    fn at(&self, number: usize) -> Option<&Row> {
        let (chunk, at) = place(number);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// A handle is gone.
    pub(crate) fn give_back(&self, number: u32) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.free.set(number as usize, true);
        let mut end = self.end.load(Ordering::Relaxed);
        while end > 0 && rows.free.contains(end - 1) && self.at(end - 1).is_some_and(Row::is_free) {
            end -= 1;
        }
        self.end.store(end, Ordering::Relaxed);
    }

    /// Blocks that are marked with this epoch can be pinned from now on, when [`CurrentEpochs`] says so too.
    pub(crate) fn open(&self, epoch: Epoch) {
        // A thread that reads this knows that the former epoch's end has passed its barrier; so does a thread that
        // reads what `close` stores.
        self.open.store(epoch.0, Ordering::Release);
    }

    /// The epoch has ended: [`CurrentEpochs`] names another one. From now on a claim finds every reader that pinned its block in that epoch.
    pub(crate) fn close(&self) {
        if self.open.load(Ordering::Relaxed) != Epoch::NEVER.0 {
            barrier::heavy();
            self.open.store(Epoch::NEVER.0, Ordering::Release);
        }
    }

    /// The writer enters, unless another thread is in.
    pub(crate) fn try_write(&self, latch: &Latch) -> bool {
        let Some(mark) = latch.try_write() else {
            return false;
        };
        let alone = self.is_alone(mark, latch);
        if !alone {
            latch.step_back();
        }
        alone
    }

    /// The writer comes in, and waits for that if it must, as long as what it waits for is `here`. False if it is not in.
    pub(crate) fn write(&self, latch: &Latch, here: impl Fn() -> bool) -> bool {
        while let Some(mark) = latch.write(&here) {
            if self.is_alone(mark, latch) {
                return true;
            }
            if !here() {
                // The readers are those of the block that came after it, and there is nothing to wait for.
                latch.step_back();
                return false;
            }
            latch.wait_for_pins(&here, || {
                barrier::heavy();
                self.have(latch)
            });
        }
        false
    }

    /// Whether no reader is in by a pin, now that this mark was taken from the latch.
    #[inline]
    fn is_alone(&self, mark: Epoch, latch: &Latch) -> bool {
        mark.0 == 0 || self.looked_for(mark, latch)
    }

    fn looked_for(&self, mark: Epoch, latch: &Latch) -> bool {
        if mark.0 == self.open.load(Ordering::Acquire) {
            barrier::heavy();
        }
        !self.have(latch)
    }

    fn have(&self, latch: &Latch) -> bool {
        let chunks = self.chunks.iter().map_while(OnceLock::get);
        let mut rows = chunks.flatten().take(self.end.load(Ordering::Relaxed));
        rows.any(|row| row.has(latch))
    }

    pub(crate) fn bytes(&self) -> usize {
        let chunks = self.chunks.iter().map_while(OnceLock::get);
        chunks.map(|rows| size_of_val(&**rows)).sum()
    }
}

/// The chunk of a row, and where in it.
fn place(number: usize) -> (usize, usize) {
    match number / FIRST {
        0 => (0, number),
        rest => {
            let chunk = rest.ilog2() as usize + 1;
            (chunk, number - (FIRST << (chunk - 1)))
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn latches(n: usize) -> Vec<Latch> {
        (0..n).map(|_| Latch::default()).collect()
    }

    #[test]
    fn each_handle_has_a_row_of_its_own_and_the_next_one_gets_it_again() {
        let (pins, now, latches) = (Pins::new(), CurrentEpochs::new(), latches(101));
        let rows: Vec<_> = (0..100).map(|_| pins.row().unwrap()).collect();
        for (at, (number, row)) in rows.iter().enumerate() {
            assert!(!row.free().unwrap().enter(&latches[at], &now));
            assert_eq!(*number as usize, at);
        }
        assert!(latches[..100].iter().all(|latch| pins.have(latch)));
        assert!(!pins.have(&latches[100]));
        for (number, row) in rows {
            assert_eq!(row.0.iter().filter(|pin| !pin.is_free()).count(), 1);
            pins.give_back(number);
        }
        let bytes = pins.bytes();
        assert_eq!(bytes, 128 * 64);
        let again: Vec<_> = (0..100).map(|_| pins.row().unwrap().0).collect();
        assert_eq!(again, (0..100).collect::<Vec<_>>());
        assert_eq!(pins.bytes(), bytes);
    }

    /// What a claim costs is given by the handles that there are, not by those that there were.
    #[test]
    fn rows_are_looked_at_up_to_the_last_that_holds_something_or_may() {
        let (pins, now, latch) = (Pins::new(), CurrentEpochs::new(), Latch::default());
        let end = || pins.end.load(Ordering::Relaxed);
        let rows: Vec<_> = (0..50).map(|_| pins.row().unwrap()).collect();
        assert_eq!(end(), 50);
        let held = rows[20].1.free().unwrap();
        held.enter(&latch, &now);
        for (number, _) in &rows[10..] {
            pins.give_back(*number);
        }
        assert!(end() == 21 && pins.have(&latch), "its guard is there yet");
        held.leave(&latch);
        pins.give_back(9);
        assert_eq!(end(), 9);
        assert_eq!(pins.row().unwrap().0, 9);
        assert_eq!(end(), 10);
    }

    #[test]
    fn a_row_has_as_many_pins_as_it_has() {
        let (row, now, latches) = (Row::new(), CurrentEpochs::new(), latches(PINS + 1));
        for latch in &latches[..PINS] {
            row.free().unwrap().enter(latch, &now);
        }
        assert!(row.free().is_none());
        assert!(row.has(&latches[3]) && !row.has(&latches[PINS]));
    }

    /// The frame holds another block, and a reader has pinned that one.
    #[test]
    fn a_writer_gives_up_a_frame_in_which_another_block_is_pinned() {
        let (pins, now, latch) = (Pins::new(), CurrentEpochs::new(), Latch::default());
        let pin = pins.row().unwrap().1.free().unwrap();
        let epoch = Epoch::number(0);
        pins.open(epoch);
        now.set(epoch, epoch);
        latch.mark(epoch);
        assert!(pin.enter(&latch, &now));
        let asked = std::cell::Cell::new(0);
        let here = || {
            asked.set(asked.get() + 1);
            assert!(asked.get() < 100, "it goes round and round");
            false
        };
        assert!(!pins.write(&latch, here));
        pin.leave(&latch);
        assert!(latch.try_read(), "no mark is left");
    }

    /// In a block without a mark no pin is looked for; a marked block is free when it is unpinned.
    #[test]
    fn a_pin_keeps_writers_out_until_its_reader_goes() {
        let (pins, now, latch) = (Pins::new(), CurrentEpochs::new(), Latch::default());
        let row = pins.row().unwrap().1;
        let mine = row.free().unwrap();
        assert!(!mine.enter(&latch, &now));
        mine.leave(&latch);

        let epoch = Epoch::number(0);
        pins.open(epoch);
        now.set(epoch, epoch);
        latch.mark(epoch);
        for ended in [false, true] {
            if ended {
                latch.mark(epoch);
            }
            assert!(mine.enter(&latch, &now));
            if ended {
                now.set(Epoch::NEVER, Epoch::NEVER);
                pins.close();
            }
            assert!(!pins.try_write(&latch));
            assert!(!pins.try_write(&latch), "it is still pinned");
            let other = row.free().unwrap();
            assert!(!other.enter(&latch, &now), "the mark was taken");
            other.leave(&latch);
            std::thread::scope(|threads| {
                let writer = threads.spawn(|| pins.write(&latch, || true));
                std::thread::yield_now();
                mine.leave(&latch);
                writer.join().unwrap();
            });
            assert!(latch.try_write().is_none());
            latch.end_write();
        }
    }
}
