//! The atomics of the lock-free parts: the real ones, or loom's when its model checker runs the tests.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{
    AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;
