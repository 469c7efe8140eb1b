//! The protocol between threads that free without a lock and threads that must know whether an identifier is free.
//!
//! Every identifier has a cell. The thread that takes it out of a magazine stores `LIVE`; the thread that frees it
//! exchanges `LIVE` for `FREE`, and of two threads that try only one can. After the exchange the freer looks at the
//! [`Gate`]: while it is down the identifier goes to a magazine, while it is up to the map, under the map's lock.
//!
//! A thread that wants to report 'full' holds the map's lock, raises the gate, and reads all cells. By Dekker's
//! argument each free is on one side: either its exchange came before the cell was read, and then the cell reads `FREE`
//! and the identifier is known to be on its way; or it came after, and then the freer sees the gate up and waits for
//! the lock. So if as many cells are free as the map has free identifiers, then at the end of the reading every other
//! identifier is allocated, and the frees that wait for the lock happen after that moment. Nothing can come from the
//! magazines later, because nothing is in them; and as long as the gate stays up nothing will be.
//!
//! Where identifiers lie in place ([`Shape::InPlace`](super::Shape::InPlace)) the freer only exchanges `LIVE` for
//! `UNOWNED` while the gate is down: the cell itself is the place where the identifier lies. Only the holder of the lock
//! changes a `UNOWNED` cell, so it may return to the map what any thread has freed. A freer that sees the gate up takes
//! the lock and finds its identifier still in its cell, or in the map already; both are right.

use super::sync::{AtomicU8, AtomicU32, Ordering, fence};

/// In the map, in a magazine, or on its way between them.
pub(super) const FREE: u8 = 0;
/// Allocated.
pub(super) const LIVE: u8 = 1;
/// Free, and nowhere but in its cell.
pub(super) const UNOWNED: u8 = 2;
/// Allocated, and its owner is about to free it together with others, or none of them.
pub(super) const LEAVING: u8 = 3;
/// Free, and nowhere but in its cell, because the map had no memory to take it back. Only the holder of the lock changes it: a
/// cell that reads `FREE` may be that of a thread that waits for the lock to give it back.
pub(super) const ORPHAN: u8 = 4;

/// Whether an identifier whose cell reads so is in use.
#[inline]
pub(super) fn is_in_use(state: u8) -> bool {
    state & LIVE != 0
}

/// Says whether freed identifiers go to magazines or to the map.
#[derive(Debug)]
pub(super) struct Gate(AtomicU32);

impl Gate {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether freed identifiers may go to magazines. To be asked after [`leave`].
    #[inline]
    pub(super) fn is_down(&self) -> bool {
        // loom knows sequential consistency of fences only. On x86-64 a locked exchange came before, which is one.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        self.0.load(Ordering::SeqCst) == 0
    }

    /// From here on every free goes to the map.
    pub(super) fn raise(&self) {
        self.0.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Magazines may be used again.
    pub(super) fn lower(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

/// Marks an identifier that the caller alone holds as allocated.
#[inline]
pub(super) fn enter(cell: &AtomicU8) {
    cell.store(LIVE, Ordering::Release);
}

/// Frees an identifier, whose cell then reads `FREE` or `UNOWNED`; false when it is not allocated, or another thread was
/// faster.
#[inline]
pub(super) fn leave(cell: &AtomicU8, state: u8) -> bool {
    cell.compare_exchange(LIVE, state, Ordering::SeqCst, Ordering::Relaxed)
        .is_ok()
}

/// Cells that are free. Under the map's lock and with the gate up; see above for what it then means.
pub(super) fn vacant(cells: &[AtomicU8]) -> u64 {
    fence(Ordering::SeqCst);
    cells
        .iter()
        .map(|cell| u64::from(!is_in_use(cell.load(Ordering::SeqCst))))
        .sum()
}
