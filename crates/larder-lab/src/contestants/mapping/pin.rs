//! Which CPUs this process may use, and staying on one of them.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Numbers of the CPUs that this thread may run on, lowest first; empty where the kernel does not tell.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    sched_getaffinity(None)
        .map(|set| {
            (0..CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .collect()
        })
        .unwrap_or_default()
}

/// Two CPUs for a consumer and its helper: the first and the last allowed, which are the least likely to
/// be two threads of one core.
///
/// # Errors
/// The sentence for the list of what was skipped.
pub fn two_cpus() -> Result<(usize, usize), String> {
    match allowed_cpus().as_slice() {
        [first, .., last] => Ok((*first, *last)),
        _ => Err("needs two CPUs: a helper on the only CPU takes the consumer's time".to_owned()),
    }
}

/// Keeps the calling thread on one CPU. A refusal is harmless and ignored: the thread then moves as it did.
pub fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}
