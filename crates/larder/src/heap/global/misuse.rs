//! What happens when something is freed that is no block of the program's heap.

use core::ptr::NonNull;

use super::bootstrap;
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
