//! Turns limits that would end the process by a signal into error messages.

use std::io;

use rustix::process::{Resource, getrlimit};

use super::failure::{Failure, Outcome};

/// The least stack on which every command runs, bytes.
const STACK: u64 = 512 << 10;

/// Refuses a stack that is too small, and makes a file that may not grow an error of the write.
pub(super) fn check() -> Outcome {
    if let Some(bytes) = getrlimit(Resource::Stack).current.filter(|b| *b < STACK) {
        return Err(Failure::refused(format!(
            "the stack may have {} KiB and larder needs {}; raise the limit with `ulimit -s`",
            bytes >> 10,
            STACK >> 10
        )));
    }
    writes_fail().map_err(|e| Failure::io(format!("SIGXFSZ cannot be caught: {e}")))
}

extern "C" fn nothing(_: libc::c_int) {}

/// Catches SIGXFSZ, so that a write beyond `ulimit -f` fails with EFBIG. It is not ignored: a program that the lab
/// starts would inherit that, while a handler goes back to the default with `exec`.
fn writes_fail() -> io::Result<()> {
    // SAFETY: all zeros is a valid `sigaction`, with no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    let mut before = action;
    // SAFETY: the pointer is to a `sigaction` that outlives the call.
    if unsafe { libc::sigaction(libc::SIGXFSZ, core::ptr::null(), &raw mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if before.sa_sigaction != libc::SIG_DFL {
        // The parent has chosen, and programs that the lab starts get what it chose.
        return Ok(());
    }
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler does nothing, so it may run at any moment; the pointer outlives the call.
    match unsafe { libc::sigaction(libc::SIGXFSZ, &raw const action, core::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
