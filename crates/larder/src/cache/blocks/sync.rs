//! Locks and atomics: the real ones, or those that shuttle schedules. (loom looks at the latch alone, which has its own list.)

#[cfg(not(shuttle))]
pub(super) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

#[cfg(shuttle)]
pub(super) use shuttle::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, Ordering},
};
