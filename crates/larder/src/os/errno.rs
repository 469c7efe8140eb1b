//! The C library's error number of this thread. It is the program's: `free` leaves it, and so must what a slow call tries on
//! the way and is refused.

/// Puts the number back that it found, when it is dropped.
#[must_use]
pub(crate) struct KeptErrno(libc::c_int);

impl KeptErrno {
    pub(crate) fn new() -> Self {
        // SAFETY: this thread's place for it, which is there as long as the thread is.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeptErrno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
