//! Waiting for an identifier.
//!
//! A thread waits only after a verdict: all are allocated, or all that are free rest. So the gate is up (or there are no
//! magazines at all) and stays up while a thread waits: every free then comes by under the lock and serves the thread
//! that waits longest. So nothing is lost between the verdict and the waiting, and the fast paths know nothing of it.
//!
//! An identifier that must rest first serves no thread when it is freed, and no call reports the end of its rest. Then
//! the thread that waits longest is woken once, to look for itself from time to time.

use std::time::{Duration, Instant};

use super::IdSpace;
use super::ledger::Ledger;
use super::sync::thread;
use crate::ids::rule::{Order, Rule};
use crate::ids::{Id, IdError};
use crate::os::lock::order::sleeps;

/// Time between looks at identifiers that rest: no call reports the end of a rest.
const LOOK: Duration = Duration::from_millis(1);

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    /// As [`alloc`](Self::alloc), but waits for a free one. The thread that waits longest is served first. A call that does
    /// not wait, be it for several identifiers, for a run or for a given one, gets none before the threads that wait.
    ///
    /// Where free identifiers rest ([`Rested`](crate::ids::rule::Rested)), it looks every millisecond whether one has rested
    /// enough: so this is what to call when near full means to wait. A rest that is counted in allocations ends only when
    /// others allocate, which they cannot when all that is free rests.
    ///
    /// ```
    /// # use larder::ids::{IdSpace, rule::Any};
    /// let one = IdSpace::new(0u8..1, Any)?;
    /// let id = one.alloc()?;
    /// std::thread::scope(|threads| {
    ///     let waiting = threads.spawn(|| one.alloc_wait());
    ///     one.free(id)?;
    ///     assert_eq!(waiting.join().unwrap(), Ok(id));
    ///     Ok::<_, larder::ids::IdError>(())
    /// })?;
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`].
    pub fn alloc_wait(&self) -> Result<T, IdError> {
        self.alloc_until(None)
    }

    /// As [`alloc_wait`](Self::alloc_wait), for at most `timeout`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use larder::ids::{IdError, IdSpace, rule::Any};
    /// let one = IdSpace::new(0u8..1, Any)?;
    /// assert_eq!(one.alloc_timeout(Duration::from_millis(1))?, 0);
    /// assert_eq!(one.alloc_timeout(Duration::from_millis(1)), Err(IdError::Full { allocated: 1 }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Full`] and [`IdError::Resting`] when the time is over, [`IdError::OutOfMemory`].
    pub fn alloc_timeout(&self, timeout: Duration) -> Result<T, IdError> {
        // A time too long to be reckoned with is for ever.
        match Instant::now().checked_add(timeout) {
            Some(deadline) => self.alloc_until(Some(deadline)),
            None => self.alloc_until(None),
        }
    }

    fn alloc_until(&self, deadline: Option<Instant>) -> Result<T, IdError> {
        loop {
            match self.alloc() {
                Err(IdError::Full { .. } | IdError::Resting { .. }) => {}
                other => return other,
            }
            let ticket = {
                let mut ledger = self.lock();
                if self.front.get().is_some() && !(ledger.direct && ledger.clean) {
                    continue;
                }
                // What became free since the verdict goes to the first thread in the queue, which may be this one.
                let ticket = ledger.queue.join(thread::current())?;
                self.finish(ledger);
                ticket
            };
            return self.await_grant(ticket, deadline).map(|at| self.id(at));
        }
    }

    fn await_grant(&self, ticket: u64, deadline: Option<Instant>) -> Result<u64, IdError> {
        loop {
            let mut ledger = self.lock();
            let stopped = self.serve(&mut ledger);
            let granted = ledger.queue.collect(ticket);
            let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if granted.is_some() || over {
                // What is so now: much may have changed since it began to wait.
                let verdict = stopped.unwrap_or(IdError::Full {
                    allocated: ledger.order.taken(),
                });
                if granted.is_none() {
                    ledger.queue.leave(ticket);
                }
                self.finish(ledger);
                return granted.ok_or(verdict);
            }
            let looks = ledger.queue.looks(ticket, stopped.is_some());
            drop(ledger);
            sleeps("an identifier");
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match (left, looks) {
                (None, false) => thread::park(),
                (Some(left), false) => thread::park_timeout(left),
                (left, true) => thread::park_timeout(left.unwrap_or(LOOK).min(LOOK)),
            }
        }
    }

    /// Hands what is free in the map to the threads that wait. An error says why a thread got none: what is free rests,
    /// or could not be had without memory. No call reports the end of that, so the first thread in the queue is woken
    /// to look from time to time. `None` says that no thread waits any more, or that the map has nothing.
    #[inline]
    pub(super) fn serve(&self, ledger: &mut Ledger<R::Order>) -> Option<IdError> {
        while !ledger.queue.is_empty() {
            let at = match ledger.order.take() {
                Ok(at) => at?,
                Err(error) => {
                    ledger.resting |= matches!(error, IdError::Resting { .. });
                    ledger.queue.wake_first();
                    return Some(error);
                }
            };
            if let Some(front) = self.front.get() {
                front.states.touch(at);
                front.states.enter(at as usize);
            }
            ledger.queue.grant(at);
        }
        None
    }
}
