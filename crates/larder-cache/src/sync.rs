//! Locks, atomics and barriers: the real ones, or those that shuttle schedules. (loom looks at the latch and the pins alone, which
//! have lists of their own.)

use std::io;

use super::batch::{ReadPart, WritePart};
use super::inner::Inner;
use super::key::FileId;
use super::storage::Storage;
use larder::internal::order::{Rank, Ranked, calls};

#[cfg(not(shuttle))]
pub(super) use std::thread::yield_now;

#[cfg(shuttle)]
pub(super) use shuttle::thread::yield_now;

#[cfg(not(shuttle))]
pub(super) use larder::internal::{Condvar, Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

#[cfg(shuttle)]
pub(super) use shuttle::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

impl Ranked for Inner {
    const RANK: Rank = Rank::BlockCache;
}

/// What threads park under guards nothing but their sleep.
#[derive(Debug)]
pub(super) struct Parked;

impl Ranked for Parked {
    const RANK: Rank = Rank::LatchPark;
}

/// One sync at a time; it guards nothing.
#[derive(Debug, Default)]
pub(super) struct Syncing;

impl Ranked for Syncing {
    const RANK: Rank = Rank::FileSync;
}

/// What a storage that comes with the cache keeps behind its lock.
#[derive(Debug, Default)]
pub(super) struct Stored<T>(pub(super) T);

impl<T> Ranked for Stored<T> {
    const RANK: Rank = Rank::Storage;
}

/// The storage below a cache. Its calls may take any time, so they are made with no lock of the cache but that of a sync.
pub(super) struct Below<S>(pub(super) S);

impl<S: Storage> Below<S> {
    fn call<T>(&self, f: impl FnOnce(&S) -> T) -> T {
        let _outside = calls("a storage", Rank::BlockCache);
        f(&self.0)
    }
}

impl<S: Storage> Storage for Below<S> {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.call(|storage| storage.read(file, offset, into))
    }
    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.call(|storage| storage.write(file, offset, from))
    }
    fn sync(&self, file: FileId) -> io::Result<()> {
        self.call(|storage| storage.sync(file))
    }
    fn read_many(&self, parts: &mut [ReadPart<'_>]) {
        self.call(|storage| storage.read_many(parts));
    }
    fn write_many(&self, parts: &mut [WritePart<'_>]) {
        self.call(|storage| storage.write_many(parts));
    }
}

/// A barrier in two halves: a thread that passes [`light`](barrier::light) has passed a full barrier whenever another thread
/// passes [`heavy`](barrier::heavy). The light one keeps the compiler from moving memory accesses and is no instruction.
#[cfg(not(any(loom, shuttle)))]
pub(super) mod barrier {
    pub(in super::super) use larder::internal::{
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
