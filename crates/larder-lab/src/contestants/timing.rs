//! Tools with which every contestant times itself: clocks, counters, and stores that the compiler may not drop.
//!
//! A measurement of memory can be wrong in two ways: the clock counts other programs' time, or the optimiser removed
//! the work. This module prevents both.
//!
//! ```
//! use larder_lab::contestants::timing::{Stopwatch, ns_per_op, touch};
//!
//! let mut page = vec![0u8; 4096];
//! let watch = Stopwatch::start();
//! for i in 0..1000u64 {
//!     // SAFETY: the vector is 4096 bytes long and ours.
//!     unsafe { touch(page.as_mut_ptr(), i) };
//! }
//! let spent = watch.stop();
//! assert!(ns_per_op(spent.wall_ns, 1000) >= 0.0);
//! ```

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Monotonic time in nanoseconds from an arbitrary start (`CLOCK_MONOTONIC`).
#[must_use]
pub fn monotonic_ns() -> u64 {
    read_clock(ClockId::Monotonic)
}

/// CPU time of the calling thread, user and system, in nanoseconds (`CLOCK_THREAD_CPUTIME_ID`).
///
/// It leaves out the time in which other programs had the CPU. A reading is a system call of some
/// 100 to 200 ns, so read it around batches and never around single operations.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read_clock(ClockId::ThreadCPUTime)
}

/// CPU time of the whole process, all threads, in nanoseconds (`CLOCK_PROCESS_CPUTIME_ID`).
#[must_use]
pub fn process_cpu_ns() -> u64 {
    read_clock(ClockId::ProcessCPUTime)
}

fn read_clock(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    // Both are positive for these clocks; a clock that says otherwise reads as zero rather than as an error.
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(t.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

/// Faults and context switches of the calling thread since it began (`getrusage(RUSAGE_THREAD)`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Faults that needed no input or output.
    pub minor_faults: u64,
    /// Faults that waited for input or output.
    pub major_faults: u64,
    /// Times that the thread was put off the CPU against its will.
    pub preemptions: u64,
    /// Times that the thread gave its CPU up, for instance to wait for a lock.
    pub sleeps: u64,
}

/// Reads the calling thread's [`Usage`]. All zero where the kernel refuses, which Linux does not.
#[must_use]
pub fn thread_usage() -> Usage {
    let mut raw = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `raw` is a writable rusage; the kernel fills it or leaves the zeros.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, raw.as_mut_ptr());
        raw.assume_init()
    };
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    Usage {
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        preemptions: count(usage.ru_nivcsw),
        sleeps: count(usage.ru_nvcsw),
    }
}

/// Bytes of this process that are in memory now (`Rss` of `/proc/self/smaps_rollup`); 0 where it cannot be read.
///
/// The kernel walks the page tables for it, so the number is exact and costs some 10 us and more: read it outside of
/// what is timed, or take [`resident_bytes_roughly`].
#[must_use]
pub fn resident_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/smaps_rollup")
        .ok()
        .and_then(|text| bytes_of(&text, "Rss"))
        .unwrap_or_else(resident_bytes_roughly)
}

/// The line of a field in kB, as the files in /proc have it, in bytes.
pub(crate) fn bytes_of(text: &str, field: &str) -> Option<u64> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// As [`resident_bytes`], from `/proc/self/statm`: cheap, but the kernel batches these counters by CPU, so that 64
/// pages for each CPU may be missing.
#[must_use]
pub fn resident_bytes_roughly() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text
        .split_whitespace()
        .nth(1)
        .and_then(|field| field.parse().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Wall time, thread CPU time and faults between two points of one thread.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    usage: Usage,
    cpu: u64,
    wall: Instant,
}

/// What a [`Stopwatch`] saw. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time of the thread, user and system.
    pub cpu_ns: u64,
    /// Faults and preemptions of the thread.
    pub usage: Usage,
}

impl Spent {
    /// The sum of two stretches, for work that is timed in pieces.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            wall_ns: self.wall_ns + other.wall_ns,
            cpu_ns: self.cpu_ns + other.cpu_ns,
            usage: Usage {
                minor_faults: self.usage.minor_faults + other.usage.minor_faults,
                major_faults: self.usage.major_faults + other.usage.major_faults,
                preemptions: self.usage.preemptions + other.usage.preemptions,
                sleeps: self.usage.sleeps + other.usage.sleeps,
            },
        }
    }
}

impl Stopwatch {
    /// Starts to watch the calling thread.
    #[must_use]
    pub fn start() -> Self {
        // The clocks come last, CPU before wall, and [`stop`](Self::stop) reads them in the opposite
        // order, so that neither reading counts the other counters' system calls.
        let usage = thread_usage();
        let cpu = thread_cpu_ns();
        Self {
            usage,
            cpu,
            wall: Instant::now(),
        }
    }

    /// Stops. Call it on the thread that started it.
    #[must_use]
    pub fn stop(self) -> Spent {
        let wall = self.wall.elapsed();
        let cpu = thread_cpu_ns();
        let usage = thread_usage();
        Spent {
            wall_ns: duration_ns(wall),
            cpu_ns: cpu.saturating_sub(self.cpu),
            usage: Usage {
                minor_faults: usage.minor_faults.saturating_sub(self.usage.minor_faults),
                major_faults: usage.major_faults.saturating_sub(self.usage.major_faults),
                preemptions: usage.preemptions.saturating_sub(self.usage.preemptions),
                sleeps: usage.sleeps.saturating_sub(self.usage.sleeps),
            },
        }
    }
}

fn duration_ns(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

/// Total nanoseconds to nanoseconds per operation; 0 for no operations.
///
/// Nat!'s unit falls out of it: a million operations in 11.2 s are 11.2 us each.
#[must_use]
pub fn ns_per_op(total_ns: u64, ops: u64) -> f64 {
    if ops == 0 {
        0.0
    } else {
        total_ns as f64 / ops as f64
    }
}

/// Writes 8 bytes at `at` so that the compiler cannot drop or merge the store: one page touched.
///
/// # Safety
/// `at` must be valid for a write of 8 bytes. It need not be aligned.
#[inline(always)]
pub unsafe fn touch(at: *mut u8, value: u64) {
    // SAFETY: the caller vouches for 8 writable bytes; an array of bytes has no alignment.
    unsafe { at.cast::<[u8; 8]>().write_volatile(value.to_ne_bytes()) };
}

/// Reads 8 bytes at `at` so that the compiler cannot drop the load.
///
/// # Safety
/// `at` must be valid for a read of 8 bytes. It need not be aligned.
#[inline(always)]
#[must_use]
pub unsafe fn peek(at: *const u8) -> u64 {
    // SAFETY: the caller vouches for 8 readable bytes.
    u64::from_ne_bytes(unsafe { at.cast::<[u8; 8]>().read_volatile() })
}

/// Tells the compiler that all memory behind `at` is read and written here, so that stores before it are
/// really made and loads after it are really done. No instruction.
#[inline(always)]
pub fn keep<T>(at: *const T) {
    #[cfg(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    ))]
    // SAFETY: the empty text does nothing; without `nomem` it counts as a use of all memory.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) at, options(nostack, preserves_flags));
    }
    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    )))]
    {
        std::hint::black_box(at);
    }
}

/// Hides a value from the optimiser.
#[inline(always)]
pub fn opaque<T>(value: T) -> T {
    std::hint::black_box(value)
}

/// Runs `step` untimed for about `time`, and at least `least` times; returns how often it ran.
///
/// Brings clock rate, caches, branch predictors and the kernel's free lists into the state of a busy program,
/// as Nat!'s benchmark did with "a little warm up".
///
/// # Errors
/// The first error of `step`.
pub fn warm_up<E>(
    time: Duration,
    least: u64,
    mut step: impl FnMut() -> Result<(), E>,
) -> Result<u64, E> {
    let began = Instant::now();
    let mut done = 0;
    while done < least || began.elapsed() < time {
        step()?;
        done += 1;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_move_forward() {
        let (wall, cpu) = (monotonic_ns(), thread_cpu_ns());
        let mut x = 1u64;
        for i in 0..100_000u64 {
            x = opaque(x.wrapping_mul(i | 1));
        }
        assert!(monotonic_ns() > wall);
        assert!(thread_cpu_ns() > cpu, "{x}");
        assert!(process_cpu_ns() > 0);
    }

    #[test]
    fn a_stopwatch_counts_the_faults_of_fresh_pages() {
        const PAGES: usize = 300;
        let page = rustix::param::page_size();
        // SAFETY: a fresh private anonymous mapping, unmapped below and used in between only.
        let at = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                PAGES * page,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::PRIVATE,
            )
        }
        .unwrap()
        .cast::<u8>();
        // One fault per page only without huge pages.
        // SAFETY: the range just mapped.
        let _ = unsafe { libc::madvise(at.cast(), PAGES * page, libc::MADV_NOHUGEPAGE) };
        let watch = Stopwatch::start();
        for i in 0..PAGES {
            // SAFETY: within the mapping.
            unsafe { touch(at.add(i * page), i as u64) };
        }
        let spent = watch.stop();
        // SAFETY: within the mapping.
        assert_eq!(unsafe { peek(at.add(7 * page)) }, 7);
        // SAFETY: mapped above, not used afterwards.
        unsafe { rustix::mm::munmap(at.cast(), PAGES * page) }.unwrap();
        let faults = spent.usage.minor_faults as usize;
        // Some pages of the program itself may be touched for the first time.
        assert!((PAGES..PAGES + 64).contains(&faults), "{faults} faults");
    }

    #[test]
    fn stretches_add_up() {
        let one = Spent {
            wall_ns: 3,
            cpu_ns: 2,
            usage: Usage {
                minor_faults: 1,
                major_faults: 0,
                preemptions: 4,
                sleeps: 5,
            },
        };
        let two = one.and(one);
        assert_eq!((two.wall_ns, two.cpu_ns), (6, 4));
        assert_eq!(two.usage.minor_faults, 2);
        assert_eq!((two.usage.preemptions, two.usage.sleeps), (8, 10));
    }

    #[test]
    fn operations_convert_as_in_2003() {
        // A million operations in 11.2 s are 11.2 us each.
        assert_eq!(ns_per_op(11_200_000_000, 1_000_000), 11_200.0);
        assert_eq!(ns_per_op(5, 0), 0.0);
    }

    #[test]
    fn warm_up_runs_at_least_as_often_as_asked_and_passes_errors_on() {
        let ran = warm_up::<()>(Duration::ZERO, 5, || Ok(()));
        assert_eq!(ran, Ok(5));
        let mut left = 3;
        let failed = warm_up(Duration::from_secs(60), 0, || {
            left -= 1;
            if left == 0 { Err("stop") } else { Ok(()) }
        });
        assert_eq!(failed, Err("stop"));
    }

    #[test]
    fn the_line_of_smaps_is_read_or_refused() {
        assert_eq!(
            bytes_of("00-01 rollup\nRss:    12 kB\nPss: 3 kB\n", "Rss"),
            Some(12 * 1024)
        );
        for bad in ["", "Rss: kB", "Rss: 12", "Rss: -1 kB", "Pss: 3 kB"] {
            assert_eq!(bytes_of(bad, "Rss"), None, "{bad}");
        }
    }
}
