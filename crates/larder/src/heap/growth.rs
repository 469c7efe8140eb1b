//! Before memory grows, what lies free in magazines is collected.
//!
//! Each class keeps what it once needed, and sizes that are needed in turn would add up. So a heap that finds neither a free
//! object nor pages that are ready first gives back what its magazines hold of classes that seldom exchange them, and what the
//! depot has of these goes, too: what becomes whole slabs serves every class. That costs nothing where memory does not grow.
//! It goes by calls, as jemalloc collects its threads' caches by events, and not by time.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::class::{CLASSES, SIZES};
use super::{Classes, Heap};

/// Bytes of free objects in the magazines of a class from which on they are collected: with fewer, hardly a slab becomes whole.
const LEAST: usize = 16 << 10;
/// Bytes of the longest run of pages for which it makes sense.
const MOST_RUN: usize = 256 << 10;
/// Calls of a heap that found its magazines empty, between two collections. Sizes that are needed in turn, and all of them within
/// fewer calls, are a working set: memory grows until it has them all.
const CALLS: u64 = 32;
/// Exchanges of magazines since the last collection that show that a class needs what it has: to collect it would cost more of them.
const BUSY: u32 = 8;
/// Of how much memory so much must come back for the next collection to be tried at the next growth.
const SHARE: usize = 16;
/// Bytes that memory grows at least after a collection that brought less.
const STEP: usize = 128 << 10;

/// Whether each class is one of which a heap does not need what its magazines hold.
type Quiet = [bool; CLASSES];

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

    fn is_due(&self, held: usize) -> bool {
        held >= self.due.load(Ordering::Relaxed)
    }

    /// Of so many bytes a collection has brought some back.
    fn collected(&self, held: usize, bytes: usize) {
        let next = if bytes >= held / SHARE {
            held
        } else {
            held + (held / SHARE).max(STEP)
        };
        self.due.store(next, Ordering::Relaxed);
    }
}

impl Heap {
    /// Before memory grows by `bytes`: collects what lies free, if it is time for that. See the [module](super::growth).
    #[cold]
    pub(super) fn spare(&self, bytes: usize) {
        let refills = self.account().refills;
        if refills.wrapping_sub(self.account().collected) >= CALLS {
            self.account().collected = refills;
            let quiet = self.take_quiet();
            self.classes()
                .collect_if_due(&quiet, self.stocked(&quiet), || self.give_much(&quiet));
        }
        let pool = self.classes().family().pool();
        pool.make_room(bytes.div_ceil(crate::os::page_size()));
    }

    /// As [`spare`](Self::spare), for a run of pages, if there is none; a longer one than slabs can make room for has to be new.
    pub(super) fn spare_for_run(&self, bytes: usize) {
        let pool = self.classes().family().pool();
        if bytes <= MOST_RUN && !pool.has_ready_span(bytes.div_ceil(crate::os::page_size())) {
            self.spare(bytes);
        }
    }

    /// After a collection of another heap's: what this one has and does not need may serve the next one.
    pub(super) fn follow(&self) {
        self.give_much(&self.take_quiet());
    }

    /// Which classes exchanged magazines seldom since the last call.
    fn take_quiet(&self) -> Quiet {
        core::array::from_fn(|class| core::mem::take(self.exchanges(class)) < BUSY)
    }

    /// Gives the magazines of quiet classes to the depot that hold much.
    fn give_much(&self, quiet: &Quiet) {
        for class in (0..CLASSES).filter(|&class| quiet[class]) {
            self.give_class(class, LEAST.div_ceil(SIZES[class]));
        }
    }

    /// Bytes of free objects of quiet classes.
    fn stocked(&self, quiet: &Quiet) -> usize {
        let classes = (0..CLASSES).filter(|&class| quiet[class]);
        classes
            .map(|class| self.pair(class).len() * SIZES[class])
            .sum()
    }
}

impl Classes {
    /// Collects what lies free of quiet classes, if memory has grown enough or the caller has much of it, which it gives by
    /// `own`.
    fn collect_if_due(&self, quiet: &Quiet, stocked: usize, own: impl FnOnce()) {
        let (growth, pool) = (self.growth(), self.family().pool());
        let held = pool.held_bytes();
        if !growth.is_due(held) && stocked < held / SHARE {
            return;
        }
        growth.collections.fetch_add(1, Ordering::Relaxed);
        own();
        let caches = (0..CLASSES)
            .filter(|&class| quiet[class])
            .filter_map(|class| self.cache(class));
        growth.collected(held, caches.map(|cache| cache.collect()).sum());
    }
}
