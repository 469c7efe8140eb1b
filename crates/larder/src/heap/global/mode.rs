//! Whether threads or CPUs have the magazines.

use crate::os::rseq;
use crate::os::say::say_unknown;

/// How the program's heap keeps objects ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapMode {
    /// Each thread has magazines of its own: fastest, and memory follows the threads.
    PerThread,
    /// Each CPU has, by restartable sequences: memory follows the CPUs.
    PerCpu,
    /// Each CPU has, under locks that are tried and never waited for: where there are no restartable sequences.
    Locked,
}

impl HeapMode {
    /// The name that the environment and the statistics use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PerThread => "per-thread",
            Self::PerCpu => "per-cpu",
            Self::Locked => "locked",
        }
    }

    /// The mode that `LARDER_MALLOC_MODE` names, or the default; and the mode of the CPUs' magazines behind the
    /// threads. What cannot be had is replaced by what can, and the statistics say which it is. A word that names no mode is
    /// reported in a line.
    pub(super) fn chosen() -> (Self, rseq::Mode) {
        let word = environment(c"LARDER_MALLOC_MODE").unwrap_or_default();
        let wanted = [Self::PerThread, Self::PerCpu, Self::Locked]
            .into_iter()
            .find(|mode| word == mode.name().as_bytes())
            .unwrap_or_else(|| {
                if !word.is_empty() {
                    say_unknown("LARDER_MALLOC_MODE", word, "per-thread, per-cpu, locked");
                }
                Self::PerThread
            });
        match wanted {
            Self::Locked => (wanted, rseq::Mode::Locked("LARDER_MALLOC_MODE")),
            // Little comes to the CPUs' stocks then, and trying the sequences takes longer than all else of the start.
            Self::PerThread => (wanted, rseq::Mode::Locked("threads have magazines")),
            Self::PerCpu => match rseq::mode() {
                behind @ rseq::Mode::Locked(_) => (Self::Locked, behind),
                behind => (wanted, behind),
            },
        }
    }
}

/// The value of an environment variable, without an allocation. A program that runs with more rights than its caller has none:
/// the caller must not choose what its malloc checks, or lets pass.
pub(super) fn environment(name: &core::ffi::CStr) -> Option<&'static [u8]> {
    // SAFETY: a C string. The value is a C string of the environment, read before other code could have changed it:
    // while the first allocation of the process is served.
    unsafe {
        // What `secure_getenv` asks, which not every C library has.
        if libc::getauxval(libc::AT_SECURE) != 0 {
            return None;
        }
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| core::ffi::CStr::from_ptr(value).to_bytes())
    }
}

/// Where something stands that the environment asks for.
pub(super) struct Place<T>(pub(super) core::cell::UnsafeCell<T>);

// SAFETY: written once, by the thread that makes the heap, before any other thread reads it; then only shared.
unsafe impl<T> Sync for Place<T> {}
