//! Whether threads or CPUs have the magazines.

use super::state;
use crate::os::rseq;
use crate::os::say::say_unknown;

/// How the program's heap keeps objects ready.
///
/// ```
/// use larder::heap::global::{self, Mode};
/// drop(Box::new(1));
/// match global::mode() {
///     Some(Mode::PerThread) => println!("magazines follow the threads"),
///     Some(mode) => println!("magazines follow the CPUs ({})", mode.name()),
///     None => println!("another allocator is the program's"),
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Each thread has magazines of its own: fastest, and memory follows the threads.
    PerThread,
    /// Each CPU has, by restartable sequences: memory follows the CPUs.
    PerCpu,
    /// Each CPU has, under locks that are tried and never waited for: where there are no restartable sequences.
    Locked,
}

impl Mode {
    /// The name that the environment and the statistics use.
    ///
    /// ```
    /// assert_eq!(larder::heap::global::Mode::PerCpu.name(), "per-cpu");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PerThread => "per-thread",
            Self::PerCpu => "per-cpu",
            Self::Locked => "locked",
        }
    }

    /// The mode that `LARDER_MALLOC_MODE` names, or the default; and the mode of the CPUs' magazines behind the
    /// threads. What cannot be had is replaced by what can, and [`mode`] says which it is. A word that names no mode is
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

/// The mode of the program's heap; `None` before its first use, and where it could not be made.
///
/// ```
/// // Null without memory.
/// assert!(!larder::heap::global::alloc(10, 1).is_null());
/// assert!(larder::heap::global::mode().is_some());
/// ```
#[must_use]
pub fn mode() -> Option<Mode> {
    state::global().map(|global| global.mode)
}
