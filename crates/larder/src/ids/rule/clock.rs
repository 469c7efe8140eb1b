//! What rest is measured in.

use core::fmt::Debug;
#[cfg(feature = "std")]
use std::time::Instant;

/// What the rest of identifiers is measured in: a count that never goes back.
pub trait Clock: Clone + Debug {
    /// The count now, in ticks of this clock; `allocations` is how many identifiers were handed out so far.
    fn now(&self, allocations: u64) -> u64;
}

/// A tick is an identifier handed out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allocations;

impl Clock for Allocations {
    #[inline]
    fn now(&self, allocations: u64) -> u64 {
        allocations
    }
}

/// A tick is a nanosecond, of [`Instant`]'s time since this value was made.
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
