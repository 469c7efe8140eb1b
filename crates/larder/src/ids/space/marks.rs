//! Water marks: a call when identifiers become scarce, and one when they no longer are.

use super::IdSpace;
use super::ledger::{Crossed, Crossing, Ledger, Mark};
use crate::ids::rule::Rule;
use crate::ids::{Id, IdError};
use crate::os::lock::order::{Rank, calls};

/// Water marks of a space at most.
const MOST: usize = 64;

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    /// Calls `call` when the number of free identifiers falls below `free`, and again when it is back at it: once for each
    /// crossing. A space begins above its marks, or below those that are more than it has.
    ///
    /// What lies in magazines counts as taken, since the number is looked at where the map's lock is held: when batches are
    /// claimed and when batches come back. So the call that says 'below' is never late and at most what lies in magazines
    /// early (C × 192 identifiers, C being the number of CPUs), the one that says 'back' never early and late by as much;
    /// without magazines ([`Shape::Exact`](super::Shape::Exact), or where identifiers are scarce) both are exact. `alloc`
    /// and `free` pay nothing for it where they need no lock.
    ///
    /// The call is made after the lock is released, in the thread that crossed the mark. It may use the space. Two
    /// crossings that follow each other closely in two threads may call in either order: `Crossing::below` of the last
    /// one that *began* holds. It must not panic.
    ///
    /// ```
    /// use larder::ids::{IdSpace, rule::Lowest};
    ///
    /// let mut ids = IdSpace::new(0u8..10, Lowest)?;
    /// ids.on_crossing(3, Box::new(|c| println!("only {} identifiers are free", c.free)))?;
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Invalid`] for more than 64 marks, [`IdError::OutOfMemory`].
    pub fn on_crossing(
        &mut self,
        free: u64,
        call: Box<dyn Fn(Crossing) + Send + Sync>,
    ) -> Result<(), IdError> {
        if self.marks.len() == MOST {
            return Err(IdError::Invalid {
                what: format!("a water mark beside {MOST} others"),
                advice: "use one mark and look at the numbers when it calls",
            });
        }
        self.marks
            .try_reserve(1)
            .map_err(|_| IdError::OutOfMemory)?;
        self.count_returns();
        let mut ledger = self.lock();
        if ledger.free() < free {
            ledger.below |= 1 << self.marks.len();
        }
        drop(ledger);
        self.marks.push(Mark { free, call });
        Ok(())
    }

    /// From here on all that is free is in the map or in a magazine, where it is counted.
    fn count_returns(&mut self) {
        if self.front.get().is_none_or(|front| !front.in_place()) {
            return;
        }
        if let Some(front) = self.front.get_mut() {
            front.stock_returns(&self.config);
        }
        let mut ledger = self.lock();
        if let Some(front) = self.front.get() {
            self.move_all_to_map(front, &mut ledger);
        }
        ledger.end_sweep();
    }

    /// Looks which marks were crossed since the last look.
    pub(super) fn crossed(&self, ledger: &mut Ledger<R::Order>) -> Option<Crossed> {
        if self.marks.is_empty() {
            return None;
        }
        let free = ledger.free();
        let mut below = 0;
        for (i, mark) in self.marks.iter().enumerate() {
            below |= u64::from(free < mark.free) << i;
        }
        let marks = below ^ ledger.below;
        ledger.below = below;
        (marks != 0).then_some(Crossed { marks, below, free })
    }

    /// Makes the calls. The lock is not held.
    #[cold]
    pub(super) fn report(&self, crossed: Crossed) {
        for (i, mark) in self.marks.iter().enumerate() {
            if crossed.marks >> i & 1 == 1 {
                let _outside = calls("a water mark", Rank::IdLedger);
                (mark.call)(Crossing {
                    mark: mark.free,
                    below: crossed.below >> i & 1 == 1,
                    free: crossed.free,
                });
            }
        }
    }
}
