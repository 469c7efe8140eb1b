//! Barriers that one thread passes for all threads of this process: the one that restarts every running restartable sequence
//! (Linux 5.10), and the plain one (Linux 4.14).

use core::time::Duration;

use super::errno::KeptErrno;

const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED_RSEQ: libc::c_int = 1 << 8;
const PRIVATE_EXPEDITED_RSEQ: libc::c_int = 1 << 7;

fn membarrier(command: libc::c_int) -> bool {
    let _errno = KeptErrno::new();
    // SAFETY: the call takes numbers only and changes no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Registers the process for [`restart_sequences`]. False where the kernel cannot.
#[must_use]
pub(crate) fn register() -> bool {
    membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ)
}

/// When it returns true, every sequence of any thread of this process that was inside its critical section when
/// the call began has been restarted, and all later ones see the caller's earlier stores.
#[must_use]
pub(crate) fn restart_sequences() -> bool {
    membarrier(PRIVATE_EXPEDITED_RSEQ)
}

/// Registers the process for [`all_threads`]. False where the kernel cannot.
#[must_use]
pub fn register_all_threads() -> bool {
    !cfg!(miri) && membarrier(REGISTER_PRIVATE_EXPEDITED)
}

/// When it returns, each thread of this process has passed a full barrier: the caller sees the thread's stores from before it,
/// and the thread's loads from after it see the caller's earlier stores.
pub fn all_threads() {
    if membarrier(PRIVATE_EXPEDITED) {
        return;
    }
    // The process was registered, so a filter has forbidden the call since. No processor keeps a store to itself for nearly
    // as long.
    std::thread::sleep(Duration::from_millis(1));
}
