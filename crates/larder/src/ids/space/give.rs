//! The slow ways back: a batch to the map, or one identifier while the gate is up.

use super::IdSpace;
use super::front::Front;
use super::ledger::Ledger;
use super::sync::BATCH;
use super::take::FromMap;
use crate::ids::rule::{Order, Rule};
use crate::ids::{Id, IdError};

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    /// For spaces that have no cells, or have not used them yet.
    #[cold]
    #[inline(never)]
    pub(super) fn free_exact(&self, at: u64) -> Result<(), IdError> {
        let Some(mut ledger) = self.lock_exact() else {
            return self.free(self.id(at));
        };
        let given = ledger.order.give(at);
        self.finish(ledger);
        if given? {
            Ok(())
        } else {
            Err(IdError::NotAllocated {
                id: self.range.first() + at,
            })
        }
    }

    /// For an offset whose cell is free already, and that found no place in this CPU's magazines.
    #[cold]
    #[inline(never)]
    pub(super) fn free_slow(&self, front: &Front, at: usize) -> Result<(), IdError> {
        if front.in_place() {
            return self.free_in_map(front, at as u64);
        }
        let mut batch = [0_usize; 2 * BATCH];
        let mut n = 0;
        if front.gate.is_down() {
            // Where freed ones are handed out again from the same magazines, half of them stay.
            let most = if front.in_order() { 2 * BATCH } else { BATCH };
            n = take_returns(front, &mut batch[..most]);
            if n == 0 {
                // This CPU has no magazines yet, or they are being emptied.
                front.returns().put(at, &FromMap::new(self));
                return Ok(());
            }
        }
        let mut ledger = self.lock();
        self.flush(&mut ledger, &mut batch[..n]);
        let given = ledger.order.give(at as u64);
        if given.is_err() {
            // The caller keeps it. Still under the lock, so no verdict falls in between.
            front.states.enter(at);
        }
        self.finish(ledger);
        given.map(|known| debug_assert!(known, "{at} was free in its cell and in the map"))
    }

    /// Returns an offset to the map that was left in its cell while the gate is up. Another thread may have returned it
    /// already.
    fn free_in_map(&self, front: &Front, at: u64) -> Result<(), IdError> {
        let mut ledger = self.lock();
        let brought = self.move_to_map(front, &mut ledger, at, at);
        if brought.is_err() {
            // The caller keeps it. Still under the lock, so no verdict falls in between.
            front.states.enter(at as usize);
        }
        self.finish(ledger);
        brought
    }

    /// Brings what lies in this CPU's return magazine to the map.
    pub(super) fn flush_returns(&self, front: &Front, ledger: &mut Ledger<R::Order>) {
        let mut batch = [0_usize; 2 * BATCH];
        let n = take_returns(front, &mut batch);
        self.flush(ledger, &mut batch[..n]);
    }

    fn flush(&self, ledger: &mut Ledger<R::Order>, batch: &mut [usize]) {
        // Each magazine gave its last one first.
        for magazine in batch.chunks_mut(BATCH) {
            magazine.reverse();
        }
        for &at in &*batch {
            self.give_back(ledger, at as u64);
        }
        ledger.counts.flushes += u64::from(!batch.is_empty());
    }

    /// Gives the map an offset whose cell is free. What it has no memory for is left an orphan.
    pub(super) fn give_back(&self, ledger: &mut Ledger<R::Order>, at: u64) {
        match ledger.order.give(at) {
            Ok(known) => debug_assert!(known, "{at} was in a magazine and in the map"),
            Err(_) => {
                // Only the child of a fork comes here without cells: then it stays allocated.
                if let Some(front) = self.front.get() {
                    front.states.orphan(at as usize);
                    ledger.orphans += 1;
                }
            }
        }
    }
}

/// Takes what lies in this CPU's return magazine, as far as it fits; says how many.
fn take_returns(front: &Front, batch: &mut [usize]) -> usize {
    let mut n = 0;
    while n < batch.len()
        && let Some(at) = front.returns().try_get()
    {
        batch[n] = at;
        n += 1;
    }
    n
}
