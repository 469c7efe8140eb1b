//! Restartable sequences: whether this process can use them, and which number names a CPU's stock.
//!
//! larder is a guest in the registration that glibc (2.35 or later) makes for every thread. It reads one of the id
//! fields and writes `rseq_cs`, nothing else; it makes no system call inside a section. So it coexists with every
//! other user of the same area, and works in the kernel's old and new modes alike (Linux 6.19 stopped rewriting the
//! id fields on every switch, which broke users that relied on it).
//!
//! Remote work, such as emptying another CPU's magazines, needs the rseq barrier of `membarrier`
//! (Linux 5.10); without it the locked mode is used.

use core::fmt;

use super::decided::Decided;

/// Which field of the kernel's area names the stock that a thread uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // Other processors have no sections.
enum CpuId {
    /// `mm_cid` (Linux 6.3): dense, at most the number of threads and of allowed CPUs, so that a process of two
    /// threads on a large machine holds two stocks.
    MmCid,
    /// `cpu_id`.
    CpuId,
}

/// Where this process's threads find their area, relative to the thread pointer. Only [`mode`] makes one, after it
/// proved that the area works, so holding one is leave to use it.
///
/// ```
/// use larder::os::rseq::{Mode, mode};
/// match mode() {
///     Mode::PerCpu(registration) => println!("restartable sequences, {registration:?}"),
///     Mode::Locked(why) => println!("locks, since {why}"),
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registration {
    offset: isize,
    id: CpuId,
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
impl Registration {
    /// Of no area: for loom's model of the sections, which looks at none.
    #[cfg(all(test, loom))]
    pub(crate) fn of_a_model() -> Self {
        Self {
            offset: 0,
            id: CpuId::CpuId,
        }
    }

    /// Offset of the area from the thread pointer.
    #[cfg(not(loom))]
    pub(crate) fn offset(self) -> isize {
        self.offset
    }

    /// Offset of the id field from the thread pointer.
    #[cfg(not(loom))]
    pub(crate) fn id_offset(self) -> isize {
        // Offsets of the kernel's ABI: cpu_id_start 0, cpu_id 4, rseq_cs 8, flags 16, node_id 20, mm_cid 24.
        self.offset
            + match self.id {
                CpuId::CpuId => 4,
                CpuId::MmCid => 24,
            }
    }
}

/// How stocks are kept on this machine.
///
/// ```
/// use larder::{os::rseq::Mode, pages::PagePool};
/// assert_eq!(Mode::Locked("to compare").to_string(), "locked (to compare)");
/// let pool = PagePool::builder().mode(Mode::Locked("to compare")).build()?;
/// # drop(pool);
/// # Ok::<(), larder::pages::PoolError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Per CPU by restartable sequences: no lock and no atomic instruction on the fast path.
    PerCpu(Registration),
    /// A lock per stock, tried and never waited for.
    Locked(&'static str),
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerCpu(r) => match r.id {
                CpuId::MmCid => f.write_str("per CPU (restartable sequences, mm_cid)"),
                CpuId::CpuId => f.write_str("per CPU (restartable sequences, cpu_id)"),
            },
            Self::Locked(why) => write!(f, "locked ({why})"),
        }
    }
}

/// The mode of this process, decided once: the registration is looked up, the barrier registered and a self-test run.
/// The environment variable `LARDER_MODE` (`locked`, `cpu_id` or `mm_cid`) overrides the choice; another word is reported in
/// a line on standard error and ignored.
///
/// ```
/// println!("magazines are kept {}", larder::os::rseq::mode());
/// ```
#[must_use]
pub fn mode() -> Mode {
    touched_at_start! {
        static MODE: Decided<Mode> = Decided::new();
    }
    MODE.get_or_decide(detect)
}

fn detect() -> Mode {
    let wish = std::env::var_os("LARDER_MODE").unwrap_or_default();
    match wish.as_encoded_bytes() {
        b"locked" => return Mode::Locked("LARDER_MODE=locked"),
        b"" | b"cpu_id" | b"mm_cid" => {}
        word => super::say::say_unknown("LARDER_MODE", word, "locked, cpu_id, mm_cid"),
    }
    let mut registration = match imp::registration() {
        Ok(registration) => registration,
        Err(why) => return Mode::Locked(why),
    };
    if wish == "cpu_id" {
        registration.id = CpuId::CpuId;
    }
    if !super::membarrier::register() {
        return Mode::Locked("the kernel has no rseq barrier (needs Linux 5.10)");
    }
    if imp::self_test(registration) {
        Mode::PerCpu(registration)
    } else {
        Mode::Locked("the kernel did not restart a sequence in the self-test")
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod imp {
    use core::arch::asm;
    use core::ffi::c_void;
    use core::mem::MaybeUninit;
    use core::ptr::{null, null_mut};
    use core::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use super::{CpuId, Registration};

    const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;
    /// `mm_cid` ends at byte 28 of the area.
    const FEATURE_SIZE_WITH_MM_CID: libc::c_ulong = 28;

    /// glibc's registration, found through symbols that may be absent (old glibc, musl).
    pub(super) fn registration() -> Result<Registration, &'static str> {
        let (offset, size): (*const isize, *const u32);
        // SAFETY: reads two entries of the global offset table; weak symbols that no library defines are null there.
        unsafe {
            asm!(
                ".weak __rseq_offset",
                ".weak __rseq_size",
                "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
                "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
                offset = out(reg) offset,
                size = out(reg) size,
                options(nostack, preserves_flags, readonly),
            );
        }
        if offset.is_null() || size.is_null() {
            return Err("the C library registers no restartable sequences (needs glibc 2.35)");
        }
        // SAFETY: glibc's symbols, set before main and constant since.
        let (offset, size) = unsafe { (*offset, *size) };
        if size == 0 {
            return Err(
                "restartable sequences are not registered (old kernel, valgrind, seccomp or a tunable)",
            );
        }
        // `__rseq_size` understates what old glibc registered; the auxiliary vector says what the kernel fills in.
        // SAFETY: getauxval only reads.
        let features = unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) };
        let id = if features >= FEATURE_SIZE_WITH_MM_CID {
            CpuId::MmCid
        } else {
            CpuId::CpuId
        };
        Ok(Registration { offset, id })
    }

    /// Attempts of the self-test: on a busy machine the spinning thread may be preempted, and so restarted, before the
    /// barrier comes, which proves nothing.
    const ATTEMPTS: u32 = 8;

    /// A thread spins inside a section; the barrier must throw it out. Kernels that fail to restart sequences have
    /// been released (arm64, 6.19), and trusting one would hand one page to two owners.
    pub(super) fn self_test(registration: Registration) -> bool {
        (0..ATTEMPTS).any(|_| attempt(registration))
    }

    /// What the two threads of an attempt share.
    struct Attempt {
        registration: Registration,
        /// 1 once the section was entered.
        inside: AtomicU32,
        /// 1 once the barrier is on its way.
        sent: AtomicU32,
    }

    fn attempt(registration: Registration) -> bool {
        let attempt = Attempt {
            registration,
            inside: AtomicU32::new(0),
            sent: AtomicU32::new(0),
        };
        let mut spinner = MaybeUninit::uninit();
        // Not a thread of the standard library, which asks for its stack's bounds first, for which the C library allocates:
        // where malloc's heap is being made, that allocation would wait for this thread.
        // SAFETY: `spinner` is written; the attempt lives until the thread is joined below.
        let made = unsafe {
            libc::pthread_create(
                spinner.as_mut_ptr(),
                null(),
                run,
                (&raw const attempt).cast_mut().cast(),
            )
        };
        if made != 0 {
            return false;
        }
        let deadline = Instant::now() + Duration::from_secs(1);
        while attempt.inside.load(Ordering::Acquire) == 0 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        // A barrier that finds no thread in the section proves nothing.
        let done = attempt.inside.load(Ordering::Acquire) == 1 && {
            attempt.sent.store(1, Ordering::Release);
            super::super::membarrier::restart_sequences()
        };
        super::super::lock::order::sleeps("the self-test of restartable sequences");
        let mut aborted = null_mut();
        // SAFETY: made above, and joined once; it ends after a tenth of a second.
        let joined = unsafe { libc::pthread_join(spinner.assume_init(), &raw mut aborted) };
        joined == 0 && done && !aborted.is_null()
    }

    /// The thread of an attempt: answers with null unless it was restarted by the barrier.
    extern "C" fn run(attempt: *mut c_void) -> *mut c_void {
        // SAFETY: the attempt that made this thread waits for it.
        let shared = unsafe { &*attempt.cast::<Attempt>() };
        let aborted = spin(shared.registration, &shared.inside);
        // Restarted before the barrier was on its way: it was something else.
        if aborted && shared.sent.load(Ordering::Acquire) == 1 {
            attempt
        } else {
            null_mut()
        }
    }

    /// Enters a section, says so, and counts down; true when the kernel restarted it.
    fn spin(registration: Registration, inside: &AtomicU32) -> bool {
        let aborted: u32;
        // SAFETY: the section writes only `inside` and its own registers; the kernel is told of it through the
        // area that glibc registered at `offset` from the thread pointer.
        unsafe {
            asm!(
                ".pushsection __rseq_cs, \"aw\"",
                ".balign 32",
                "3: .long 0, 0",
                ".quad 4f, 5f - 4f, 7f",
                ".popsection",
                "xor {aborted:e}, {aborted:e}",
                "lea {tmp}, [rip + 3b]",
                "mov qword ptr fs:[{offset} + 8], {tmp}",
                "4:",
                "mov dword ptr [{inside}], 1",
                "6: dec {count}",
                "jnz 6b",
                "5:",
                ".pushsection .text.unlikely, \"ax\"",
                // The kernel wants this signature before the abort address; the prefix makes it an instruction.
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "7: mov {aborted:e}, 1",
                "jmp 5b",
                ".popsection",
                aborted = out(reg) aborted,
                tmp = out(reg) _,
                offset = in(reg) registration.offset,
                inside = in(reg) inside.as_ptr(),
                // A tenth of a second or less when nothing restarts it.
                count = inout(reg) 200_000_000_u64 => _,
                options(nostack),
            );
        }
        aborted == 1
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
mod imp {
    use super::Registration;

    pub(super) fn registration() -> Result<Registration, &'static str> {
        Err("restartable sequences are written for x86-64 Linux")
    }

    pub(super) fn self_test(_: Registration) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_stable_and_says_why() {
        let first = mode();
        assert_eq!(first, mode());
        assert!(
            first.to_string().starts_with("per CPU (") || first.to_string().starts_with("locked (")
        );
    }
}
