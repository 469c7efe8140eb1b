//! A touched guard page: the signal that the system sends becomes a message.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// An access that the system refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) address: usize,
    /// The instruction.
    pub(super) ip: usize,
    /// Whether it writes, where the system says so.
    pub(super) write: Option<bool>,
}

/// What is asked first: true if the instruction can be tried again.
type Report = fn(&Fault) -> bool;

static REPORT: AtomicPtr<()> = AtomicPtr::new(null_mut());

struct Former(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written before the handler is there, then only read.
unsafe impl Sync for Former {}

static FORMER: Former = Former(UnsafeCell::new(MaybeUninit::uninit()));

/// Looks at segmentation faults from here on, until the program handles them itself. Only the first call counts.
pub(super) fn watch(report: Report) {
    if !REPORT.load(Ordering::Relaxed).is_null() {
        return;
    }
    // SAFETY: all zeroes is a value; the former handler's place is written before any thread reads it.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = touched as *const () as usize;
        // On the small stack where there is one: what was touched may be the end of the large one.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        let former = (*FORMER.0.get()).as_mut_ptr();
        if libc::sigaction(libc::SIGSEGV, core::ptr::null(), former) == 0 {
            REPORT.store(report as *mut (), Ordering::Release);
            libc::sigaction(libc::SIGSEGV, &raw const action, null_mut());
        }
    }
}

extern "C" fn touched(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the thread's own word.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the system's description of a fault, which has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let report = REPORT.load(Ordering::Acquire);
    // A signal that a process sent has no address.
    let is_fault = code > 0;
    let again = is_fault && !report.is_null() && {
        // SAFETY: what `watch` stored.
        let report = unsafe { core::mem::transmute::<*mut (), Report>(report) };
        report(&fault(address, context))
    };
    if !again {
        // The former handler gets the fault, as the same instruction is tried again. A signal that was sent does not come again
        // by itself.
        // SAFETY: the former action was written before this handler was there.
        unsafe {
            libc::sigaction(libc::SIGSEGV, (*FORMER.0.get()).as_ptr(), null_mut());
            if !is_fault {
                libc::raise(libc::SIGSEGV);
            }
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

fn fault(address: usize, context: *mut c_void) -> Fault {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    let (ip, write) = {
        /// The bit of the processor's error code.
        const WRITE: libc::greg_t = 2;
        // SAFETY: the system passes the context of the interrupted thread.
        let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        (
            registers[libc::REG_RIP as usize] as usize,
            Some(registers[libc::REG_ERR as usize] & WRITE != 0),
        )
    };
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    let (ip, write) = {
        let _ = context;
        (0, None)
    };
    Fault { address, ip, write }
}
