//! The numbers that identifiers are taken from.

use core::fmt;
use core::iter;
use core::ops::{Bound, RangeBounds};

use alloc::format;

use super::IdError;

/// A range of identifiers that contains at least one: `first..=last`.
///
/// ```
/// use larder::ids::IdRange;
///
/// let pids = IdRange::new(1, 32767)?;
/// assert_eq!((pids.first(), pids.last(), pids.len()), (1, 32767, 32767));
/// assert!(IdRange::new(5, 4).is_err());
/// assert_eq!(IdRange::ALL.len(), 1 << 64);
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdRange {
    first: u64,
    last: u64,
}

impl IdRange {
    /// Every number of 64 bits.
    pub const ALL: IdRange = IdRange {
        first: 0,
        last: u64::MAX,
    };

    /// `first..=last`.
    ///
    /// ```
    /// # use larder::ids::IdRange;
    /// assert_eq!(IdRange::new(1, 10)?.len(), 10);
    /// assert!(IdRange::new(10, 1).is_err());
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Invalid`] when `last` is below `first`.
    pub fn new(first: u64, last: u64) -> Result<Self, IdError> {
        if first > last {
            return Err(IdError::Invalid {
                what: format!("the range {first}..={last}"),
                advice: "give a range with at least one identifier, the smaller end first",
            });
        }
        Ok(Self { first, last })
    }

    /// The range of these bounds; one that is open at an end goes as far as the integer.
    pub(super) fn of<T: Id>(bounds: &impl RangeBounds<T>) -> Result<Self, IdError> {
        let first = match bounds.start_bound() {
            Bound::Included(first) => Some(first.to_u64()),
            Bound::Excluded(before) => before.to_u64().checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let last = match bounds.end_bound() {
            Bound::Included(last) => Some(last.to_u64()),
            Bound::Excluded(end) => end.to_u64().checked_sub(1),
            Bound::Unbounded => Some(T::from_u64(u64::MAX).to_u64()),
        };
        match (first, last) {
            (Some(first), Some(last)) => Self::new(first, last),
            _ => Err(IdError::Invalid {
                what: format!(
                    "the range {:?}..{:?}",
                    bounds.start_bound(),
                    bounds.end_bound()
                ),
                advice: "give a range with at least one identifier, the smaller end first",
            }),
        }
    }

    /// The smallest identifier.
    ///
    /// ```
    /// # use larder::ids::IdRange;
    /// assert_eq!(IdRange::new(1, 10)?.first(), 1);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn first(self) -> u64 {
        self.first
    }

    /// The largest identifier.
    ///
    /// ```
    /// # use larder::ids::IdRange;
    /// assert_eq!(IdRange::new(1, 10)?.last(), 10);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn last(self) -> u64 {
        self.last
    }

    /// How many identifiers; 2^64 for [`IdRange::ALL`].
    ///
    /// ```
    /// # use larder::ids::IdRange;
    /// assert_eq!((IdRange::new(1, 10)?.len(), IdRange::ALL.len()), (10, 1 << 64));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> u128 {
        u128::from(self.last - self.first) + 1
    }

    /// Whether `id` belongs to the range.
    ///
    /// ```
    /// # use larder::ids::IdRange;
    /// let range = IdRange::new(1, 10)?;
    /// assert!(range.contains(10) && !range.contains(11));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn contains(self, id: u64) -> bool {
        self.first <= id && id <= self.last
    }

    /// The distance of `id` from the first identifier.
    ///
    /// ```
    /// # use larder::ids::IdRange;
    /// let range = IdRange::new(300, 400)?;
    /// assert_eq!(range.offset(307)?, 7);
    /// assert!(range.offset(7).is_err());
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`].
    pub fn offset(self, id: u64) -> Result<u64, IdError> {
        if self.contains(id) {
            Ok(id - self.first)
        } else {
            Err(IdError::OutOfRange {
                id,
                first: self.first,
                last: self.last,
            })
        }
    }
}

/// What spaces of every kind ask of their range, in offsets from its first identifier.
impl IdRange {
    /// The first and last offset of a range within this one.
    pub(super) fn offsets(self, within: Self) -> Result<(u64, u64), IdError> {
        Ok((self.offset(within.first)?, self.offset(within.last)?))
    }

    /// The offset of the first identifier that is not below `from`.
    pub(super) fn ahead(self, from: impl Id) -> Option<u64> {
        let from = from.to_u64();
        (from <= self.last).then(|| from.saturating_sub(self.first))
    }

    /// The offset after this one.
    fn behind(self, at: u64) -> Option<u64> {
        (at < self.last - self.first).then(|| at + 1)
    }

    /// What the offset of a multiple of `align` is more than a multiple.
    pub(super) fn phase(self, count: u64, align: u64) -> Result<u64, IdError> {
        if count == 0 || align == 0 {
            return Err(IdError::Invalid {
                what: format!("a run of {count} identifiers aligned to {align}"),
                advice: "ask for at least one, aligned to 1 or more",
            });
        }
        Ok((align - self.first % align) % align)
    }

    /// The allocated identifiers, ascending.
    pub(super) fn list<T: Id>(
        self,
        next_taken: impl Fn(u64) -> Option<u64>,
    ) -> impl Iterator<Item = T> {
        let mut from = Some(0);
        iter::from_fn(move || {
            let at = next_taken(from?)?;
            from = self.behind(at);
            Some(T::from_u64(self.first + at))
        })
    }

    /// The allocated identifiers as ranges, ascending. No two of them touch, whatever other threads do meanwhile: what was
    /// just seen to be free is not looked at again.
    pub(super) fn runs(
        self,
        next_taken: impl Fn(u64) -> Option<u64>,
        next_free: impl Fn(u64) -> Option<u64>,
    ) -> impl Iterator<Item = IdRange> {
        let mut from = Some(0);
        iter::from_fn(move || {
            loop {
                let at = next_taken(from?)?;
                let end = next_free(at);
                from = end.and_then(|end| self.behind(end));
                // Otherwise it was freed meanwhile.
                if end != Some(at) {
                    let first = self.first + at;
                    let last = end.map_or(self.last, |end| self.first + end - 1);
                    return Some(IdRange { first, last });
                }
            }
        })
    }
}

impl fmt::Display for IdRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.first, self.last)
    }
}

/// An integer that identifiers can be: `u8`, `u16`, `u32` or `u64`.
pub trait Id: Copy + Ord + fmt::Debug + fmt::Display {
    /// The number.
    fn to_u64(self) -> u64;

    /// The integer of a number, which fits.
    fn from_u64(number: u64) -> Self;
}

impl RangeBounds<u64> for IdRange {
    fn start_bound(&self) -> Bound<&u64> {
        Bound::Included(&self.first)
    }

    fn end_bound(&self) -> Bound<&u64> {
        Bound::Included(&self.last)
    }
}

macro_rules! ids {
    ($($int:ty),*) => {$(
        impl Id for $int {
            #[inline]
            fn to_u64(self) -> u64 {
                u64::from(self)
            }

            #[inline]
            fn from_u64(number: u64) -> Self {
                number as $int
            }
        }
    )*};
}

ids!(u8, u16, u32, u64);
