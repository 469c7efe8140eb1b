//! What lies at an address: functions and lines as far as a symbol table or debug information names them, modules as the loader
//! knows them.

use core::ffi::{CStr, c_void};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use super::Frames;

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
            let place = symbol.filename().zip(symbol.lineno());
            result = result.and_then(|()| {
                out.write_str("    ")?;
                match name {
                    Some(name) => write!(out, "{name:#}")?,
                    None => out.write_str("?")?,
                }
                if let Some((file, line)) = place {
                    write!(out, " at {}:{line}", file.display())?;
                }
                out.write_str(" ")?;
                write_place(ip, out)
            });
        };
        // SAFETY: only the thread that took the flag is here.
        unsafe { backtrace::resolve_unsynchronized(ip as *mut c_void, &mut each) };
    }
    if !any {
        out.write_str("    ")?;
        write_place(ip, out)?;
    }
    result
}

/// The module of a call, and where in it.
fn write_place(ip: usize, out: &mut dyn Write) -> fmt::Result {
    // A return address may lie behind the end of its function; the call does not.
    let call = ip.wrapping_sub(1);
    match module_of(call) {
        Some(module) if !module.dli_fname.is_null() => {
            // SAFETY: a name of the loader's, which stays while the module is loaded.
            let file = unsafe { CStr::from_ptr(module.dli_fname) };
            out.write_str("(")?;
            text(file, out)?;
            writeln!(out, "+{:#x})", call - module.dli_fbase as usize)
        }
        _ => writeln!(out, "{call:#x}"),
    }
}

fn module_of(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: all zeroes is a value.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for; the loader fills the value.
    let found = unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0;
    found.then_some(info)
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

/// A name, of which only what is text.
fn text(name: &CStr, out: &mut dyn Write) -> fmt::Result {
    for chunk in name.to_bytes().utf8_chunks() {
        out.write_str(chunk.valid())?;
        if !chunk.invalid().is_empty() {
            out.write_char('?')?;
        }
    }
    Ok(())
}
