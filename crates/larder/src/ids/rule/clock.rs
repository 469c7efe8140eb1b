//! What rest is measured in.

use core::fmt::Debug;
#[cfg(feature = "std")]
use std::time::Instant;

/// What the rest of identifiers is measured in: a count that never goes back.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use larder::ids::{IdError, Ids, rule::{Clock, Lowest, NearFull, Rested}};
///
/// /// A tick is a period after which no reader holds an old number any more.
/// #[derive(Debug, Clone, Default)]
/// struct Periods(Arc<AtomicU64>);
///
/// impl Clock for Periods {
///     fn now(&self, _: u64) -> u64 {
///         self.0.load(Relaxed)
///     }
/// }
///
/// let periods = Periods::default();
/// let rule = Rested::by_clock(Lowest, 2, NearFull::Fail, periods.clone());
/// let mut slots = Ids::new(0u8..1, rule)?;
/// slots.alloc()?;
/// slots.free(0)?;
/// assert_eq!(slots.alloc(), Err(IdError::Resting { resting: 1 }));
/// periods.0.fetch_add(2, Relaxed);
/// assert_eq!(slots.alloc(), Ok(0));
/// # Ok::<(), IdError>(())
/// ```
pub trait Clock: Clone + Debug {
    /// The count now, in ticks of this clock; `allocations` is how many identifiers were handed out so far.
    ///
    /// ```
    /// # use larder::ids::rule::{Clock, Ticks};
    /// assert_eq!(Ticks::Allocations.now(7), 7);
    /// ```
    fn now(&self, allocations: u64) -> u64;
}

/// The clocks of the library.
///
/// ```
/// use larder::ids::rule::{Clock, Ticks};
/// assert_eq!(Ticks::Allocations.now(7), 7);
/// let nanoseconds = Ticks::nanoseconds();
/// assert!(nanoseconds.now(0) <= nanoseconds.now(0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ticks {
    /// A tick is an identifier handed out.
    Allocations,
    /// A tick is a nanosecond since this moment.
    #[cfg(feature = "std")]
    Nanoseconds(Instant),
}

#[cfg(feature = "std")]
impl Ticks {
    /// A tick is a nanosecond since now.
    #[must_use]
    pub fn nanoseconds() -> Self {
        Self::Nanoseconds(Instant::now())
    }
}

impl Clock for Ticks {
    #[inline]
    fn now(&self, allocations: u64) -> u64 {
        match self {
            Self::Allocations => allocations,
            #[cfg(feature = "std")]
            Self::Nanoseconds(start) => {
                u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
            }
        }
    }
}
