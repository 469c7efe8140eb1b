//! What lies at an address: functions and lines as far as a symbol table or debug information names them, modules as the loader
//! knows them.

use core::ffi::c_void;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use super::Frames;
use crate::heap::output::{module_of, place};

/// Bytes of a signal handler's stack on which names can be looked up.
const LEAST_STACK: usize = 128 << 10;

/// Whether a thread looks up names. No lock: the thread that holds the loader's lock may have a message of its own, and gets one
/// without names.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// One line per function, those of inlined calls included: `function at source.c:12 (file+0x1234)`. Without names it is
/// `(file+0x1234)`, for which `addr2line -e FILE 0x1234` names the line of the source.
pub(super) fn write(frames: &Frames, out: &mut dyn Write) -> fmt::Result {
    let named = !on_small_stack() && !TAKEN.swap(true, Ordering::Acquire);
    let result = frames
        .as_slice()
        .iter()
        .try_for_each(|&ip| lines(ip, named, out));
    if named {
        TAKEN.store(false, Ordering::Release);
    }
    result
}

fn lines(ip: usize, named: bool, out: &mut dyn Write) -> fmt::Result {
    let mut result = Ok(());
    let mut any = false;
    if named {
        let mut each = |symbol: &backtrace::Symbol| {
            any = true;
            let name = symbol.name();
            let line = symbol.filename().zip(symbol.lineno());
            result = result.and_then(|()| {
                out.write_str("    ")?;
                match name {
                    Some(name) => write!(out, "{name:#}")?,
                    None => out.write_str("?")?,
                }
                if let Some((file, line)) = line {
                    write!(out, " at {}:{line}", file.display())?;
                }
                out.write_str(" ")?;
                place(ip, false, out)
            });
        };
        // SAFETY: only the thread that took the flag is here.
        unsafe { backtrace::resolve_unsynchronized(ip as *mut c_void, &mut each) };
    }
    if !any {
        out.write_str("    ")?;
        place(ip, false, out)?;
    }
    result
}

/// What lies at an address that is no block's, in words.
pub(super) fn describe(address: usize) -> &'static str {
    if on_stack(address) {
        "which is on the stack"
    } else if module_of(address).is_some() {
        "which is in a module's code or data"
    } else {
        "where no block is"
    }
}

/// Whether this is a signal handler on a stack of its own that is small.
fn on_small_stack() -> bool {
    // SAFETY: all zeroes is a value, which the system fills.
    unsafe {
        let mut stack: libc::stack_t = core::mem::zeroed();
        libc::sigaltstack(core::ptr::null(), &raw mut stack) == 0
            && stack.ss_flags & libc::SS_ONSTACK != 0
            && stack.ss_size < LEAST_STACK
    }
}

/// On this thread's stack. Asking may allocate.
fn on_stack(address: usize) -> bool {
    // SAFETY: all zeroes is a value, which the library fills; it is destroyed if it was made.
    unsafe {
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return false;
        }
        let (mut low, mut bytes) = (core::ptr::null_mut(), 0);
        let known =
            libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attributes);
        known == 0 && (low as usize..low as usize + bytes).contains(&address)
    }
}
