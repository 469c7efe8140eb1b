//! What the checks of the program's heap need of the process: to look at all blocks when the program ends, and at touched guard
//! pages.

use core::any::Any;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::checked::inside;
use super::fault::{self, Fault};
use crate::heap::debug::{DebugHeap, Here};
use crate::heap::{Checker, stderr};

/// The program's heap, once it has its place.
static HEAP: AtomicPtr<DebugHeap> = AtomicPtr::new(core::ptr::null_mut());

/// The program's heap, if it is checked.
pub(super) fn heap() -> Option<&'static DebugHeap> {
    // SAFETY: null, or what `begin` got, which stays.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }
}

/// A fault: whether it was one of a guard page, after which the options say that the process goes on.
fn met(fault: &Fault) -> bool {
    heap().is_some_and(|heap| inside(|| heap.touched(fault.address, fault.ip)))
}

/// Begins to look. The look at the end is registered before the program's own handlers, so it comes after them.
pub(super) fn begin(checker: &'static dyn Checker) {
    extern "C" fn end() {
        if let Some(heap) = heap() {
            let here = Here::new();
            inside(|| heap.at_exit(&here));
        }
    }
    let checker: &dyn Any = checker;
    if let Some(heap) = checker.downcast_ref::<DebugHeap>() {
        HEAP.store(core::ptr::from_ref(heap).cast_mut(), Ordering::Release);
        stderr::keep();
        if heap.options().guard != 0 {
            fault::watch(met);
        }
        // SAFETY: a plain function that stays. A refusal (no memory) only means that the blocks are not looked at.
        unsafe { libc::atexit(end) };
    }
}
