//! When periodic work is due, by a clock that may stop or jump.

use core::sync::atomic::{AtomicU64, Ordering};

use super::coarse_now;

/// Nanoseconds from one tick of the coarse clock to the next, at most (CONFIG_HZ=100).
pub(crate) const CLOCK_TICK: u64 = 10_000_000;

/// The time at which work is due next. A clock that stops keeps it from being due; one that jumps back, further than an
/// interval, makes it due at once.
#[derive(Debug)]
pub(crate) struct Due(AtomicU64);

impl Due {
    /// After an interval from now on.
    pub(crate) fn after(interval: u64) -> Self {
        let due = Self(AtomicU64::new(0));
        due.begin(coarse_now(), interval);
        due
    }

    /// After an interval from `now` on; an interval of 0 ends with the clock's next tick.
    pub(crate) fn begin(&self, now: u64, interval: u64) {
        let next = now.saturating_add(interval.max(1));
        self.0.store(next, Ordering::Relaxed);
    }

    /// Whether it is due. Of the threads that ask one gets true, and the next interval begins. A load and two comparisons
    /// where it is not.
    #[inline]
    pub(crate) fn claim(&self, now: u64, interval: u64) -> bool {
        let due = self.0.load(Ordering::Relaxed);
        let interval = interval.max(1);
        if now < due && due - now <= interval {
            return false;
        }
        let next = now.saturating_add(interval);
        self.0
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_stop_and_jump() {
        let due = Due::after(0);
        due.begin(1000, 100);
        assert!((0..5).all(|_| !due.claim(1099, 100)), "it has stopped");
        assert!(due.claim(1100, 100));
        assert!(!due.claim(1100, 100), "claimed once");
        assert!(due.claim(1_000_000, 100), "it jumped forward");
        assert!(!due.claim(1_000_050, 100));
        assert!(due.claim(7, 100), "it jumped back");
        assert!(!due.claim(8, 100));
        assert!(due.claim(107, 100));
        due.begin(107, 0);
        assert!(!due.claim(107, 0) && due.claim(108, 0), "once a tick");
        due.begin(108, u64::MAX);
        assert!(!due.claim(u64::MAX - 1, u64::MAX), "never");
    }
}
