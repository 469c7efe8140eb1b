//! A touched guard page: the signal that the system sends becomes a message.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::checked::inside;
use crate::heap::debug::DebugHeap;

/// The heap whose guard pages are watched: that of the program.
static HEAP: AtomicPtr<DebugHeap> = AtomicPtr::new(core::ptr::null_mut());

struct Former(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written before the handler is there, then only read.
unsafe impl Sync for Former {}

static FORMER: Former = Former(UnsafeCell::new(MaybeUninit::uninit()));

/// Looks at segmentation faults from here on, until the program handles them itself.
pub(super) fn watch(heap: &'static DebugHeap) {
    if heap.options().guard == 0 || !HEAP.load(Ordering::Relaxed).is_null() {
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
            HEAP.store(core::ptr::from_ref(heap).cast_mut(), Ordering::Release);
            libc::sigaction(libc::SIGSEGV, &raw const action, core::ptr::null_mut());
        }
    }
}

extern "C" fn touched(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the thread's own word.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the system's description of a fault, which has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // SAFETY: null, or a heap that stays.
    let heap = unsafe { HEAP.load(Ordering::Acquire).as_ref() };
    // A signal that a process sent has no address.
    let is_fault = code > 0;
    let reported = heap
        .filter(|_| is_fault)
        .is_some_and(|heap| inside(|| heap.touched(address, interrupted(context))));
    if !reported {
        // No guard page of this heap: the former handler gets the fault, as the same instruction is tried again. A
        // signal that was sent does not come again by itself.
        // SAFETY: the former action was written before this handler was there.
        unsafe {
            libc::sigaction(
                libc::SIGSEGV,
                (*FORMER.0.get()).as_ptr(),
                core::ptr::null_mut(),
            );
            if !is_fault {
                libc::raise(libc::SIGSEGV);
            }
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// The instruction that was interrupted.
fn interrupted(context: *mut c_void) -> usize {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        // SAFETY: the system passes the context of the interrupted thread.
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        let _ = context;
        0
    }
}
