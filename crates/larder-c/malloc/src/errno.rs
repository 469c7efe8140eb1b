//! The C library's error number of this thread.

use core::ffi::{c_int, c_void};

/// Sets it.
#[cold]
pub(crate) fn set(number: c_int) {
    // SAFETY: the C library's variable of this thread, which lives as long as the thread.
    unsafe { *libc::__errno_location() = number };
}

/// A failure for want of memory: sets `ENOMEM` and is NULL.
#[cold]
pub(crate) fn no_memory() -> *mut c_void {
    set(libc::ENOMEM);
    core::ptr::null_mut()
}

/// A failure for an argument that makes no sense: sets `EINVAL` and is NULL.
#[cold]
pub(crate) fn invalid() -> *mut c_void {
    set(libc::EINVAL);
    core::ptr::null_mut()
}
