//! How many threads answer the kernel at a time.
//!
//! As many as there are CPUs: more would only take turns. But a thread that waits for a slow source does no work. So it lets
//! another one in for that time, and requests that need no source do not wait for those that do. A source that answers at once is
//! not worth a change of threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A wait that is longer is worth a change of threads.
const SLOW: Duration = Duration::from_micros(250);

thread_local! {
    /// This thread answers requests, and is not waiting for the source.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// What a thread waits for. Each has a mean of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum For {
    Data,
    Names,
}

#[derive(Debug)]
pub(crate) struct Gate {
    most: usize,
    inside: AtomicUsize,
    /// Threads that wait to be let in.
    waiting: Mutex<usize>,
    wake: Condvar,
    ended: AtomicBool,
    /// Recent waits for the source, in nanoseconds, on average.
    means: [AtomicU64; 2],
}

impl Gate {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            inside: AtomicUsize::new(0),
            waiting: Mutex::new(0),
            wake: Condvar::new(),
            ended: AtomicBool::new(false),
            means: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// Waits until this thread is needed. False when none is any more.
    pub(crate) fn enter(&self) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while self.inside.load(Ordering::Acquire) >= self.most
            && !self.ended.load(Ordering::Acquire)
        {
            *waiting += 1;
            waiting = self
                .wake
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
            *waiting -= 1;
        }
        self.inside.fetch_add(1, Ordering::AcqRel);
        INSIDE.set(true);
        !self.ended.load(Ordering::Acquire)
    }

    /// Between two requests: lets others go on where there are too many. False when none is needed any more.
    pub(crate) fn turn(&self) -> bool {
        if self.inside.load(Ordering::Relaxed) <= self.most {
            return true;
        }
        self.inside.fetch_sub(1, Ordering::AcqRel);
        self.enter()
    }

    /// No thread is needed any more.
    pub(crate) fn end(&self) {
        let _waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.ended.store(true, Ordering::Release);
        self.wake.notify_all();
    }

    /// Whether waits take long as a rule.
    pub(crate) fn is_slow(&self, what: For) -> bool {
        u128::from(self.means[what as usize].load(Ordering::Relaxed)) > SLOW.as_nanos()
    }

    /// Waits for the source by `work`; if that takes long as a rule and this thread answers requests, another one is let in.
    pub(crate) fn outside<T>(&self, what: For, work: impl FnOnce() -> T) -> T {
        let mean = &self.means[what as usize];
        let average = mean.load(Ordering::Relaxed);
        let slow = INSIDE.get() && self.is_slow(what);
        if slow {
            INSIDE.set(false);
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            self.inside.fetch_sub(1, Ordering::AcqRel);
            if *waiting > 0 {
                self.wake.notify_one();
            }
        }
        let begun = Instant::now();
        let out = work();
        let time = begun.elapsed().as_nanos() as u64;
        // A lost update is as good as a late one.
        mean.store(average - average / 8 + time / 8, Ordering::Relaxed);
        if slow {
            self.inside.fetch_add(1, Ordering::AcqRel);
            INSIDE.set(true);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_waits_lets_another_in() {
        let gate = Gate::new(1);
        gate.means[0].store(1_000_000_000, Ordering::Relaxed);
        let other = AtomicBool::new(false);
        std::thread::scope(|scope| {
            assert!(gate.enter());
            scope.spawn(|| {
                assert!(gate.enter());
                other.store(true, Ordering::Release);
                assert!(!gate.turn() || gate.inside.load(Ordering::Relaxed) == 1);
            });
            gate.outside(For::Data, || {
                while !other.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            });
            gate.end();
        });
    }
}
