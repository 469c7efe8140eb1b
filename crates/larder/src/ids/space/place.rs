//! Operations on places in the map: this very identifier, several in a row, a band that is set apart.

use super::IdSpace;
use super::front::Front;
use super::ledger::Ledger;
use super::take::{FromMap, rest};
use crate::ids::rule::{Order, Rule};
use crate::ids::{Id, IdError, IdRange};
use core::ops::RangeBounds;

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    /// A space in which exactly the identifiers of `live` are allocated: what is left when the space is lost but its
    /// users still know what they have. As [`Ids::rebuild`](crate::ids::Ids::rebuild).
    ///
    /// # Errors
    /// [`IdError::Taken`] for one that is there twice, [`IdError::OutOfRange`] for one that does not belong, and those
    /// of [`new`](Self::new).
    ///
    /// ```
    /// use larder::ids::{IdError, IdSpace, rule::Cyclic};
    ///
    /// let pids = IdSpace::rebuild(1u32..32768, Cyclic, [1, 2, 4])?;
    /// assert_eq!((pids.alloc()?, pids.alloc()?, pids.allocated()), (3, 5, 5));
    /// let twice = IdSpace::rebuild(1u32..32768, Cyclic, [7, 7]);
    /// assert_eq!(twice.err(), Some(IdError::Taken { id: 7 }));
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn rebuild(
        range: impl RangeBounds<T>,
        rule: R,
        live: impl IntoIterator<Item = T>,
    ) -> Result<Self, IdError> {
        let space = Self::new(range, rule)?;
        // The lock is not held in between: the iterator may fork, which takes all locks.
        for id in live {
            space.alloc_at(id)?;
        }
        Ok(space)
    }

    /// Takes this very identifier, also out of another CPU's magazine.
    ///
    /// Costs an emptying of all magazines when it is free, but not in the map.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], [`IdError::Taken`], [`IdError::Resting`], [`IdError::OutOfMemory`].
    ///
    /// ```
    /// use larder::ids::{IdError, IdSpace, rule::Cyclic};
    ///
    /// let pids = IdSpace::new(1u32..32768, Cyclic)?;
    /// pids.alloc_at(4711)?;
    /// assert_eq!(pids.alloc_at(4711), Err(IdError::Taken { id: 4711 }));
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn alloc_at(&self, id: T) -> Result<(), IdError> {
        let at = self.offset(id)?;
        if self.is_allocated(id) {
            return Err(IdError::Taken { id: id.to_u64() });
        }
        self.in_map(Some((at, at)), |ledger| {
            Ok(ledger.order.take_at(at)?.then_some((at, at)))
        })?
        .map(|_| ())
        .ok_or(IdError::Taken { id: id.to_u64() })
    }

    /// Takes `count` identifiers in a row, the first of which is a multiple of `align`, and returns the first. The lowest
    /// such run of the map, whatever the rule; what lies ready for CPUs or was left in place is looked at when the map has
    /// none. They are freed one by one, or by
    /// [`free_range`](Self::free_range).
    ///
    /// # Errors
    /// [`IdError::NoRun`] when at some moment of the call there was no such run, [`IdError::Invalid`] for a count or an
    /// alignment of zero, [`IdError::OutOfMemory`].
    ///
    /// ```
    /// use larder::ids::{IdSpace, rule::Cyclic};
    ///
    /// let subids = IdSpace::new(100_000u32..1 << 31, Cyclic)?;
    /// assert_eq!(subids.alloc_range(65536, 65536)?, 131_072);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn alloc_range(&self, count: u64, align: u64) -> Result<T, IdError> {
        let phase = self.range.phase(count, align)?;
        self.in_map(None, |ledger| {
            let first = ledger.order.take_run(count, align, phase)?;
            Ok(first.map(|first| (first, first + (count - 1))))
        })?
        .map(|(first, _)| self.id(first))
        .ok_or(IdError::NoRun { count, align })
    }

    /// Sets all identifiers of `range` apart: they count as allocated until they are freed.
    ///
    /// # Errors
    /// [`IdError::Taken`] names the first that is allocated; then none is reserved. [`IdError::OutOfRange`],
    /// [`IdError::Invalid`] for an empty range, [`IdError::Resting`], [`IdError::OutOfMemory`].
    ///
    /// ```
    /// use larder::ids::{IdError, IdSpace, rule::Cyclic};
    ///
    /// let pids = IdSpace::new(1u32..32768, Cyclic)?;
    /// pids.reserve(1u32..=300)?;
    /// assert_eq!(pids.alloc()?, 301);
    /// assert_eq!(pids.reserve(299u32..400), Err(IdError::Taken { id: 299 }));
    /// pids.free_range(1u32..=300)?;
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn reserve(&self, range: impl RangeBounds<T>) -> Result<(), IdError> {
        let (first, last) = self.range.offsets(IdRange::of(&range)?)?;
        let mut taken = first;
        self.in_map(Some((first, last)), |ledger| {
            Ok(match ledger.order.take_all(first, last)? {
                Ok(()) => Some((first, last)),
                Err(at) => {
                    taken = at;
                    None
                }
            })
        })?
        .map(|_| ())
        .ok_or(IdError::Taken {
            id: self.range.first() + taken,
        })
    }

    /// Takes what `find` takes from the map, first and last offset. When it finds nothing it is asked again after all
    /// free identifiers were brought to the map, so that `None` is the truth of a moment. `wanted` are the offsets that
    /// it looks for, if it looks for certain ones: these are brought to the map in any case.
    fn in_map(
        &self,
        wanted: Option<(u64, u64)>,
        mut find: impl FnMut(&mut Ledger<R::Order>) -> Result<Option<(u64, u64)>, IdError>,
    ) -> Result<Option<(u64, u64)>, IdError> {
        let mut holds = false;
        let mut looks = 0;
        loop {
            let mut ledger = self.lock();
            let Some(front) = self.front.get() else {
                let found = self.find_behind(&mut ledger, wanted, &mut find);
                self.finish(ledger);
                return found;
            };
            let home = match wanted {
                Some((first, last)) if front.in_place() => {
                    self.move_to_map(front, &mut ledger, first, last)
                }
                _ => Ok(()),
            };
            let found = home.and_then(|()| self.find_behind(&mut ledger, wanted, &mut find));
            if let Ok(Some((first, last))) = found {
                for at in first..=last {
                    front.states.touch(at);
                    front.states.enter(at as usize);
                }
            }
            let done = match &found {
                Ok(None) => ledger.direct && self.find_clean(front, &mut ledger, looks),
                _ => true,
            };
            if done {
                ledger.holders -= u32::from(holds && ledger.holders > 0);
                self.finish(ledger);
                return found;
            }
            self.raise(front, &mut ledger);
            if !holds {
                ledger.holders += 1;
                holds = true;
            }
            drop(ledger);
            self.send_to_map(front);
            rest(looks);
            looks += 1;
        }
    }

    /// Takes what `find` takes from the map, after all threads that wait: they come first for what became free without
    /// waking them.
    fn find_behind(
        &self,
        ledger: &mut Ledger<R::Order>,
        wanted: Option<(u64, u64)>,
        find: &mut impl FnMut(&mut Ledger<R::Order>) -> Result<Option<(u64, u64)>, IdError>,
    ) -> Result<Option<(u64, u64)>, IdError> {
        let Some(error) = self.serve(ledger) else {
            // No thread waits, or nothing is left.
            return find(ledger);
        };
        // The map could give none then, and could now if a clock has ticked since. So it is asked only what it refuses.
        match wanted {
            None => Ok(None),
            Some((first, last)) => match ledger.order.next_taken(first) {
                Some(at) if at <= last => find(ledger),
                _ => Err(error),
            },
        }
    }

    /// Brings everything to the map, batches included.
    fn send_to_map(&self, front: &Front) {
        {
            let mut ledger = self.lock();
            ledger.counts.collections += 1;
            if front.in_place() {
                self.move_all_to_map(front, &mut ledger);
            }
        }
        front.returns().drain(&FromMap::new(self));
        if front.in_order() {
            front.ready.drain(&FromMap::new(self));
        }
    }
}
