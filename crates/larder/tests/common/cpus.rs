//! The CPUs that a test's threads run on.

/// The CPUs that the calling thread may use.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    // SAFETY: a set of bits, all zero at first; the kernel fills it in.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        (0..libc::CPU_SETSIZE as usize)
            .filter(|&cpu| libc::CPU_ISSET(cpu, &set))
            .collect()
    }
}

/// Lets a thread run on these CPUs only, 0 being the caller. A thread that has just ended is no error.
pub(crate) fn pin(tid: libc::pid_t, cpus: &[usize]) {
    // SAFETY: a set of bits on the stack.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(tid, size_of_val(&set), &raw const set);
    }
}
