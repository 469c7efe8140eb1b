//! The system layer: the only module that makes system calls.
//!
//! Everything above it is plain Rust over [`System`], so that a test can put a failing, a counting or a
//! recording system underneath ([`testing`]). What cannot be a method of a trait object because it sits on a
//! fast path or in a signal-like context lives here too: restartable sequences ([`rseq`]), the lock that the
//! slow paths use (`lock`), fork handling (`fork`) and the routines that zero a page ([`zero`]).

mod cpu;
pub(crate) mod decided;
pub(crate) mod decimal;
mod due;
pub(crate) mod errno;
mod error;
pub(crate) mod fork;
pub(crate) mod forked;
pub(crate) mod grown;
pub(crate) mod guard;
pub(crate) mod helper;
pub(crate) mod huge;
mod linux;
pub(crate) mod lock;
pub(crate) mod membarrier;
mod meta;
#[doc(hidden)]
pub mod pressure;
pub(crate) mod random;
pub mod rseq;
pub(crate) mod say;
mod sched;
pub(crate) mod signals;
mod system;
#[doc(hidden)]
pub mod testing;
pub(crate) mod tries;
pub mod zero;

pub(crate) use cpu::{
    MAX_CPUS, counts_all_memory, half_l2_pages, physical_memory, possible_cpus, usable_cpus,
};
pub(crate) use due::{CLOCK_TICK, Due};
pub use error::OsError;
pub(crate) use helper::HelperThread;
pub use linux::Linux;
pub(crate) use linux::{backed_share, map_sealed};
pub(crate) use meta::{MetaRegion, MetaSlice, ZeroIsValid};
#[doc(hidden)]
pub use sched::thread_cpu_time;
pub(crate) use sched::{lower_priority, turns, wait_turn};
pub use system::{Decommit, HugeAdvice, HugePageSize, Span, System};

use core::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of one page of this machine: 4096 on x86-64; elsewhere the system is asked once.
///
/// ```
/// assert!(larder::os::page_size().is_power_of_two());
/// ```
#[must_use]
#[inline]
pub fn page_size() -> usize {
    // An architecture with one size only, and an interpreter without a system.
    if cfg!(any(target_arch = "x86_64", miri)) {
        return 4096;
    }
    touched_at_start! {
        static CACHED: AtomicUsize = AtomicUsize::new(0);
    }
    match CACHED.load(Ordering::Relaxed) {
        0 => {
            let size = rustix::param::page_size();
            CACHED.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}

/// Nanoseconds of a clock that only goes forward. The coarse clock is enough for decay and costs no system call.
///
/// ```
/// let before = larder::os::coarse_now();
/// assert!(larder::os::coarse_now() >= before);
/// ```
#[doc(hidden)]
#[must_use]
pub fn coarse_now() -> u64 {
    // The interpreter knows the clocks of the standard library only.
    #[cfg(miri)]
    let t = {
        static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        BEGIN.get_or_init(std::time::Instant::now).elapsed()
    };
    #[cfg(not(miri))]
    let t = {
        let mut t = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // The C library knows the kernel's page for it already, and rustix would look for it first.
        // SAFETY: a clock that there is, and a place for its time.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut t) };
        core::time::Duration::new(
            u64::try_from(t.tv_sec).unwrap_or(0),
            u32::try_from(t.tv_nsec).unwrap_or(0),
        )
    };
    u64::try_from(t.as_nanos()).unwrap_or(u64::MAX)
}
