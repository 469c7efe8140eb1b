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
    /// # use larder::ids::rule::{Allocations, Clock};
    /// assert_eq!(Allocations.now(7), 7);
    /// ```
    fn now(&self, allocations: u64) -> u64;
}

/// A tick is an identifier handed out.
///
/// It is the clock of [`Rested::allocations`](super::Rested::allocations).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allocations;

impl Clock for Allocations {
    #[inline]
    fn now(&self, allocations: u64) -> u64 {
        allocations
    }
}

/// A tick is a nanosecond, of [`Instant`]'s time since this value was made.
///
/// ```
/// use larder::ids::rule::{Clock, Monotonic};
/// let clock = Monotonic::default();
/// assert!(clock.now(0) <= clock.now(0));
/// ```
#[cfg(feature = "std")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Monotonic {
    start: Instant,
}

#[cfg(feature = "std")]
impl Default for Monotonic {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

#[cfg(feature = "std")]
impl Clock for Monotonic {
    fn now(&self, _: u64) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
