//! The atomics of the lock-free parts: the real ones, or loom's when its model checker runs the tests.

#[cfg(all(test, not(loom)))]
pub(crate) use core::sync::atomic::AtomicU32;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::AtomicU32;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
