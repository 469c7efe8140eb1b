//! The C library's mutex, as the mail uses it.

use std::cell::UnsafeCell;

/// A `pthread_mutex_t` of the default kind. It must not move once it was locked: keep it in a box or an array.
pub struct PthreadMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: it is a mutex.
unsafe impl Sync for PthreadMutex {}
// SAFETY: it is moved before its first use only, when it is plain data.
unsafe impl Send for PthreadMutex {}

impl PthreadMutex {
    /// Not locked.
    #[must_use]
    pub const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    /// Waits for it and takes it.
    #[inline(always)]
    pub fn lock(&self) {
        // SAFETY: an initialised mutex; a default one reports no error that could occur here.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    /// Gives it back.
    ///
    /// # Safety
    /// The calling thread has it.
    #[inline(always)]
    pub unsafe fn unlock(&self) {
        // SAFETY: held by this thread.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Default for PthreadMutex {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for PthreadMutex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PthreadMutex").finish_non_exhaustive()
    }
}
