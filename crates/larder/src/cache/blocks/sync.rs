//! Locks, atomics and barriers: the real ones, or those that shuttle schedules. (loom looks at the latch and the pins alone, which
//! have lists of their own.)

#[cfg(not(shuttle))]
pub(super) use std::thread::yield_now;

#[cfg(shuttle)]
pub(super) use shuttle::thread::yield_now;

#[cfg(not(shuttle))]
pub(super) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

#[cfg(shuttle)]
pub(super) use shuttle::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

/// One barrier of two: who passes [`light`](barrier::light) has passed a full one whenever another thread passes
/// [`heavy`](barrier::heavy). The light one keeps the compiler from moving memory accesses and is no instruction.
#[cfg(not(any(loom, shuttle)))]
pub(super) mod barrier {
    pub(in super::super) use crate::os::membarrier::{
        all_threads as heavy, register_all_threads as register,
    };

    #[inline(always)]
    pub(in super::super) fn light() {
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    }
}

/// loom knows full barriers only; shuttle's threads see all stores at once.
#[cfg(any(loom, shuttle))]
pub(super) mod barrier {
    pub(in super::super) fn register() -> bool {
        true
    }

    pub(in super::super) fn heavy() {
        #[cfg(loom)]
        loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
    }

    pub(in super::super) fn light() {
        heavy();
    }
}
