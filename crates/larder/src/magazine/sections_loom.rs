//! Stands in for the restartable sections where loom explores the CPU layer: what the kernel promises of them, and no more.
//!
//! A section is alone on its CPU until it commits: another thread that runs on the CPU meanwhile makes it start anew, as if it
//! had begun afterwards. A lock for each CPU models that. Other CPUs see the section's loads and stores one by one. The
//! barrier waits for, or restarts, what is under way on one CPU after the other: it takes and releases each lock.

use core::cell::Cell;
use loom::sync::{Mutex, MutexGuard};

use super::owned::Owned;
use super::slot::{Slot, disabled};
use super::sync::{AtomicUsize, Ordering};
use super::{FILL_MASK, WORD};
use crate::os::rseq::Registration;

pub(super) const NOT_NOW: usize = 1;
pub(super) const DISABLED: usize = 2;
pub(super) const BEYOND: usize = 3;

/// CPUs of the model.
pub(super) const CPUS: usize = 2;

loom::lazy_static! {
    static ref RUNNING: [Mutex<()>; CPUS] = [Mutex::new(()), Mutex::new(())];
}

loom::thread_local! {
    static CPU: Cell<usize> = Cell::new(0);
    static REFUSED: Cell<bool> = Cell::new(false);
}

/// Moves this thread to another CPU.
#[cfg(test)]
pub(super) fn run_on(cpu: usize) {
    CPU.with(|here| here.set(cpu));
}

/// The CPU of this thread.
pub(super) fn cpu() -> usize {
    CPU.with(Cell::get)
}

/// From now on the kernel refuses this thread the barrier.
#[cfg(test)]
pub(super) fn refuse_barrier() {
    REFUSED.with(|refused| refused.set(true));
}

#[must_use]
pub(super) fn restart_sequences() -> bool {
    if REFUSED.with(Cell::get) {
        return false;
    }
    for running in RUNNING.iter() {
        drop(running.lock());
    }
    true
}

/// This thread is in a section.
struct Section {
    cpu: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Section {
    fn enter() -> Self {
        let cpu = cpu();
        Self {
            cpu,
            _alone: RUNNING[cpu].lock().expect("loom ends a model that panics"),
        }
    }

    /// Address of this CPU's slot among those at `slots`.
    fn slot(&self, slots: usize) -> usize {
        slots + self.cpu * size_of::<Slot>()
    }

    /// What may be done with this CPU's slot among those at `slots`.
    ///
    /// # Safety
    /// There are slots, and they are not the disabled ones.
    unsafe fn own(&self, slots: usize) -> Owned<'_> {
        // SAFETY: the caller's promise; that no other thread changes it is what the model checks.
        unsafe { Owned::new(self.slot(slots) as *const Slot) }
    }

    /// The slot through `base`, unless that says that the CPU layer is disabled: such a slot is zero, and no section writes to it.
    /// A load of x86-64 acquires.
    fn own_through(&self, base: &AtomicUsize) -> Option<Owned<'_>> {
        let slots = base.load(Ordering::Acquire);
        // SAFETY: other slots than the disabled ones are live.
        (slots != disabled()).then(|| unsafe { self.own(slots) })
    }
}

/// An exchange of magazines in the slot at `live`.
fn exchange(
    base: &AtomicUsize,
    live: usize,
    end: usize,
    with: impl FnOnce(&mut Owned<'_>) -> Option<usize>,
) -> usize {
    let section = Section::enter();
    if base.load(Ordering::Acquire) != live {
        return DISABLED;
    }
    if section.slot(live) >= end {
        return BEYOND;
    }
    // SAFETY: `live` are the live slots.
    with(&mut unsafe { section.own(live) }).unwrap_or(NOT_NOW)
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sections {
    /// There are none in locked mode.
    idle: bool,
}

#[allow(clippy::missing_safety_doc)]
impl Sections {
    pub(super) fn new(_: Registration) -> Self {
        Self { idle: false }
    }

    pub(super) fn idle() -> Self {
        Self { idle: true }
    }

    pub(super) unsafe fn pop(self, base: &AtomicUsize) -> (usize, usize) {
        if self.idle {
            return (0, 0);
        }
        let section = Section::enter();
        match section.own_through(base).and_then(|mut slot| slot.pop()) {
            // Any top with a round says that there is one.
            Some(round) => (FILL_MASK, round),
            None => (0, 0),
        }
    }

    pub(super) unsafe fn push(self, base: &AtomicUsize, round: usize) -> bool {
        if self.idle {
            return false;
        }
        let section = Section::enter();
        section
            .own_through(base)
            .is_some_and(|mut slot| slot.push(round))
    }

    pub(super) unsafe fn pop_many(self, base: &AtomicUsize, out: *mut usize, n: usize) -> usize {
        // SAFETY: the caller's promise: there is room for one if n is not 0.
        match unsafe { self.pop(base) } {
            (top, round) if n > 0 && top & FILL_MASK != 0 => {
                unsafe { out.write(round) };
                1
            }
            _ => 0,
        }
    }

    pub(super) unsafe fn push_many(
        self,
        base: &AtomicUsize,
        from: *const usize,
        n: usize,
    ) -> usize {
        // SAFETY: the caller's promise: there is one if n is not 0.
        usize::from(n > 0 && unsafe { self.push(base, from.read()) })
    }

    pub(super) unsafe fn replace_empty(
        self,
        base: &AtomicUsize,
        live: usize,
        end: usize,
        new: usize,
    ) -> usize {
        exchange(base, live, end, |slot| slot.replace_empty(new))
    }

    pub(super) unsafe fn replace_full(
        self,
        base: &AtomicUsize,
        live: usize,
        end: usize,
        new: usize,
    ) -> usize {
        exchange(base, live, end, |slot| slot.replace_full(new))
    }

    pub(super) unsafe fn set_if_none(
        self,
        base: &AtomicUsize,
        live: usize,
        end: usize,
        word: usize,
        new: usize,
    ) -> usize {
        exchange(base, live, end, |slot| {
            slot.set_if_none(word / WORD, new).then_some(0)
        })
    }

    pub(super) unsafe fn set_capacity(self, base: &AtomicUsize, live: usize, bytes: usize) -> bool {
        let section = Section::enter();
        base.load(Ordering::Acquire) == live
            // SAFETY: `live` are the live slots.
            && unsafe { section.own(live) }.set_capacity(bytes)
    }
}
