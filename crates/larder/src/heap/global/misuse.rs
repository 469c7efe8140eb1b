//! What happens when something is freed that is no block of the program's heap.

use core::ptr::NonNull;

use super::bootstrap;
use super::state::Global;
use crate::heap::Call;
use crate::objects::Misuse;
use crate::os::say::say;

/// What the family meets when objects go back to their slabs. Blocks of the bootstrap are no objects, but may have
/// served as objects.
pub(super) fn met(misuse: &Misuse) {
    let (Misuse::Foreign { addr } | Misuse::Misaligned { addr } | Misuse::Twice { addr }) = *misuse;
    let fine = NonNull::new(addr as *mut u8).is_some_and(bootstrap::has);
    if !fine {
        say(format_args!("{misuse}"));
        std::process::abort();
    }
}

/// Reports an address where no block begins, and ends the process: to go on would be worse.
#[cold]
pub(super) fn end(addr: usize, function: &str) -> ! {
    say(format_args!(
        "{function}({addr:#x}): no block of this heap begins there"
    ));
    std::process::abort()
}

/// Reports a block that is not in use, or an address where none begins, in a page of blocks; ends the process.
#[cold]
pub(super) fn not_in_use(global: &Global, object: NonNull<u8>, call: Call) -> ! {
    let (function, addr) = (call.name(), object.as_ptr() as usize);
    let around = global.classes.object_around(object);
    match around.map(|(start, size)| (addr - start, size)) {
        Some((0, size)) => say(format_args!(
            "double free: {function}({addr:#x}) of a block of {size} bytes that is free"
        )),
        Some((inside, size)) => say(format_args!(
            "invalid free: {function}({addr:#x}), which is {inside} byte{} into a block of {size}",
            if inside == 1 { "" } else { "s" }
        )),
        None => say(format_args!(
            "invalid free: {function}({addr:#x}), where no block begins"
        )),
    }
    std::process::abort()
}

/// Reports a block that is not of the size that is said; ends the process.
#[cold]
pub(super) fn wrong_size(object: NonNull<u8>, size: usize, has: usize, call: Call) -> ! {
    say(format_args!(
        "mismatched size: {}({:#x}) with {size} bytes of a block of {has}",
        call.name(),
        object.as_ptr() as usize
    ));
    std::process::abort()
}

/// Reports what was written where no block is, or in a free one; ends the process.
#[cold]
pub(super) fn damaged(what: core::fmt::Arguments<'_>) -> ! {
    say(what);
    std::process::abort()
}
