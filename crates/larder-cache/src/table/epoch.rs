//! Epochs: times in which nothing but uses happens to a cache.

use crate::sync::{AtomicU32, Ordering};

/// Where a latch has the epoch in which its block was last found saturated; 0 if it was in none since a thread last had the
/// frame alone.
pub(super) const MARK: u32 = LAST_MARK << MARK_SHIFT;
/// In place of an epoch's number that comes again.
pub(super) const OLD: u32 = (LAST_MARK - 1) << MARK_SHIFT;
/// Bits of a latch below the mark.
pub(super) const MARK_SHIFT: u32 = 16;
const LAST_MARK: u32 = (1 << 13) - 1;

/// A time in which nothing but uses happens, in bits of a latch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(pub(super) u32);

impl Epoch {
    /// How many there are before the first one comes again.
    pub(crate) const COUNT: u32 = LAST_MARK - 3;

    /// No latch is marked with it.
    pub(crate) const NEVER: Self = Self(MARK);

    /// Number `at` of all epochs, modulo [`COUNT`](Self::COUNT).
    pub(crate) const fn number(at: u32) -> Self {
        Self((1 + at % Self::COUNT) << MARK_SHIFT)
    }
}

/// The epochs that are open, for all threads to read. Alone in its cache line, since every hit reads it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CurrentEpochs {
    /// Whose mark says that a block is saturated, and that it may be pinned.
    pinned: AtomicU32,
    /// Whose mark says that it is saturated.
    counted: AtomicU32,
}

impl CurrentEpochs {
    pub(crate) fn new() -> Self {
        Self {
            pinned: AtomicU32::new(Epoch::NEVER.0),
            counted: AtomicU32::new(Epoch::NEVER.0),
        }
    }

    #[inline(always)]
    pub(crate) fn pinned(&self) -> Epoch {
        Epoch(self.pinned.load(Ordering::Relaxed))
    }

    pub(crate) fn counted(&self) -> Epoch {
        Epoch(self.counted.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, pinned: Epoch, counted: Epoch) {
        self.pinned.store(pinned.0, Ordering::Relaxed);
        self.counted.store(counted.0, Ordering::Relaxed);
    }
}
