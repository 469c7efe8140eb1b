//! The heap profile at the program's word.

use core::ffi::{CStr, c_char, c_int};

use larder::internal::heap;

/// Writes the profile that `LARDER_HEAP_PROFILE` began to a file, in the format of pprof. 0, or a number of `errno.h`: `ENODATA` where
/// there is no profile. Not from a signal handler.
///
/// # Safety
/// `path` ends with a zero byte.
#[unsafe(no_mangle)]
unsafe extern "C" fn larder_heap_profile_write(path: *const c_char) -> c_int {
    if path.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    match heap::write_profile(unsafe { CStr::from_ptr(path) }) {
        Ok(()) => 0,
        Err(number) => number,
    }
}
