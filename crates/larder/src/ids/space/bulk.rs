//! Several identifiers at once.

use super::IdSpace;
use super::front::Front;
use super::gate::{FREE, UNOWNED};
use super::ledger::Ledger;
use super::sync::{BATCH, Ordering, fence};
use crate::ids::rule::{Order, Rule};
use crate::ids::{Id, IdError, IdRange};
use core::ops::RangeBounds;

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    /// Takes identifiers for all of `out`, in the order of the rule, and says how many it took: fewer only when at some
    /// moment of the call none was free.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), when not a single one was taken.
    ///
    /// ```
    /// use larder::ids::{IdSpace, rule::Lowest};
    ///
    /// let ids = IdSpace::new(10u8..13, Lowest)?;
    /// let mut out = [0; 5];
    /// assert_eq!(ids.alloc_many(&mut out)?, 3);
    /// assert_eq!(out[..3], [10, 11, 12]);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn alloc_many(&self, out: &mut [T]) -> Result<usize, IdError> {
        let front = self.front.get();
        let mut n = 0;
        // What lies ready for this CPU first, for it was taken from the map first.
        if let Some(front) = front {
            while n < out.len()
                && let Some(at) = front.ready.try_get()
                && front.states.enter(at)
            {
                out[n] = self.id(at as u64);
                n += 1;
            }
        }
        if out.len() - n >= BATCH || front.is_none() {
            let mut ledger = self.lock();
            // It may have been made meanwhile.
            let front = self.front.get();
            ledger.early = ledger.early.saturating_add(out.len() - n);
            let mut failed = None;
            for part in out[n..].chunks_mut(BATCH) {
                let mut batch = [0; BATCH];
                match self.take_batch(front, &mut ledger, &mut batch[..part.len()]) {
                    Ok(taken) => {
                        for (id, &at) in part.iter_mut().zip(&batch[..taken]) {
                            if let Some(front) = front {
                                front.states.touch(at);
                                front.states.enter(at as usize);
                            }
                            *id = self.id(at);
                        }
                        n += taken;
                        if taken < part.len() {
                            break;
                        }
                    }
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            self.finish(ledger);
            if let Some(error @ IdError::OutOfMemory) = failed
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

    /// Offsets of the map, or of the places where they lie, for a caller that takes them all.
    fn take_batch(
        &self,
        front: Option<&Front>,
        ledger: &mut Ledger<R::Order>,
        batch: &mut [u64],
    ) -> Result<usize, IdError> {
        match front {
            Some(front) if front.in_place() && !ledger.direct => self.sweep(front, ledger, batch),
            // Threads that wait come first, as in `take_behind`.
            _ => match self.serve(ledger) {
                Some(error) => Err(error),
                None => ledger.order.take_many(batch),
            },
        }
    }

    /// Gives all of `ids` back, or none of them.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] and [`IdError::NotAllocated`] name the first that is not allocated, which may be one that
    /// `ids` names twice; then all others are still allocated. [`IdError::OutOfMemory`]: some of
    /// them still are; [`is_allocated`](Self::is_allocated) says which.
    ///
    /// ```
    /// use larder::ids::{IdError, IdSpace, rule::Any};
    ///
    /// let ids = IdSpace::new(0u8..8, Any)?;
    /// ids.reserve(0u8..8)?;
    /// assert_eq!(ids.free_many(&[1, 2, 1]), Err(IdError::NotAllocated { id: 1 }));
    /// assert_eq!(ids.allocated(), 8);
    /// ids.free_many(&[1, 2])?;
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn free_many(&self, ids: &[T]) -> Result<(), IdError> {
        for &id in ids {
            self.offset(id)?;
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
            if !front.states.begin_to_leave((id.to_u64() - first) as usize) {
                for &id in &ids[..i] {
                    front.states.enter((id.to_u64() - first) as usize);
                }
                return Err(IdError::NotAllocated { id: id.to_u64() });
            }
        }
        if front.in_place() {
            return self.leave_in_place(front, ids.iter().map(|id| id.to_u64() - first));
        }
        if ids.len() < BATCH && front.gate.is_down() {
            // One by one, as long as this CPU's magazines have room.
            for (i, &id) in ids.iter().enumerate() {
                let at = (id.to_u64() - first) as usize;
                front.states.end_leaving(at, FREE);
                fence(Ordering::SeqCst);
                if front.gate.is_down() && front.returns().try_put(at) {
                    continue;
                }
                if let Err(error) = self.free_slow(front, at) {
                    for &id in &ids[i + 1..] {
                        front.states.enter((id.to_u64() - first) as usize);
                    }
                    return Err(error);
                }
            }
            return Ok(());
        }
        self.leave_for_map(front, ids.iter().map(|id| id.to_u64() - first))
    }

    /// Gives all identifiers of a range back, or none of them: a run of [`alloc_range`](Self::alloc_range), or a band
    /// that was set apart by [`reserve`](Self::reserve).
    ///
    /// Takes time in proportion to the range, and does not use what lies ready for this CPU.
    ///
    /// # Errors
    /// [`IdError::NotAllocated`] names the first one that is not allocated; then all others still are.
    /// [`IdError::OutOfRange`], [`IdError::Invalid`] for an empty range. [`IdError::OutOfMemory`]: some of them still are
    /// allocated; [`is_allocated`](Self::is_allocated) says which.
    ///
    /// ```
    /// use larder::ids::{IdError, IdSpace, rule::Cyclic};
    ///
    /// let subids = IdSpace::new(100_000u32..1 << 20, Cyclic)?;
    /// let first = subids.alloc_range(65536, 65536)?;
    /// subids.free(first + 9)?;
    /// let all = first..first + 65536;
    /// assert_eq!(subids.free_range(all.clone()), Err(IdError::NotAllocated { id: (first + 9).into() }));
    /// subids.alloc_at(first + 9)?;
    /// subids.free_range(all)?;
    /// assert_eq!(subids.allocated(), 0);
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn free_range(&self, range: impl RangeBounds<T>) -> Result<(), IdError> {
        let (first, last) = self.range.offsets(IdRange::of(&range)?)?;
        self.free_span(first, last)
    }

    fn free_span(&self, first: u64, last: u64) -> Result<(), IdError> {
        let Some(front) = self.front.get() else {
            let Some(mut ledger) = self.lock_exact() else {
                return self.free_span(first, last);
            };
            let given = ledger.order.give_all(first, last);
            self.finish(ledger);
            return given?.map_err(|at| IdError::NotAllocated {
                id: self.range.first() + at,
            });
        };
        for at in first..=last {
            if !front.states.begin_to_leave(at as usize) {
                for at in first..at {
                    front.states.enter(at as usize);
                }
                return Err(IdError::NotAllocated {
                    id: self.range.first() + at,
                });
            }
        }
        if front.in_place() {
            self.leave_in_place(front, first..=last)
        } else {
            self.leave_for_map(front, first..=last)
        }
    }

    /// All of them are about to leave, and go to the map in one go.
    fn leave_for_map(
        &self,
        front: &Front,
        leaving: impl Iterator<Item = u64>,
    ) -> Result<(), IdError> {
        let mut ledger = self.lock();
        let mut result = Ok(());
        for at in leaving {
            if result.is_ok() {
                // Both under the lock, so no verdict falls in between.
                result = ledger.order.give(at).map(|_| ());
            }
            match result {
                Ok(()) => front.states.end_leaving(at as usize, FREE),
                Err(_) => {
                    front.states.enter(at as usize);
                }
            }
        }
        ledger.counts.flushes += 1;
        self.finish(ledger);
        result
    }

    /// All of them are about to leave, and stay where they are.
    fn leave_in_place(
        &self,
        front: &Front,
        leaving: impl Iterator<Item = u64> + Clone,
    ) -> Result<(), IdError> {
        for at in leaving.clone() {
            front.states.end_leaving(at as usize, UNOWNED);
        }
        fence(Ordering::SeqCst);
        if front.gate.is_down() {
            return Ok(());
        }
        let mut ledger = self.lock();
        let mut result = Ok(());
        for at in leaving {
            if let Err(error) = self.move_to_map(front, &mut ledger, at, at) {
                front.states.enter(at as usize);
                result = Err(error);
            }
        }
        self.finish(ledger);
        result
    }

    fn free_many_exact(&self, ids: &[T]) -> Result<(), IdError> {
        let Some(mut ledger) = self.lock_exact() else {
            return self.free_many(ids);
        };
        let first = self.range.first();
        let mut result = Ok(());
        let mut given = 0;
        for &id in ids {
            match ledger.order.give(id.to_u64() - first) {
                Ok(true) => given += 1,
                Ok(false) => result = Err(IdError::NotAllocated { id: id.to_u64() }),
                Err(error) => result = Err(error),
            }
            if result.is_err() {
                break;
            }
        }
        if result.is_err() {
            // The lock was held all the time, so no thread saw them free; their memory is there.
            for &id in ids[..given].iter().rev() {
                let _ = ledger.order.take_back(id.to_u64() - first);
            }
        }
        self.finish(ledger);
        result
    }
}
