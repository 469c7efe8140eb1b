//! The program's sampled blocks between [guard pages](crate::heap::guards), where the environment asks for them.
//!
//! No magazine takes such a block, nor has the heap its address, so its free comes to the slow path for what is no object of a class.
//! Without guards that path has one load more.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use super::checked::{UNSAID, inside};
use super::fault::{self, Fault};
use super::mode::{Place, environment};
use super::slot::{self, Stage};
use crate::heap::guards::Guards;
use crate::heap::profile::INTERVALS;
use crate::heap::{Call, stderr};
use crate::os::errno::KeptErrno;
use crate::os::say::{say, say_ignored};

/// Mean bytes between guarded blocks.
const SAMPLES: &core::ffi::CStr = c"LARDER_GUARD_SAMPLES";
/// Those that `on` means.
const INTERVAL: usize = 2 << 20;

static PLACE: Place<MaybeUninit<Guards>> = Place(UnsafeCell::new(MaybeUninit::uninit()));
touched_at_start! {
    static GUARDS: AtomicPtr<Guards> = AtomicPtr::new(null_mut());
}

fn guards() -> Option<&'static Guards> {
    // SAFETY: null, or the place, which was written before.
    unsafe { GUARDS.load(Ordering::Acquire).as_ref() }
}

/// The guards, if an address is one of theirs.
#[inline]
fn of(object: NonNull<u8>) -> Option<&'static Guards> {
    guards().filter(|guards| guards.has(object.as_ptr() as usize))
}

/// Begins if the environment asks for it, before the heap is known to any other thread: the mean bytes between guarded blocks.
pub(super) fn begin(checked: bool) -> Option<usize> {
    let interval = chosen()?;
    if checked {
        say(format_args!(
            "LARDER_GUARD_SAMPLES: there are no samples in debug and hardened mode"
        ));
        return None;
    }
    let Ok(made) = Guards::new() else {
        say(format_args!(
            "LARDER_GUARD_SAMPLES: there is no memory for guard pages; going on without them"
        ));
        return None;
    };
    stderr::keep();
    // SAFETY: only the thread that makes the heap comes here, and no thread reads the place before the pointer is stored.
    let made = unsafe { (*PLACE.0.get()).write(made) };
    GUARDS.store(made, Ordering::Release);
    fault::watch(met);
    Some(interval)
}

fn chosen() -> Option<usize> {
    let word = environment(SAMPLES)?;
    match word {
        b"" | b"off" | b"0" => return None,
        b"on" => return Some(INTERVAL),
        _ => {}
    }
    let number = core::str::from_utf8(word)
        .ok()
        .and_then(|word| word.parse().ok());
    let number = number.filter(|n| INTERVALS.contains(n));
    if number.is_none() {
        let is = "no number of bytes from 1 to 1073741824, and not \"on\" or \"off\"";
        say_ignored("LARDER_GUARD_SAMPLES", word, is);
    }
    number
}

/// Blocks have stacks from now on.
pub(super) fn ready() {
    if let Some(guards) = guards() {
        inside(|| guards.begin_stacks());
    }
}

/// A fault: said, if a guarded block was misused. The program's own handler, or the system's, ends the process.
fn met(fault: &Fault) -> bool {
    // Inside, the fault is one of the unwinder, or of a lock's holder.
    if slot::stage() != Stage::Inside
        && let Some(guards) = guards().filter(|guards| guards.has(fault.address))
    {
        inside(|| guards.touched(fault.address, fault.ip, fault.write));
    }
    false
}

/// A guarded block of zeroes; none where there is no room for it.
pub(super) fn alloc(layout: Layout, at_end: bool) -> Option<NonNull<u8>> {
    let guards = guards().filter(|_| Guards::fits(layout))?;
    let _errno = KeptErrno::new();
    inside(|| guards.alloc(layout, at_end))
}

/// Frees a guarded block; false where none of these is at the address. Does not return where it is misused.
pub(super) fn free(object: NonNull<u8>, size: usize, call: Call) -> bool {
    let Some(guards) = of(object) else {
        return false;
    };
    let _errno = KeptErrno::new();
    let size = (size != UNSAID).then_some(size);
    inside(|| guards.free(object.as_ptr() as usize, size, call));
    true
}

/// The size of a guarded block. Does not return where it is misused.
pub(super) fn size(object: NonNull<u8>) -> Option<usize> {
    let guards = of(object)?;
    let size = || guards.size(object.as_ptr() as usize, usize::MAX, Call::UsableSize);
    Some(inside(size))
}

/// A guarded block gets another size: where it is if it is to be smaller, else as a new block by `alloc`. `None` where none of these is at
/// the address. Does not return where it is misused.
///
/// # Safety
/// The caller gives the block up, unless the result is null.
pub(super) unsafe fn realloc(
    object: NonNull<u8>,
    size: usize,
    align: usize,
    alloc: fn(usize, usize) -> *mut u8,
) -> Option<*mut u8> {
    let (guards, at) = (of(object)?, object.as_ptr());
    let had = inside(|| guards.size(at as usize, size, Call::Realloc));
    if size <= had && (at as usize).is_multiple_of(align) {
        return Some(at);
    }
    let to = alloc(size, align);
    if !to.is_null() {
        // SAFETY: both have at least this many bytes, and one of them is new.
        unsafe { to.copy_from_nonoverlapping(at, had.min(size)) };
        free(object, UNSAID, Call::Realloc);
    }
    Some(to)
}
