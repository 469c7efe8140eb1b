//! Identifiers of one owner.

mod iter;

pub use iter::{Allocated, Runs};

use alloc::format;
use core::hint::cold_path;

use super::rule::Order;
use super::{IdError, IdRange, Rule};

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
pub struct Ids<R: Rule> {
    range: IdRange,
    order: R::Order,
}

impl<R: Rule> Ids<R> {
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
    pub fn new<T>(range: T, rule: R) -> Result<Self, IdError>
    where
        T: TryInto<IdRange>,
        IdError: From<T::Error>,
    {
        let range = range.try_into()?;
        let last = range.last() - range.first();
        let order = rule.order(last)?;
        Ok(Self { range, order })
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
    pub fn rebuild<T>(
        range: T,
        rule: R,
        live: impl IntoIterator<Item = u64>,
    ) -> Result<Self, IdError>
    where
        T: TryInto<IdRange>,
        IdError: From<T::Error>,
    {
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
    #[inline]
    pub fn alloc(&mut self) -> Result<u64, IdError> {
        match self.order.take_quickly() {
            Some(at) => Ok(self.range.first() + at),
            None => {
                cold_path();
                self.alloc_slowly()
            }
        }
    }

    #[inline(never)]
    fn alloc_slowly(&mut self) -> Result<u64, IdError> {
        match self.order.take()? {
            Some(at) => Ok(self.range.first() + at),
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
    pub fn alloc_at(&mut self, id: u64) -> Result<(), IdError> {
        if self.order.take_at(self.range.offset(id)?)? {
            Ok(())
        } else {
            Err(IdError::Taken { id })
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
    pub fn alloc_many(&mut self, out: &mut [u64]) -> Result<usize, IdError> {
        let done = self.order.take_many(out)?;
        if done == 0 && !out.is_empty() {
            return Err(self.full());
        }
        for id in &mut out[..done] {
            *id += self.range.first();
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
    pub fn alloc_range(&mut self, count: u64, align: u64) -> Result<u64, IdError> {
        if count == 0 || align == 0 {
            return Err(IdError::Invalid {
                what: format!("a run of {count} identifiers aligned to {align}"),
                advice: "ask for at least one, aligned to 1 or more",
            });
        }
        let first = self.range.first();
        // What must be added to the first identifier to make it a multiple.
        let phase = (align - first % align) % align;
        match self.order.take_run(count, align, phase)? {
            Some(at) => Ok(first + at),
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
    pub fn reserve<T>(&mut self, band: T) -> Result<(), IdError>
    where
        T: TryInto<IdRange>,
        IdError: From<T::Error>,
    {
        let (first, last) = self.offsets(band.try_into()?)?;
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
    /// assert_eq!(ids.free(id), Err(IdError::NotAllocated { id }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], and [`IdError::NotAllocated`] for one that was freed before. [`IdError::OutOfMemory`]:
    /// it stays allocated.
    #[inline]
    pub fn free(&mut self, id: u64) -> Result<(), IdError> {
        // A foreign one is beyond the range, also one below it.
        let at = id.wrapping_sub(self.range.first());
        if self.order.give_quickly(at) {
            return Ok(());
        }
        cold_path();
        self.free_slowly(id)
    }

    #[inline(never)]
    fn free_slowly(&mut self, id: u64) -> Result<(), IdError> {
        if self.order.give(self.range.offset(id)?)? {
            Ok(())
        } else {
            Err(IdError::NotAllocated { id })
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
    pub fn free_many(&mut self, ids: &[u64]) -> Result<(), IdError> {
        for (done, &id) in ids.iter().enumerate() {
            if let Err(error) = self.free(id) {
                for &id in ids[..done].iter().rev() {
                    self.order.take_back(id - self.range.first())?;
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
    pub fn free_range<T>(&mut self, ids: T) -> Result<(), IdError>
    where
        T: TryInto<IdRange>,
        IdError: From<T::Error>,
    {
        let (first, last) = self.offsets(ids.try_into()?)?;
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
    /// assert_eq!([4, 5, 300].map(|id| ids.is_allocated(id)), [true, false, false]);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    #[inline]
    pub fn is_allocated(&self, id: u64) -> bool {
        self.range.contains(id) && self.order.is_taken(id - self.range.first())
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
    pub fn next_allocated(&self, from: u64) -> Option<u64> {
        if from > self.range.last() {
            return None;
        }
        let from = from.saturating_sub(self.range.first());
        Some(self.range.first() + self.order.next_taken(from)?)
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
    pub fn cursor(&self) -> Option<u64> {
        let at = self.order.cursor()?;
        Some(self.range.first() + at)
    }

    /// Lets a rule with a cursor go on after `id`; does nothing under any other rule.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], [`IdError::OutOfMemory`].
    pub fn set_cursor(&mut self, id: u64) -> Result<(), IdError> {
        self.order.set_cursor(self.range.offset(id)?)
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

    fn offsets(&self, ids: IdRange) -> Result<(u64, u64), IdError> {
        Ok((
            self.range.offset(ids.first())?,
            self.range.offset(ids.last())?,
        ))
    }

    #[cold]
    fn full(&self) -> IdError {
        IdError::Full {
            allocated: self.allocated(),
        }
    }
}
