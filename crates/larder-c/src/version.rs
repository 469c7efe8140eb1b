//! Which library this is, and how it works here.

use core::ffi::c_char;

use crate::buffer;
use crate::call::guard;
use crate::error::{larder_error, larder_status};

/// The version of the library, for instance `0.1.0`, in static memory.
#[unsafe(no_mangle)]
pub extern "C" fn larder_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Writes how magazines are kept in this process: per CPU by restartable sequences, or locked with the reason. `needed`, which
/// may be NULL, gets the bytes of the whole text, its end included.
///
/// `buffer` has `bytes` bytes; it may be NULL when `bytes` is 0.
///
/// # Safety
/// `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_mode(
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(error, || {
            buffer::text(buffer, bytes, needed, |out| {
                write!(out, "{}", larder::os::rseq::mode())
            })
        })
    }
}
