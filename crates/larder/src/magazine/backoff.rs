//! Memory that the system refused is not asked for again at once.

use core::sync::atomic::{AtomicU32, Ordering};

/// Requests that are not made after one was refused. At a memory limit every put would otherwise make three system calls, of
/// which one fails. Memory that is freed meanwhile is found a few puts later.
const SPARED: u32 = 255;

/// Limits the requests for something that its owner can do without for a while.
#[derive(Debug, Default)]
pub(super) struct Backoff(AtomicU32);

impl Backoff {
    /// The result of `attempt`. After a `None`, the next [`SPARED`] calls return `None` without calling it.
    ///
    /// Calls of several threads at the same time may count as one: only the cost depends on it.
    pub(super) fn attempt<T>(&self, attempt: impl FnOnce() -> Option<T>) -> Option<T> {
        let left = self.0.load(Ordering::Relaxed);
        if left > 0 {
            self.0.store(left - 1, Ordering::Relaxed);
            return None;
        }
        let got = attempt();
        if got.is_none() {
            self.0.store(SPARED, Ordering::Relaxed);
        }
        got
    }
}
