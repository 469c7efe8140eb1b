//! The barrier that restarts every running restartable sequence of this process (Linux 5.10).

const REGISTER_PRIVATE_EXPEDITED_RSEQ: libc::c_int = 1 << 8;
const PRIVATE_EXPEDITED_RSEQ: libc::c_int = 1 << 7;

fn membarrier(command: libc::c_int) -> bool {
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
