//! The other threads: stopped while memory is searched, so that what they hold lies on their stacks.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;

use rustix::thread::futex;

use crate::os::lock::order::sleeps;

/// Most threads that are stopped. Of the others the whole stacks are searched.
const MOST: usize = 1024;
/// How long a thread may take to stop; one that blocks all signals never does.
const PATIENCE: u32 = 200;

/// Registers that a called function leaves alone, and so may hold what no stack does; and where the caller's stack begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here {
    pub(super) stack: usize,
    pub(super) registers: [usize; 6],
}

impl Here {
    /// Of the function that this is inlined into.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let mut registers = [0_usize; 6];
        let stack: usize;
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: reads registers, and writes into the array.
        unsafe {
            core::arch::asm!(
                "mov [{to}], rbx",
                "mov [{to} + 8], rbp",
                "mov [{to} + 16], r12",
                "mov [{to} + 24], r13",
                "mov [{to} + 32], r14",
                "mov [{to} + 40], r15",
                "mov {stack}, rsp",
                to = in(reg) registers.as_mut_ptr(),
                stack = out(reg) stack,
                options(nostack, preserves_flags),
            );
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            stack = (&raw mut registers) as usize;
        }
        Self { stack, registers }
    }
}

/// Goes up by one when threads may go on.
static GATE: AtomicU32 = AtomicU32::new(0);
/// 1 while threads shall stop.
static STOP: AtomicU32 = AtomicU32::new(0);
static STACKS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// Places in `STACKS` that are taken, and those that are written.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static ARRIVED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn stopped(_: c_int) {
    let gate = GATE.load(Ordering::Acquire);
    if STOP.load(Ordering::Acquire) == 0 {
        // Came too late.
        return;
    }
    // The system has put the registers on the stack, further up than this.
    let here = 0_usize;
    let slot = TAKEN.fetch_add(1, Ordering::AcqRel);
    if let Some(stack) = STACKS.get(slot) {
        stack.store((&raw const here) as usize, Ordering::Release);
    }
    ARRIVED.fetch_add(1, Ordering::AcqRel);
    while GATE.load(Ordering::Acquire) == gate {
        let _ = futex::wait(&GATE, futex::Flags::PRIVATE, gate, None);
    }
}

/// Threads that stand still until this is dropped.
pub(super) struct Stopped {
    asked: usize,
    /// The threads that were asked.
    ids: [i32; MOST],
    /// Whether all of them stand still.
    pub(super) all: bool,
}

impl Stopped {
    /// Stops all threads but this one.
    pub(super) fn all() -> Self {
        let mut stopped = Self {
            asked: 0,
            ids: [0; MOST],
            all: true,
        };
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        TAKEN.store(0, Ordering::Relaxed);
        ARRIVED.store(0, Ordering::Relaxed);
        for stack in &STACKS {
            stack.store(0, Ordering::Relaxed);
        }
        let mut signal = None;
        // Threads that are started meanwhile are found by looking again.
        for _ in 0..10 {
            let before = stopped.asked;
            let listed = each_thread(|id| {
                if id == own || stopped.ids[..stopped.asked].contains(&id) {
                    return;
                }
                if stopped.asked == MOST {
                    stopped.all = false;
                    return;
                }
                if signal.is_none() {
                    signal = install();
                    STOP.store(1, Ordering::Release);
                }
                let Some(signal) = signal else {
                    stopped.all = false;
                    return;
                };
                // SAFETY: sends a signal to a thread of this process; one that has ended is none any more.
                let sent =
                    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, signal) == 0 };
                if sent {
                    stopped.ids[stopped.asked] = id;
                    stopped.asked += 1;
                }
            });
            stopped.all &= listed;
            if stopped.asked == before {
                break;
            }
            stopped.wait();
        }
        stopped.all &= ARRIVED.load(Ordering::Acquire) >= stopped.asked;
        stopped
    }

    fn wait(&self) {
        sleeps("threads to stop");
        for _ in 0..PATIENCE {
            if ARRIVED.load(Ordering::Acquire) >= self.asked {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Where the stacks of those that stand still begin.
    pub(super) fn stacks(&self) -> impl Iterator<Item = usize> {
        STACKS
            .iter()
            .map(|stack| stack.load(Ordering::Acquire))
            .filter(|&stack| stack != 0)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        STOP.store(0, Ordering::Release);
        GATE.fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(&GATE, futex::Flags::PRIVATE, u32::MAX / 2);
    }
}

/// The handler, on a signal that the program does not use. It stays: a signal may still come.
fn install() -> Option<c_int> {
    (libc::SIGRTMIN() + 1..=libc::SIGRTMAX())
        .rev()
        .find(|&signal| {
            // SAFETY: all zeroes is a value; only a signal without a handler gets one.
            unsafe {
                let mut former: libc::sigaction = core::mem::zeroed();
                if libc::sigaction(signal, core::ptr::null(), &raw mut former) != 0 {
                    return false;
                }
                let own = stopped as *const () as usize;
                if former.sa_sigaction == own {
                    return true;
                }
                if former.sa_sigaction != libc::SIG_DFL {
                    return false;
                }
                let mut action: libc::sigaction = core::mem::zeroed();
                action.sa_sigaction = own;
                action.sa_flags = libc::SA_RESTART;
                libc::sigfillset(&raw mut action.sa_mask);
                libc::sigaction(signal, &raw const action, core::ptr::null_mut()) == 0
            }
        })
}

/// The numbers of this process's threads. False when they cannot be listed.
fn each_thread(mut f: impl FnMut(i32)) -> bool {
    use rustix::fs::{Mode, OFlags, RawDir};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = rustix::fs::open(c"/proc/self/task", flags, Mode::empty()) else {
        return false;
    };
    let mut room = [core::mem::MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&folder, &mut room);
    while let Some(entry) = entries.next() {
        let Ok(entry) = entry else {
            return false;
        };
        let name = core::str::from_utf8(entry.file_name().to_bytes());
        if let Some(id) = name.ok().and_then(|name| name.parse().ok()) {
            f(id);
        }
    }
    true
}
