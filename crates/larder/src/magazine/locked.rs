//! A slot under a lock, for machines without restartable sequences.
//!
//! A thread that gets or puts tries the lock and never waits for it: if it is taken, the thread tries one neighbour and then
//! goes to the depot. So a descheduled holder delays no other thread. The lock carries the fork generation of its holder,
//! so that the child of a fork recognises a lock whose holder does not exist there.

use core::ops::{Deref, DerefMut};

use super::owned::Owned;
use super::slot::Slot;
use super::sync::{AtomicU32, Ordering};
use crate::os::fork;

/// A slot that is held.
#[derive(Debug)]
pub(super) struct Held<'a> {
    slot: Owned<'a>,
    lock: &'a AtomicU32,
}

impl<'a> Deref for Held<'a> {
    type Target = Owned<'a>;
    fn deref(&self) -> &Owned<'a> {
        &self.slot
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.slot
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.lock.store(0, Ordering::Release);
    }
}

/// Takes the slot at `slot` unless it is held.
///
/// # Safety
/// `slot` is a slot that lives for `'a`, and its body is only used through this function.
pub(super) unsafe fn try_hold<'a>(slot: *mut Slot) -> Option<Held<'a>> {
    // SAFETY: the slot lives, and all of it is atomics, which may be shared.
    let lock = unsafe { &(*slot).beside.lock };
    let generation = fork::generation();
    let seen = lock.load(Ordering::Relaxed);
    if seen == generation {
        return None;
    }
    // Zero, or left behind by a thread that this child of a fork does not have.
    lock.compare_exchange(seen, generation, Ordering::Acquire, Ordering::Relaxed)
        .ok()?;
    // SAFETY: every use of the body goes through this function, and only this caller holds the lock now.
    let slot = unsafe { Owned::new(slot) };
    Some(Held { slot, lock })
}

/// A number that differs between threads and costs no system call.
#[cfg(not(loom))]
pub(crate) fn thread_number() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| (&raw const *here as usize).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32)
}

/// Under loom, where a model's threads share one thread of the system: the CPU on which the model runs this one.
#[cfg(loom)]
pub(crate) fn thread_number() -> usize {
    super::sections::cpu()
}
