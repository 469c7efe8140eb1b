//! How a thread stays out of the way, waits for another one, and what it costs.

use core::time::Duration;

/// Asks the kernel to run the calling thread only when a CPU is otherwise idle (`SCHED_IDLE`).
/// False when it would not.
pub(crate) fn lower_priority() -> bool {
    // SAFETY: the call reads the structure and changes only the calling thread's policy.
    unsafe {
        let param: libc::sched_param = core::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param) == 0
    }
}

/// CPU time that the calling thread has used.
///
/// ```
/// let before = larder::os::thread_cpu_time();
/// let sum: u64 = std::hint::black_box((0..10_000).sum());
/// let after = larder::os::thread_cpu_time();
/// assert!(after > before, "{sum} took {:?}", after - before);
/// ```
#[must_use]
pub fn thread_cpu_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(t.tv_sec).unwrap_or(0),
        u32::try_from(t.tv_nsec).unwrap_or(0),
    )
}

/// Looks of a thread that waits for another one before it sleeps between them.
const YIELDS: u32 = 200;
const PAUSE: Duration = Duration::from_micros(50);

/// What a thread does that has looked `turn` times whether another one has finished: it leaves that one its CPU and, after some
/// turns, sleeps. For waits that are rare, short, and have no lock to sleep on.
pub(crate) fn wait_turn(turn: u32) {
    super::lock::order::sleeps("another thread");
    if turn < YIELDS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(PAUSE);
    }
}

/// Turns that take this long at least.
pub(crate) const fn turns(long: Duration) -> u32 {
    YIELDS + (long.as_micros() / PAUSE.as_micros()) as u32
}
