//! What a system call that failed says. It carries no heap memory, so that it can be made when there is none.

use core::fmt;

use rustix::io::Errno;

/// A system call that the kernel refused.
///
/// ```
/// use larder::os::{Linux, OsError, System};
/// let error: OsError = Linux.reserve(usize::MAX / 2, 4096).unwrap_err();
/// assert!(error.to_string().contains("failed"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OsError {
    call: &'static str,
    bytes: usize,
    errno: Errno,
}

impl OsError {
    /// An error of `call`, which was asked for `bytes` bytes.
    ///
    /// ```
    /// # use larder::os::OsError;
    /// let error = OsError::new("mmap(reserve)", 4096, rustix::io::Errno::NOMEM);
    /// assert_eq!((error.call(), error.bytes(), error.raw_os_error()), ("mmap(reserve)", 4096, 12));
    /// ```
    #[must_use]
    pub fn new(call: &'static str, bytes: usize, errno: Errno) -> Self {
        Self { call, bytes, errno }
    }

    /// Name of the system call with its purpose, for instance `mmap(reserve)`.
    ///
    /// [`new`](Self::new) shows it.
    #[must_use]
    pub fn call(&self) -> &'static str {
        self.call
    }

    /// Bytes that were asked for; 0 where the call has no size.
    ///
    /// [`new`](Self::new) shows it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The error number, for instance 12 for `ENOMEM`.
    ///
    /// [`new`](Self::new) shows it.
    #[must_use]
    pub fn raw_os_error(&self) -> i32 {
        self.errno.raw_os_error()
    }

    /// True when the kernel does not know the request, so that a fallback may be tried.
    ///
    /// ```
    /// # use larder::os::OsError;
    /// use rustix::io::Errno;
    /// assert!(OsError::new("madvise", 4096, Errno::NOSYS).is_unsupported());
    /// assert!(!OsError::new("madvise", 4096, Errno::NOMEM).is_unsupported());
    /// ```
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self.errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
    }

    fn advice(&self) -> &'static str {
        match self.errno {
            Errno::NOMEM => {
                "; the machine or its cgroup is out of memory, or a limit (ulimit -v, vm.max_map_count, vm.overcommit_memory) was reached"
            }
            Errno::PERM | Errno::ACCESS => "; this process may not do that (privileges, seccomp)",
            Errno::NOSYS => "; this kernel does not have the call",
            _ => "",
        }
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} bytes failed: {}{}",
            self.call,
            self.bytes,
            self.errno,
            self.advice()
        )
    }
}

impl core::error::Error for OsError {}
