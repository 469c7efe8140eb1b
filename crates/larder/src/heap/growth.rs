//! Before memory grows, what lies free in magazines is collected.
//!
//! Each class keeps what it once needed, and sizes that are needed in turn would add up. So a heap that finds neither a free
//! object nor pages that are ready first gives back what its magazines hold of classes that seldom exchange them, and what the
//! depot has of these goes, too: what becomes whole slabs serves every class. That costs nothing where memory does not grow.
//! It goes by calls, as jemalloc collects its threads' caches by events, and not by time.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Of how much memory so much must come back for the next collection to be tried at the next growth.
const SHARE: usize = 16;
/// Bytes that memory grows at least after a collection that brought less.
const STEP: usize = 128 << 10;

/// When memory is looked for in magazines again: when so many bytes are held.
#[derive(Debug)]
pub(super) struct Growth {
    due: AtomicUsize,
    /// Collections so far. It may wrap.
    collections: AtomicU32,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            due: AtomicUsize::new(STEP),
            collections: AtomicU32::new(0),
        }
    }
}

impl Growth {
    pub(super) fn collections(&self) -> u32 {
        self.collections.load(Ordering::Relaxed)
    }

    /// Begins a collection if memory has grown enough, or the caller has much of it.
    pub(super) fn begin_if_due(&self, held: usize, stocked: usize) -> bool {
        let due = held >= self.due.load(Ordering::Relaxed) || stocked >= held / SHARE;
        if due {
            self.collections.fetch_add(1, Ordering::Relaxed);
        }
        due
    }

    /// Of so many bytes a collection has brought some back.
    pub(super) fn collected(&self, held: usize, bytes: usize) {
        let next = if bytes >= held / SHARE {
            held
        } else {
            held + (held / SHARE).max(STEP)
        };
        self.due.store(next, Ordering::Relaxed);
    }
}
