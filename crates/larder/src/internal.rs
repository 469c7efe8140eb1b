//! Parts of the system layer on which larder's own crates are built. They are no part of the interface and may change with any
//! version.
//!
//! `larder_cache` lives here: its locks have their places in the one order of locks, its tables ask for huge pages, its claims of
//! frames pass a barrier for all threads, its helper is a thread as pools and families have, the child of a fork leaves its parent's caches
//! alone, and its pages have numbers within
//! the reservation of their pool.

pub use crate::magazine::MAX_ROUNDS;
pub use crate::os::fork::generation as fork_generation;
pub use crate::os::helper::HelperThread;
pub use crate::os::huge::want as want_huge_pages;
pub use crate::os::lock::{Condvar, Mutex, MutexGuard, RwLock, order};
pub use crate::os::membarrier::{all_threads, register_all_threads};

use crate::os::Span;
use crate::pages::PagePool;

/// The reservation that all pages of a pool come from.
pub fn reservation(pool: &PagePool) -> Span {
    pool.ground().0
}

/// The heap of the whole program as malloc's functions, and the size classes: what the mallocs that can be preloaded, the lab and
/// tests need.
pub mod heap {
    pub use crate::heap::call::{Call, Origin};
    pub use crate::heap::class::{
        CLASSES, GRAIN, MAX_SMALL, SIZES, class_of, class_of_layout, may_stay,
        small_class_of_layout,
    };
    pub use crate::heap::global::marked::{
        alloc, alloc_as, alloc_counted_or, alloc_or, alloc_zeroed, free, free_aligned_as,
        free_sized_as, realloc, try_alloc_aligned, try_alloc_near, try_free, try_free_sized,
        usable_size,
    };
    pub use crate::heap::global::{
        cache_bytes, decay_time, make, ready_stacks, reaper_interval, write_profile,
    };
    pub use crate::os::fork::serve_streams;
    pub use crate::os::say::say;
}
