//! Identifiers of one owner.

use core::hint::cold_path;
use core::marker::PhantomData;
use core::ops::RangeBounds;

use super::rule::Order;
use super::{Id, IdError, IdRange, Rule};

/// Identifiers of a range, handed out by a rule, for one owner: no lock and no atomic instruction.
///
/// `IdSpace` is the same for many threads. Creation takes constant time and allocates nothing;
/// memory follows what is used, not the range. A method that fails has changed nothing, except where it says so.
///
/// ```
/// use larder::ids::{IdError, Ids, rule::Cyclic};
///
/// // Process identifiers: 300 and below are for the system's own.
/// let mut pids = Ids::new(1u32..32768, Cyclic)?;
/// pids.reserve(1u32..=300)?;
/// let pid = pids.alloc()?;
/// assert_eq!(pid, 301);
/// pids.free(pid)?;
/// assert_eq!(pids.free(pid), Err(IdError::NotAllocated { id: 301 }));
/// assert_eq!(pids.alloc()?, 302);
/// # Ok::<(), IdError>(())
/// ```
#[derive(Debug)]
pub struct Ids<R: Rule, T: Id = u64> {
    range: IdRange,
    order: R::Order,
    id: PhantomData<fn() -> T>,
}

impl<R: Rule, T: Id> Ids<R, T> {
    /// An empty space.
    ///
    /// ```
    /// # use larder::ids::{Ids, rule::Lowest};
    /// let ids = Ids::new(10u8..20, Lowest)?;
    /// assert_eq!((ids.range().first(), ids.range().last(), ids.allocated()), (10, 19, 0));
    /// assert!(Ids::new(5u8..5, Lowest).is_err());
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Invalid`] for an empty range or a rule with absurd parameters, [`IdError::OutOfMemory`].
    pub fn new(range: impl RangeBounds<T>, rule: R) -> Result<Self, IdError> {
        Self::over(IdRange::of(&range)?, rule)
    }

    pub(super) fn over(range: IdRange, rule: R) -> Result<Self, IdError> {
        Ok(Self {
            range,
            order: rule.order(range.last() - range.first())?,
            id: PhantomData,
        })
    }

    #[inline]
    fn id(&self, at: u64) -> T {
        T::from_u64(self.range.first() + at)
    }

    fn offset(&self, id: T) -> Result<u64, IdError> {
        self.range.offset(id.to_u64())
    }

    /// A space in which exactly the identifiers of `live` are allocated: what is left when the space is lost but its
    /// users still know what they have. Franke's mark and sweep of 2002 did this for every new pid.
    ///
    /// # Errors
    /// [`IdError::Taken`] for one that is there twice, [`IdError::OutOfRange`] for one that does not belong, and those
    /// of [`new`](Ids::new).
    ///
    /// ```
    /// use larder::ids::{IdError, Ids, rule::Lowest};
    ///
    /// let mut fds = Ids::rebuild(0u8..=255, Lowest, [0, 1, 2, 5])?;
    /// assert_eq!(fds.alloc()?, 3);
    /// let twice = Ids::rebuild(0u8..=255, Lowest, [7, 7]);
    /// assert_eq!(twice.err(), Some(IdError::Taken { id: 7 }));
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn rebuild(
        range: impl RangeBounds<T>,
        rule: R,
        live: impl IntoIterator<Item = T>,
    ) -> Result<Self, IdError> {
        let mut ids = Self::new(range, rule)?;
        for id in live {
            ids.alloc_at(id)?;
        }
        Ok(ids)
    }

    /// Takes the identifier that the rule says is next.
    ///
    /// ```
    /// # use larder::ids::{IdError, Ids, rule::Lowest};
    /// let mut ids = Ids::new(10u8..12, Lowest)?;
    /// assert_eq!((ids.alloc()?, ids.alloc()?), (10, 11));
    /// assert_eq!(ids.alloc(), Err(IdError::Full { allocated: 2 }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Full`], [`IdError::Resting`], [`IdError::OutOfMemory`].
    // What is slow has functions of its own, so this is a few instructions wherever it is called.
    #[inline(always)]
    pub fn alloc(&mut self) -> Result<T, IdError> {
        match self.order.take_quickly() {
            Some(at) => Ok(self.id(at)),
            None => {
                cold_path();
                self.alloc_slowly()
            }
        }
    }

    #[inline(never)]
    fn alloc_slowly(&mut self) -> Result<T, IdError> {
        match self.order.take()? {
            Some(at) => Ok(self.id(at)),
            None => Err(self.full()),
        }
    }

    /// Takes this very identifier.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], [`IdError::Taken`], [`IdError::Resting`], [`IdError::OutOfMemory`].
    ///
    /// ```
    /// use larder::ids::{IdError, Ids, rule::Cyclic};
    ///
    /// let mut pids = Ids::new(1u32..32768, Cyclic)?;
    /// pids.alloc_at(4711)?;
    /// assert_eq!(pids.alloc_at(4711), Err(IdError::Taken { id: 4711 }));
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn alloc_at(&mut self, id: T) -> Result<(), IdError> {
        if self.order.take_at(self.offset(id)?)? {
            Ok(())
        } else {
            Err(IdError::Taken { id: id.to_u64() })
        }
    }

    /// Takes as many identifiers as fit into `out`, in the order of the rule, and says how many: fewer when no more
    /// can be had. None at all is an error, except into an empty `out`.
    ///
    /// # Errors
    /// As [`alloc`](Ids::alloc), when not a single one can be had.
    ///
    /// ```
    /// use larder::ids::{Ids, rule::Lowest};
    ///
    /// let mut ids = Ids::new(10u8..13, Lowest)?;
    /// let mut out = [0; 5];
    /// assert_eq!(ids.alloc_many(&mut out)?, 3);
    /// assert_eq!(out[..3], [10, 11, 12]);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn alloc_many(&mut self, out: &mut [T]) -> Result<usize, IdError> {
        let mut batch = [0; 64];
        let mut done = 0;
        for part in out.chunks_mut(batch.len()) {
            let n = match self.order.take_many(&mut batch[..part.len()]) {
                Ok(n) => n,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            for (id, &at) in part.iter_mut().zip(&batch[..n]) {
                *id = T::from_u64(self.range.first() + at);
            }
            done += n;
            if n < part.len() {
                break;
            }
        }
        if done == 0 && !out.is_empty() {
            return Err(self.full());
        }
        Ok(done)
    }

    /// Takes `count` identifiers in a row, the first of which is a multiple of `align`, and says which is the first:
    /// the lowest such run, whatever the rule. Looks at every run of free identifiers below it.
    ///
    /// # Errors
    /// [`IdError::NoRun`], [`IdError::Invalid`] for a count or an alignment of 0, [`IdError::OutOfMemory`].
    ///
    /// ```
    /// use larder::ids::{Ids, rule::Cyclic};
    ///
    /// let mut subids = Ids::new(100_000u32..1 << 31, Cyclic)?;
    /// assert_eq!(subids.alloc_range(65536, 65536)?, 131_072);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn alloc_range(&mut self, count: u64, align: u64) -> Result<T, IdError> {
        let phase = self.range.phase(count, align)?;
        match self.order.take_run(count, align, phase)? {
            Some(at) => Ok(self.id(at)),
            None => Err(IdError::NoRun { count, align }),
        }
    }

    /// Takes all identifiers of a range, or none of them: a reserved band, such as the pids below 300.
    /// Give them back one by one or with [`free_range`](Ids::free_range), or never.
    ///
    /// # Errors
    /// [`IdError::Taken`] with the first one that is taken, [`IdError::OutOfRange`], [`IdError::Invalid`] for an empty
    /// range, [`IdError::Resting`], [`IdError::OutOfMemory`].
    ///
    /// ```
    /// use larder::ids::{IdError, Ids, rule::Cyclic};
    ///
    /// let mut pids = Ids::new(1u32..32768, Cyclic)?;
    /// pids.reserve(1u32..=300)?;
    /// assert_eq!(pids.alloc()?, 301);
    /// assert_eq!(pids.reserve(299u32..400), Err(IdError::Taken { id: 299 }));
    /// pids.free_range(1u32..=300)?;
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn reserve(&mut self, band: impl RangeBounds<T>) -> Result<(), IdError> {
        self.reserve_range(IdRange::of(&band)?)
    }

    pub(super) fn reserve_range(&mut self, band: IdRange) -> Result<(), IdError> {
        let (first, last) = self.range.offsets(band)?;
        self.order
            .take_all(first, last)?
            .map_err(|at| IdError::Taken {
                id: self.range.first() + at,
            })
    }

    /// Gives an identifier back.
    ///
    /// ```
    /// # use larder::ids::{IdError, Ids, rule::Lowest};
    /// let mut ids = Ids::new(10u8..12, Lowest)?;
    /// let id = ids.alloc()?;
    /// ids.free(id)?;
    /// assert_eq!(ids.free(id), Err(IdError::NotAllocated { id: 10 }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], and [`IdError::NotAllocated`] for one that was freed before. [`IdError::OutOfMemory`]:
    /// it stays allocated.
    // What is slow has functions of its own, so this is a few instructions wherever it is called.
    #[inline(always)]
    pub fn free(&mut self, id: T) -> Result<(), IdError> {
        // A foreign one is beyond the range, also one below it.
        let at = id.to_u64().wrapping_sub(self.range.first());
        if self.order.give_quickly(at) {
            return Ok(());
        }
        cold_path();
        self.free_slowly(id)
    }

    #[inline(never)]
    fn free_slowly(&mut self, id: T) -> Result<(), IdError> {
        if self.order.give(self.offset(id)?)? {
            Ok(())
        } else {
            Err(IdError::NotAllocated { id: id.to_u64() })
        }
    }

    /// Gives all of these identifiers back, or none of them: also when one is there twice.
    ///
    /// # Errors
    /// As [`free`](Ids::free). After [`IdError::OutOfMemory`] some may be free: those that could not be taken again.
    ///
    /// ```
    /// use larder::ids::{IdError, Ids, rule::Lowest};
    ///
    /// let mut ids = Ids::new(0u8..8, Lowest)?;
    /// ids.reserve(0u8..8)?;
    /// assert_eq!(ids.free_many(&[1, 2, 1]), Err(IdError::NotAllocated { id: 1 }));
    /// assert_eq!(ids.allocated(), 8);
    /// ids.free_many(&[1, 2])?;
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn free_many(&mut self, ids: &[T]) -> Result<(), IdError> {
        for (done, &id) in ids.iter().enumerate() {
            if let Err(error) = self.free(id) {
                for &id in ids[..done].iter().rev() {
                    self.order.take_back(id.to_u64() - self.range.first())?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives all identifiers of a range back, the smallest first; or none of them.
    ///
    /// # Errors
    /// [`IdError::NotAllocated`] with the first one that is not allocated, [`IdError::OutOfRange`],
    /// [`IdError::Invalid`] for an empty range, [`IdError::OutOfMemory`].
    pub fn free_range(&mut self, ids: impl RangeBounds<T>) -> Result<(), IdError> {
        let (first, last) = self.range.offsets(IdRange::of(&ids)?)?;
        self.order
            .give_all(first, last)?
            .map_err(|at| IdError::NotAllocated {
                id: self.range.first() + at,
            })
    }

    /// Whether the identifier is allocated; false for one outside of the range, and for one that rests.
    ///
    /// ```
    /// # use larder::ids::{Ids, rule::Lowest};
    /// let ids = Ids::rebuild(0u8..=255, Lowest, [4, 9])?;
    /// assert_eq!([4, 5, 200].map(|id| ids.is_allocated(id)), [true, false, false]);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    #[inline]
    pub fn is_allocated(&self, id: T) -> bool {
        self.offset(id).is_ok_and(|at| self.order.is_taken(at))
    }

    /// The lowest allocated identifier that is not below `from`.
    ///
    /// ```
    /// use larder::ids::{Ids, rule::Lowest};
    ///
    /// let ids = Ids::rebuild(0u8..=255, Lowest, [4, 9])?;
    /// assert_eq!((ids.next_allocated(5), ids.is_allocated(5)), (Some(9), false));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn next_allocated(&self, from: T) -> Option<T> {
        let at = self.range.ahead(from)?;
        self.order.next_taken(at).map(|at| self.id(at))
    }

    /// The lowest identifier of the range that is not allocated and not below `from`.
    pub(super) fn next_free(&self, from: T) -> Option<T> {
        let at = self.range.ahead(from)?;
        self.order.next_free(at).map(|at| self.id(at))
    }

    /// The allocated identifiers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.range.list(|at| self.order.next_taken(at))
    }

    /// The allocated identifiers as ranges: ascending, and no two of them touch.
    ///
    /// ```
    /// use larder::ids::{IdRange, Ids, rule::Lowest};
    ///
    /// let ids = Ids::rebuild(0u8..=255, Lowest, [4, 5, 6, 9])?;
    /// assert!(ids.iter().eq([4, 5, 6, 9]));
    /// assert!(ids.runs().eq([IdRange::new(4, 6)?, IdRange::new(9, 9)?]));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn runs(&self) -> impl Iterator<Item = IdRange> + '_ {
        let order = &self.order;
        self.range
            .runs(|at| order.next_taken(at), |at| order.next_free(at))
    }

    /// The range that identifiers are taken from.
    pub fn range(&self) -> IdRange {
        self.range
    }

    /// How many identifiers are allocated, reserved ones included. At most 2^64 - 1: of [`IdRange::ALL`] one is never
    /// handed out.
    ///
    /// ```
    /// # use larder::ids::{Ids, rule::Lowest};
    /// assert_eq!(Ids::rebuild(0u8..=255, Lowest, [4, 9])?.allocated(), 2);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn allocated(&self) -> u64 {
        self.order.taken()
    }

    /// How many identifiers are not allocated, resting ones included. Constant time, so that an owner needs no water mark to
    /// know when few are left.
    ///
    /// ```
    /// use larder::ids::{IdRange, Ids, rule::Lowest};
    ///
    /// let mut ids = Ids::new(IdRange::ALL, Lowest)?;
    /// ids.alloc()?;
    /// assert_eq!((ids.allocated(), ids.free_count()), (1, u64::MAX.into()));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn free_count(&self) -> u128 {
        self.range.len() - u128::from(self.order.taken())
    }

    /// Bytes of memory that the space holds, itself included.
    ///
    /// ```
    /// # use larder::ids::{IdRange, Ids, rule::Lowest};
    /// let mut ids = Ids::new(IdRange::ALL, Lowest)?;
    /// assert!(ids.bytes() < 1000, "memory follows what is used");
    /// ids.alloc_at(1 << 40)?;
    /// assert!(ids.bytes() > size_of_val(&ids));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.order.bytes()
    }

    /// The identifier that was handed out last, under a rule that goes on from there; else `None`.
    ///
    /// ```
    /// # use larder::ids::{Ids, rule::Cyclic};
    /// let mut pids = Ids::new(1u32..32768, Cyclic)?;
    /// pids.set_cursor(300)?;
    /// assert_eq!((pids.alloc()?, pids.cursor()), (301, Some(301)));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn cursor(&self) -> Option<T> {
        self.order.cursor().map(|at| self.id(at))
    }

    /// Lets a rule with a cursor go on after `id`; does nothing under any other rule.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], [`IdError::OutOfMemory`].
    pub fn set_cursor(&mut self, id: T) -> Result<(), IdError> {
        self.order.set_cursor(self.offset(id)?)
    }

    /// The structure that keeps the rule, for what only this rule knows.
    ///
    /// ```
    /// # use larder::ids::{Ids, rule::{Lowest, NearFull, Rested}};
    /// let mut tags = Ids::new(0u8..4, Rested::allocations(Lowest, 2, NearFull::Fail))?;
    /// let tag = tags.alloc()?;
    /// tags.free(tag)?;
    /// assert_eq!(tags.order().resting(), 1);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn order(&self) -> &R::Order {
        &self.order
    }

    #[cold]
    fn full(&self) -> IdError {
        IdError::Full {
            allocated: self.allocated(),
        }
    }
}
