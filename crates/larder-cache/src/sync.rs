//! Locks, atomics and barriers: the real ones, or those of loom or shuttle.

use larder::internal::order::{Rank, Ranked};

#[cfg(not(any(loom, shuttle)))]
pub(crate) use larder::internal::{Condvar, Mutex, MutexGuard};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::{
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    thread::yield_now,
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread::yield_now,
};

#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread::yield_now,
};

/// What threads park under guards nothing but their sleep.
#[derive(Debug)]
pub(crate) struct Parked;

impl Ranked for Parked {
    const RANK: Rank = Rank::LatchPark;
}

/// One sync of a file at a time; it guards nothing.
#[derive(Debug, Default)]
pub(crate) struct Syncing;

impl Ranked for Syncing {
    const RANK: Rank = Rank::FileSync;
}

/// The thread that maintains a cache, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Helped(pub(crate) Option<larder::internal::HelperThread>);

impl Ranked for Helped {
    const RANK: Rank = Rank::Reaper;
}

/// Reads that wait for a thread of the cache.
#[derive(Debug, Default)]
pub(crate) struct Queued<T>(pub(crate) T);

impl<T> Ranked for Queued<T> {
    const RANK: Rank = Rank::Reaper;
}

/// Lets time pass; for models, other threads.
pub(crate) fn rest(time: std::time::Duration) {
    #[cfg(not(any(loom, shuttle)))]
    std::thread::sleep(time);
    #[cfg(any(loom, shuttle))]
    {
        let _ = time;
        yield_now();
    }
}

/// Starts a thread that ends by itself.
///
/// # Errors
/// When no thread can be started.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop)
}

#[cfg(any(loom, shuttle))]
pub(crate) fn spawn(_name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    #[cfg(loom)]
    loom::thread::spawn(work);
    #[cfg(shuttle)]
    shuttle::thread::spawn(work);
    Ok(())
}

/// What a storage that comes with the cache keeps behind its lock.
#[derive(Debug, Default)]
pub(crate) struct Stored<T>(pub(crate) T);

impl<T> Ranked for Stored<T> {
    const RANK: Rank = Rank::Storage;
}

/// A barrier in two halves: a thread that passes [`light`](barrier::light) has passed a full barrier whenever another thread
/// passes [`heavy`](barrier::heavy). The light one keeps the compiler from moving memory accesses and is no instruction.
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod barrier {
    pub(crate) use larder::internal::{all_threads as heavy, register_all_threads as register};

    #[inline(always)]
    pub(crate) fn light() {
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    }
}

/// loom knows full barriers only; shuttle's threads see all stores at once.
#[cfg(any(loom, shuttle))]
pub(crate) mod barrier {
    pub(crate) fn register() -> bool {
        true
    }

    pub(crate) fn heavy() {
        #[cfg(loom)]
        loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
    }

    pub(crate) fn light() {
        heavy();
    }
}
