//! The primitives of the space: the real ones, loom's for the protocol of states and gate, or a model of all of them for
//! shuttle.

#[cfg(not(any(loom, shuttle)))]
pub(super) use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};
#[cfg(shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

#[cfg(not(shuttle))]
pub(super) use crate::magazine::Stock;
#[cfg(not(shuttle))]
pub(super) use crate::os::lock::{Guard, Lock};
#[cfg(not(shuttle))]
pub(super) use std::thread;

#[cfg(shuttle)]
pub(super) use super::model::{Guard, Lock, Stock};
#[cfg(shuttle)]
pub(super) use shuttle::thread;

/// Identifiers that a CPU's magazine holds, and that a batch has at most: as many as cells in a cache line.
pub(super) const BATCH: usize = if cfg!(shuttle) { 2 } else { 64 };
