//! Several identifiers at once.

use super::front::Front;
use super::gate::{FREE, LOOSE};
use super::sync::{Ordering, fence};
use super::{IdSpace, LOT, SharedRule};
use crate::ids::IdError;
use crate::ids::rule::Order;

impl<R: SharedRule> IdSpace<R> {
    /// Takes identifiers for all of `out`, in the order of the rule, and says how many it took: fewer only when at some
    /// moment of the call none was free.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), when not a single one was taken.
    pub fn alloc_many(&self, out: &mut [u64]) -> Result<usize, IdError> {
        let front = self.front.get();
        let mut n = 0;
        // What lies ready for this CPU first, for it was claimed first.
        if let Some(front) = front {
            while n < out.len()
                && let Some(at) = front.lots.try_get()
                && front.states.enter(at)
            {
                out[n] = self.id(at as u64);
                n += 1;
            }
        }
        if out.len() - n >= LOT || front.is_none() {
            let mut ledger = self.lock();
            // It may have been made meanwhile.
            let front = self.front.get();
            let taken = match front {
                Some(front) if front.in_place() && !ledger.direct => {
                    self.sweep(front, &mut ledger, &mut out[n..])
                }
                _ => ledger.order.take_many(&mut out[n..]),
            };
            ledger.early = ledger.early.saturating_add(out.len() - n);
            if let Ok(taken) = taken {
                for at in &mut out[n..n + taken] {
                    if let Some(front) = front {
                        front.states.touch(*at);
                        front.states.enter(*at as usize);
                    }
                    *at = self.id(*at);
                }
                n += taken;
            }
            self.finish(ledger);
            if let Err(error @ IdError::OutOfMemory) = taken
                && n == 0
            {
                return Err(error);
            }
        }
        while n < out.len() {
            match self.alloc() {
                Ok(id) => out[n] = id,
                Err(error) if n == 0 => return Err(error),
                Err(_) => break,
            }
            n += 1;
        }
        Ok(n)
    }

    /// Gives all of `ids` back, or none of them.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] and [`IdError::NotAllocated`] name the first that is not allocated, which may be one that
    /// `ids` names twice; then all others are still allocated. [`IdError::OutOfMemory`]: some of
    /// them still are; [`is_allocated`](Self::is_allocated) says which.
    pub fn free_many(&self, ids: &[u64]) -> Result<(), IdError> {
        for &id in ids {
            self.range.offset(id)?;
        }
        match ids {
            [] => return Ok(()),
            [id] => return self.free(*id),
            _ => {}
        }
        let Some(front) = self.front.get() else {
            return self.free_many_exact(ids);
        };
        let first = self.range.first();
        for (i, &id) in ids.iter().enumerate() {
            if !front.states.begin_to_leave((id - first) as usize) {
                for &id in &ids[..i] {
                    front.states.enter((id - first) as usize);
                }
                return Err(IdError::NotAllocated { id });
            }
        }
        if front.in_place() {
            return self.free_many_in_place(front, ids);
        }
        if ids.len() < LOT && front.gate.is_down() {
            // One by one, as long as this CPU's magazines have room.
            for (i, &id) in ids.iter().enumerate() {
                let at = (id - first) as usize;
                front.states.end_leaving(at, FREE);
                fence(Ordering::SeqCst);
                if front.gate.is_down() && front.returns().try_put(at) {
                    continue;
                }
                if let Err(error) = self.free_slow(front, at) {
                    for &id in &ids[i + 1..] {
                        front.states.enter((id - first) as usize);
                    }
                    return Err(error);
                }
            }
            return Ok(());
        }
        let mut ledger = self.lock();
        let mut result = Ok(());
        for &id in ids {
            let at = (id - first) as usize;
            if result.is_ok() {
                // Both under the lock, so no verdict falls in between.
                result = ledger.order.give(at as u64).map(|_| ());
            }
            match result {
                Ok(()) => front.states.end_leaving(at, FREE),
                Err(_) => {
                    front.states.enter(at);
                }
            }
        }
        ledger.counts.flushes += 1;
        self.finish(ledger);
        result
    }

    /// All of them are about to leave.
    fn free_many_in_place(&self, front: &Front, ids: &[u64]) -> Result<(), IdError> {
        let first = self.range.first();
        for &id in ids {
            front.states.end_leaving((id - first) as usize, LOOSE);
        }
        fence(Ordering::SeqCst);
        if front.gate.is_down() {
            return Ok(());
        }
        let mut ledger = self.lock();
        let mut result = Ok(());
        for &id in ids {
            let at = id - first;
            if let Err(error) = self.bring_home(front, &mut ledger, at, at) {
                front.states.enter(at as usize);
                result = Err(error);
            }
        }
        self.finish(ledger);
        result
    }

    fn free_many_exact(&self, ids: &[u64]) -> Result<(), IdError> {
        let mut ledger = self.lock();
        if self.front.get().is_some() {
            drop(ledger);
            return self.free_many(ids);
        }
        let first = self.range.first();
        let mut result = Ok(());
        let mut given = 0;
        for &id in ids {
            match ledger.order.give(id - first) {
                Ok(true) => given += 1,
                Ok(false) => result = Err(IdError::NotAllocated { id }),
                Err(error) => result = Err(error),
            }
            if result.is_err() {
                break;
            }
        }
        if result.is_err() {
            // The lock was held all the time, so nobody saw them free; their memory is there.
            for &id in ids[..given].iter().rev() {
                let _ = ledger.order.take_back(id - first);
            }
        }
        self.finish(ledger);
        result
    }
}
