//! The numbers that identifiers are taken from.

use core::fmt;
use core::ops::{Range, RangeInclusive};

use alloc::format;

use super::IdError;

/// A range of identifiers that contains at least one: `first..=last`.
///
/// Ranges of any unsigned integer convert; an empty or reversed one is an error.
///
/// ```
/// use larder::ids::IdRange;
///
/// let pids = IdRange::try_from(1u16..32768)?;
/// assert_eq!((pids.first(), pids.last(), pids.len()), (1, 32767, 32767));
/// assert!(IdRange::try_from(5u8..5).is_err());
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

    /// The smallest identifier.
    pub fn first(self) -> u64 {
        self.first
    }

    /// The largest identifier.
    pub fn last(self) -> u64 {
        self.last
    }

    /// How many identifiers; 2^64 for [`IdRange::ALL`].
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> u128 {
        u128::from(self.last - self.first) + 1
    }

    /// Whether `id` belongs to the range.
    pub fn contains(self, id: u64) -> bool {
        self.first <= id && id <= self.last
    }

    /// The distance of `id` from the first identifier.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`].
    pub fn offset(self, id: u64) -> Result<u64, IdError> {
        if self.contains(id) {
            Ok(id - self.first)
        } else {
            Err(IdError::OutOfRange { id, range: self })
        }
    }
}

impl fmt::Display for IdRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.first, self.last)
    }
}

macro_rules! from_ranges {
    ($($int:ty),*) => {$(
        impl TryFrom<RangeInclusive<$int>> for IdRange {
            type Error = IdError;

            fn try_from(range: RangeInclusive<$int>) -> Result<Self, IdError> {
                Self::new(u64::from(*range.start()), u64::from(*range.end()))
            }
        }

        impl TryFrom<Range<$int>> for IdRange {
            type Error = IdError;

            fn try_from(range: Range<$int>) -> Result<Self, IdError> {
                if range.is_empty() {
                    return Err(IdError::Invalid {
                        what: format!("the range {}..{}", range.start, range.end),
                        advice: "give a range with at least one identifier, the smaller end first",
                    });
                }
                Self::new(u64::from(range.start), u64::from(range.end) - 1)
            }
        }
    )*};
}

from_ranges!(u8, u16, u32, u64);
