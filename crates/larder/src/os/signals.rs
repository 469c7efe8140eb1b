//! Signals kept from a thread for a while.

use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// All signals are blocked in the thread that made it; when it is dropped, by that thread or by its copy in the child
/// of a fork, the mask is what it was.
#[must_use]
pub(crate) struct Blocked(Option<libc::sigset_t>);

impl Blocked {
    /// Blocks them. Faults of the thread itself still end the process.
    pub(crate) fn new() -> Self {
        // SAFETY: each set is written by the call that is given it, before it is read.
        unsafe {
            let mut all = MaybeUninit::uninit();
            let mut before = MaybeUninit::uninit();
            libc::sigfillset(all.as_mut_ptr());
            let done =
                libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0;
            Self(done.then(|| before.assume_init()))
        }
    }

    /// Whether they are: not where a filter of system calls refuses it.
    pub(crate) fn holds(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: a set that is written, and none that is asked for.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, null_mut()) };
        }
    }
}
