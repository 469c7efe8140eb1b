//! The epochs that are now, for all threads to read.

use super::latch::Epoch;

#[cfg(not(loom))]
use super::sync::{AtomicU32, Ordering};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

/// Alone in its cache line, since every hit reads it.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Now {
    /// Whose mark says that a block is settled, and that it may be pinned.
    pinned: AtomicU32,
    /// Whose mark says that it is settled.
    counted: AtomicU32,
}

impl Now {
    pub(super) fn new() -> Self {
        Self {
            pinned: AtomicU32::new(Epoch::NEVER.bits()),
            counted: AtomicU32::new(Epoch::NEVER.bits()),
        }
    }

    #[inline(always)]
    pub(super) fn pinned(&self) -> Epoch {
        Epoch::of(self.pinned.load(Ordering::Relaxed))
    }

    pub(super) fn counted(&self) -> Epoch {
        Epoch::of(self.counted.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, pinned: Epoch, counted: Epoch) {
        self.pinned.store(pinned.bits(), Ordering::Relaxed);
        self.counted.store(counted.bits(), Ordering::Relaxed);
    }
}
