//! Before memory grows, what lies free in magazines is collected.
//!
//! Each class keeps what it once needed, and sizes that are needed in turn would add up. So a heap that finds neither a free
//! object nor pages that are ready first gives back what its magazines hold of classes that seldom exchange them, and what the
//! depot has of these goes, too: what becomes whole slabs serves every class. That costs nothing where memory does not grow.
//! It goes by calls, as jemalloc collects its threads' caches by events, and not by time.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// What is held may grow by so much before the next look, and lie in the caller's magazines: a quarter while that is little, since to
/// look costs more than a small program has, and slabs that come and go leave holes; then a sixteenth.
const SMALL_SHARE: usize = 4;
const SMALL: usize = 8 << 20;
const SHARE: usize = 16;
/// And at least.
const STEP: usize = 1 << 20;

fn allowance(held: usize) -> usize {
    (held / SMALL_SHARE).min(SMALL).max(held / SHARE).max(STEP)
}

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
        let due = held >= self.due.load(Ordering::Relaxed) || stocked >= allowance(held);
        if due {
            self.collections.fetch_add(1, Ordering::Relaxed);
        }
        due
    }

    /// Of so many bytes a collection has brought some back.
    pub(super) fn collected(&self, held: usize, bytes: usize) {
        let enough = bytes >= allowance(held);
        let next = if enough { held } else { held + allowance(held) };
        self.due.store(next, Ordering::Relaxed);
    }
}
