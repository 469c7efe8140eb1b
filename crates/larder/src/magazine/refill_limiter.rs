//! The refill limiter: it counts the threads that look for rounds beyond their CPU's magazines at this moment.
//!
//! Such a thread may have a magazine in hand or wait for the supply, and no other thread sees what it holds. When there
//! are more of them than CPUs, some do not run, and each thread that comes later finds the per-CPU magazines and the depot
//! empty although plenty has been fetched. If each fetched a magazine's worth, the stock would hold as many magazines as
//! there are threads. So the threads beyond the number of CPUs fetch one round each.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::os::{fork, usable_cpus};

/// The number of threads, in the lower half, and the fork generation that they belong to. Threads that do not exist in the
/// child of a fork must not count there for ever.
#[derive(Debug)]
pub(super) struct RefillLimiter {
    state: AtomicU64,
    cpus: u32,
}

/// A thread that has entered, until it is dropped.
#[derive(Debug)]
pub(super) struct Refill<'a> {
    limiter: &'a RefillLimiter,
    generation: u32,
    /// Threads inside when this one entered, itself included.
    rank: u32,
}

fn pack(generation: u32, threads: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(threads)
}

/// Generation and number of threads.
fn unpack(state: u64) -> (u32, u32) {
    ((state >> 32) as u32, state as u32)
}

impl RefillLimiter {
    pub(super) fn new() -> Self {
        Self::for_cpus(usable_cpus())
    }

    fn for_cpus(cpus: usize) -> Self {
        Self {
            state: AtomicU64::new(0),
            cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        }
    }

    pub(super) fn enter(&self) -> Refill<'_> {
        let generation = fork::generation();
        let next = |state| match unpack(state) {
            (of, threads) if of == generation => pack(generation, threads + 1),
            _ => pack(generation, 1),
        };
        let before = self
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                Some(next(state))
            })
            .unwrap_or_else(|state| state);
        Refill {
            limiter: self,
            generation,
            rank: unpack(next(before)).1,
        }
    }
}

impl Refill<'_> {
    /// Rounds that this thread may fetch when a magazine holds `rounds`.
    pub(super) fn share(&self, rounds: usize) -> usize {
        if self.rank <= self.limiter.cpus {
            rounds
        } else {
            1
        }
    }
}

impl Drop for Refill<'_> {
    fn drop(&mut self) {
        // Entered before a fork and left in the child: the child's count does not include it.
        let _ = self
            .limiter
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                let (of, threads) = unpack(state);
                (of == self.generation).then(|| pack(of, threads.saturating_sub(1)))
            });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn those_beyond_the_cpus_fetch_one() {
        let limiter = RefillLimiter::for_cpus(2);
        let (a, b) = (limiter.enter(), limiter.enter());
        assert_eq!((a.share(63), b.share(63)), (63, 63));
        let c = limiter.enter();
        assert_eq!(c.share(63), 1);
        drop(a);
        drop(b);
        assert_eq!(
            limiter.enter().share(63),
            63,
            "only the third is left inside"
        );
    }

    #[test]
    fn threads_of_before_a_fork_do_not_count() {
        let limiter = RefillLimiter::for_cpus(1);
        let old = fork::generation().wrapping_sub(1);
        limiter.state.store(pack(old, 40), Ordering::Relaxed);
        let refill = limiter.enter();
        assert_eq!(refill.share(9), 9);
        drop(Refill {
            limiter: &limiter,
            generation: old,
            rank: 1,
        });
        assert_eq!(limiter.enter().share(9), 1, "who left was not counted in");
    }
}
