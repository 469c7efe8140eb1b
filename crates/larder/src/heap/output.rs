//! Text for standard error, without an allocation and without a lock, in as few writes as possible so that the lines of
//! threads do not mix; and where the calls of a stack are.
//!
//! No lock: a message asks the loader for names, and the thread that holds the loader's lock may have a message of its
//! own. And no large array on the stack, which may be a signal handler's small one.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_void};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::stderr;

const ROOM: usize = 16 << 10;
const SMALL: usize = 256;

struct Buffer {
    taken: AtomicBool,
    bytes: UnsafeCell<[u8; ROOM]>,
}

// SAFETY: the bytes are touched only by the `Output` that set `taken`.
unsafe impl Sync for Buffer {}

static BUFFERS: [Buffer; 4] = [const {
    Buffer {
        taken: AtomicBool::new(false),
        bytes: UnsafeCell::new([0; ROOM]),
    }
}; 4];

/// A message on its way; written when it is dropped, or when the buffer is full.
pub(super) struct Output {
    /// The large buffer, if there was one.
    large: Option<&'static Buffer>,
    small: [u8; SMALL],
    len: usize,
}

impl Output {
    pub(super) fn new() -> Self {
        let large = BUFFERS
            .iter()
            .find(|buffer| !buffer.taken.swap(true, Ordering::Acquire));
        Self {
            large,
            small: [0; SMALL],
            len: 0,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self.large {
            // SAFETY: this value set `taken`, so the bytes are its own.
            Some(buffer) => unsafe { &mut *buffer.bytes.get() },
            None => &mut self.small,
        }
    }

    fn flush(&mut self) {
        let len = self.len;
        let mut rest = &self.bytes()[..len];
        while !rest.is_empty() {
            match stderr::write(rest) {
                Ok(n) if n > 0 => rest = &rest[n..],
                Err(Errno::INTR) => {}
                // There is nowhere to report that standard error cannot be written.
                _ => break,
            }
        }
        self.len = 0;
    }
}

/// A line of its own, as long as it may be.
#[cfg(feature = "debug-heap")]
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(Output::new(), "larder: {text}");
}

impl Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes().len();
        for part in text.as_bytes().chunks(room) {
            if self.len + part.len() > room {
                self.flush();
            }
            let len = self.len;
            self.bytes()[len..len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.flush();
        if let Some(buffer) = self.large {
            buffer.taken.store(false, Ordering::Release);
        }
    }
}

/// A line for each call of a stack, with the function that the loader knows.
pub(super) fn calls(stack: &[usize], out: &mut dyn Write) -> fmt::Result {
    stack.iter().try_for_each(|&ip| {
        out.write_str("    ")?;
        place(ip, true, out)
    })
}

/// The module of a call, and where in it: `(file+0x1234)`, for which `addr2line -e FILE 0x1234` names the line of the source.
/// `named` puts the function before it, as far as the loader knows it.
pub(super) fn place(ip: usize, named: bool, out: &mut dyn Write) -> fmt::Result {
    // A return address may lie behind the end of its function; the call does not.
    let call = ip.wrapping_sub(1);
    let Some(module) = module_of(call).filter(|module| !module.dli_fname.is_null()) else {
        return writeln!(out, "{call:#x}");
    };
    if named && !module.dli_sname.is_null() {
        text(module.dli_sname, out)?;
        out.write_str(" ")?;
    }
    out.write_str("(")?;
    text(module.dli_fname, out)?;
    writeln!(out, "+{:#x})", call - module.dli_fbase as usize)
}

/// What the loader knows of an address.
pub(super) fn module_of(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: all zeroes is a value.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for; the loader fills the value.
    let found = unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0;
    found.then_some(info)
}

/// A name of the loader's, of which only what is text.
fn text(name: *const core::ffi::c_char, out: &mut dyn Write) -> fmt::Result {
    // SAFETY: it stays while the module is loaded.
    for chunk in unsafe { CStr::from_ptr(name) }.to_bytes().utf8_chunks() {
        out.write_str(chunk.valid())?;
        if !chunk.invalid().is_empty() {
            out.write_char('?')?;
        }
    }
    Ok(())
}
