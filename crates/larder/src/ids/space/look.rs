//! What can be seen of a space.

use super::IdSpace;
use crate::ids::rule::{Order, Rule};
use crate::ids::{Id, IdRange};

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    /// Whether the identifier is allocated or reserved; false for one outside of the range.
    ///
    /// ```
    /// # use larder::ids::{IdSpace, rule::Any};
    /// let ids = IdSpace::rebuild(0u8..=255, Any, [4, 9])?;
    /// assert_eq!([4, 5, 200].map(|id| ids.is_allocated(id)), [true, false, false]);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn is_allocated(&self, id: T) -> bool {
        let Ok(at) = self.offset(id) else {
            return false;
        };
        self.look(
            |front| front.states.is_allocated(at as usize),
            |ledger| ledger.order.is_taken(at),
        )
    }

    /// The lowest allocated identifier that is not below `from`.
    ///
    /// It was allocated at some moment of the call; so was each one that it passed by free.
    ///
    /// ```
    /// # use larder::ids::{IdSpace, rule::Any};
    /// let ids = IdSpace::rebuild(0u8..=255, Any, [4, 9])?;
    /// assert_eq!((ids.next_allocated(5), ids.next_allocated(10)), (Some(9), None));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn next_allocated(&self, from: T) -> Option<T> {
        let at = self.next_taken_at(self.range.ahead(from)?)?;
        Some(self.id(at))
    }

    /// The lowest identifier of the range that is not allocated and not below `from`.
    pub(in crate::ids) fn next_free(&self, from: T) -> Option<T> {
        let at = self.next_free_at(self.range.ahead(from)?)?;
        Some(self.id(at))
    }

    fn next_taken_at(&self, at: u64) -> Option<u64> {
        self.look(
            |front| {
                let found = front.states.next_allocated(usize::try_from(at).ok()?)?;
                Some(found as u64)
            },
            |ledger| ledger.order.next_taken(at),
        )
    }

    fn next_free_at(&self, at: u64) -> Option<u64> {
        self.look(
            |front| {
                let found = front.states.next_vacant(usize::try_from(at).ok()?)?;
                Some(found as u64)
            },
            |ledger| ledger.order.next_free(at),
        )
    }

    /// The allocated identifiers, upwards. Others may take and free meanwhile: each one that is allocated all the time is
    /// met once, and none twice.
    ///
    /// ```
    /// use larder::ids::{IdSpace, rule::Any};
    ///
    /// let ids = IdSpace::rebuild(0u8..=255, Any, [9, 4])?;
    /// assert!(ids.iter().eq([4, 9]));
    /// assert_eq!((ids.next_allocated(5), ids.is_allocated(5)), (Some(9), false));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.range.list(|at| self.next_taken_at(at))
    }

    /// The allocated identifiers as ranges, upwards. Others may take and free meanwhile: each identifier that is allocated
    /// all the time is in one of them; and no two touch, unless what lay between was taken meanwhile.
    ///
    /// ```
    /// use larder::ids::{IdRange, IdSpace, rule::Any};
    ///
    /// let ids = IdSpace::rebuild(0u8..=255, Any, [4, 5, 6, 9])?;
    /// assert!(ids.runs().eq([IdRange::new(4, 6)?, IdRange::new(9, 9)?]));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn runs(&self) -> impl Iterator<Item = IdRange> + '_ {
        self.range
            .runs(|at| self.next_taken_at(at), |at| self.next_free_at(at))
    }

    /// How many identifiers are not allocated, resting ones and those that lie ready for CPUs included. As
    /// [`allocated`](Self::allocated), of one moment only if no thread takes or frees meanwhile.
    ///
    /// ```
    /// use larder::ids::{IdRange, IdSpace, rule::Any};
    ///
    /// let ids = IdSpace::new(IdRange::ALL, Any)?;
    /// ids.alloc()?;
    /// assert_eq!((ids.allocated(), ids.free_count()), (1, u64::MAX.into()));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn free_count(&self) -> u128 {
        self.range.len() - u128::from(self.allocated())
    }

    /// How many identifiers are allocated, reserved ones included. Of one moment only if no thread takes or frees meanwhile.
    ///
    /// Reads the byte of every identifier that was ever used.
    ///
    /// ```
    /// # use larder::ids::{IdSpace, rule::Any};
    /// assert_eq!(IdSpace::rebuild(0u8..=255, Any, [4, 9])?.allocated(), 2);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn allocated(&self) -> u64 {
        self.look(
            |front| front.states.allocated(),
            |ledger| ledger.order.taken(),
        )
    }

    /// Bytes of memory held: the map, the cells in use, the magazines.
    ///
    /// ```
    /// # use larder::ids::{IdSpace, rule::Any};
    /// let ids = IdSpace::new(0u32..1 << 20, Any)?;
    /// let before = ids.bytes();
    /// (0..1000).try_for_each(|_| ids.alloc().map(drop))?;
    /// assert!(ids.bytes() > before);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn bytes(&self) -> usize {
        let map = self.lock().order.bytes();
        size_of::<Self>() + map + self.front.get().map_or(0, |front| front.bytes())
    }
}
