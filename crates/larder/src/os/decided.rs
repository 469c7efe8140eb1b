//! A value that is decided once, by the first thread that needs it.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

use super::fork;

const NONE: u32 = 0;
const DONE: u32 = u32::MAX;

/// A value that is found out at its first use, such as the fastest routine of this machine.
///
/// `std::sync::OnceLock` would do but for forks: the child of a fork that comes while one thread decides would wait for
/// ever for a thread that it does not have. Here no thread waits. Threads that come at the same time each decide for
/// themselves, and the first result is kept.
#[derive(Debug)]
pub(crate) struct Decided<T> {
    /// `NONE`, `DONE`, or the generation of the process that is writing the value.
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written by the thread that moved `state` to its generation, and read only after `DONE`; it is `Copy`,
// so nothing is ever dropped or borrowed.
unsafe impl<T: Copy + Send> Sync for Decided<T> {}

impl<T: Copy> Decided<T> {
    /// Undecided.
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU32::new(NONE),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Decided already.
    pub(crate) const fn of(value: T) -> Self {
        Self {
            state: AtomicU32::new(DONE),
            value: UnsafeCell::new(MaybeUninit::new(value)),
        }
    }

    /// The value, if it is decided.
    #[inline]
    pub(crate) fn get(&self) -> Option<T> {
        // SAFETY: `DONE` is stored after the value was written, and no thread writes it again.
        (self.state.load(Ordering::Acquire) == DONE)
            .then(|| unsafe { (*self.value.get()).assume_init() })
    }

    /// The value; calls `decide` when there is none.
    #[inline]
    pub(crate) fn get_or_decide(&self, decide: impl FnOnce() -> T) -> T {
        self.get().unwrap_or_else(|| self.remember(decide()))
    }

    /// Keeps `value` unless another thread's value came first. Returns the value that is kept, or `value` while another
    /// thread is writing its own.
    #[cold]
    fn remember(&self, value: T) -> T {
        fork::install();
        let now = fork::generation();
        let seen = self.state.load(Ordering::Acquire);
        // Another writer in this process will be done at once. A writer of an earlier generation does not exist in this
        // process.
        if seen != DONE
            && seen != now
            && self
                .state
                .compare_exchange(seen, now, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        {
            // SAFETY: the exchange made this thread the only writer, and no thread reads before `DONE`.
            unsafe { (*self.value.get()).write(value) };
            self.state.store(DONE, Ordering::Release);
        }
        self.get().unwrap_or(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decision_stays() {
        let decided = Decided::new();
        assert_eq!(decided.get(), None);
        assert_eq!(decided.get_or_decide(|| 1), 1);
        assert_eq!(decided.get_or_decide(|| 2), 1);
        assert_eq!(decided.get(), Some(1));
    }

    #[test]
    fn threads_that_come_at_once_agree_in_the_end() {
        let decided = Decided::new();
        std::thread::scope(|s| {
            for me in 0..8 {
                let decided = &decided;
                s.spawn(move || decided.get_or_decide(|| [me; 8]));
            }
        });
        let kept = decided.get().unwrap();
        assert!(kept.iter().all(|&v| v == kept[0]), "torn: {kept:?}");
    }

    #[test]
    fn a_child_takes_over_from_a_writer_that_it_does_not_have() {
        let decided = Decided::new();
        // What the child of a fork finds that came while another thread was writing.
        decided.state.store(DONE - 1, Ordering::Relaxed);
        assert_eq!(decided.get_or_decide(|| 3), 3);
        assert_eq!(
            decided.get(),
            Some(3),
            "the child must not decide again and again"
        );
    }

    #[test]
    fn nobody_waits_for_a_writer() {
        let decided = Decided::new();
        fork::install();
        decided.state.store(fork::generation(), Ordering::Relaxed);
        assert_eq!(decided.get_or_decide(|| 4), 4);
        assert_eq!(decided.get(), None, "another thread is writing");
    }
}
