//! What an allocation asks for, and where it fits.

use core::fmt;
use core::ops::RangeInclusive;

use super::error::ArenaError;

/// By which rule a free segment is chosen.
///
/// ```
/// # use larder::arena::{Arena, Policy, Request};
/// let ids = Arena::builder("ids").build()?;
/// ids.add(0, 100)?;
/// let small = ids.alloc(10)?;
/// ids.alloc(1)?;
/// ids.free(small, 10)?;                       // free are now 10 in front and 89 behind
/// assert_eq!(ids.xalloc(&Request::new(9).policy(Policy::Instant))?, 11);
/// assert_eq!(ids.xalloc(&Request::new(9).policy(Policy::Best))?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// The first segment of the first power-of-two list whose segments are all large enough: constant time. Where that
    /// list is empty, the segments of smaller lists are looked at.
    #[default]
    Instant,
    /// The smallest segment in which the request fits. Reads one free list to its end, seldom more.
    Best,
    /// The next place after the last allocation, by address, and from the start again at the end: what is freed is not
    /// soon handed out again. Passes all segments on the way.
    Next,
}

/// A size and where it may lie, for [`Arena::xalloc`](super::Arena::xalloc).
///
/// ```
/// use larder::arena::{Arena, Policy, Request};
///
/// let arena = Arena::builder("addresses").quantum(4096).build()?;
/// arena.add(0, 1 << 30)?;
/// let request = Request::new(8192)
///     .align(1 << 20)
///     .phase(4096)                   // one page after a multiple of a mebibyte
///     .nocross(1 << 20)              // not across such a multiple
///     .within(1 << 24..=(1 << 25) - 1)
///     .policy(Policy::Best);
/// let addr = arena.xalloc(&request)?;
/// assert_eq!(addr, (1 << 24) + 4096);
/// arena.free(addr, 8192)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub(super) size: u64,
    pub(super) align: u64,
    pub(super) phase: u64,
    pub(super) nocross: Option<u64>,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) policy: Option<Policy>,
}

impl Request {
    /// `size` units, anywhere, by the arena's policy. The size is rounded up to a multiple of the quantum.
    ///
    /// ```
    /// # use larder::arena::{Arena, Request};
    /// # let ids = Arena::builder("ids").build()?;
    /// ids.add(5, 1000)?;
    /// assert_eq!(ids.xalloc(&Request::new(3))?, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn new(size: u64) -> Self {
        Self {
            size,
            align: 1,
            phase: 0,
            nocross: None,
            min: 0,
            max: u64::MAX,
            policy: None,
        }
    }

    /// The address is to be a multiple of `align`, a power of two.
    ///
    /// ```
    /// # use larder::arena::{Arena, Request};
    /// # let ids = Arena::builder("ids").build()?;
    /// ids.add(5, 1000)?;
    /// assert_eq!(ids.xalloc(&Request::new(3).align(16))?, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn align(mut self, align: u64) -> Self {
        self.align = align;
        self
    }

    /// The address is to be `phase` units after a multiple of the alignment: less than that, a multiple of the quantum.
    ///
    /// ```
    /// # use larder::arena::{Arena, Request};
    /// # let ids = Arena::builder("ids").build()?;
    /// ids.add(5, 1000)?;
    /// assert_eq!(ids.xalloc(&Request::new(3).align(16).phase(2))?, 18);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn phase(mut self, phase: u64) -> Self {
        self.phase = phase;
        self
    }

    /// The segment is not to contain addresses on both sides of a multiple of `nocross`, a power of two.
    ///
    /// ```
    /// # use larder::arena::{Arena, Request};
    /// # let ids = Arena::builder("ids").build()?;
    /// ids.add(5, 1000)?;
    /// assert_eq!(ids.xalloc(&Request::new(6).nocross(8))?, 8, "5 to 10 would pass 8");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn nocross(mut self, nocross: u64) -> Self {
        self.nocross = Some(nocross);
        self
    }

    /// First and last address of the segment are to lie in this range. A request with bounds never imports a span,
    /// since an imported span may lie anywhere.
    ///
    /// ```
    /// # use larder::arena::{Arena, Request};
    /// # let ids = Arena::builder("ids").build()?;
    /// ids.add(5, 1000)?;
    /// assert_eq!(ids.xalloc(&Request::new(3).within(100..=199))?, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn within(mut self, range: RangeInclusive<u64>) -> Self {
        (self.min, self.max) = (*range.start(), *range.end());
        self
    }

    /// By another policy than the arena's.
    ///
    /// ```
    /// # use larder::arena::{Arena, Policy, Request};
    /// # let ids = Arena::builder("ids").build()?;
    /// ids.add(5, 1000)?;
    /// ids.free(ids.alloc(1)?, 1)?;
    /// assert_eq!(ids.xalloc(&Request::new(1).policy(Policy::Next))?, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// The size asked for.
    ///
    /// ```
    /// # use larder::arena::Request;
    /// assert_eq!(Request::new(3).size(), 3);
    /// ```
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Checks the request for an arena.
    pub(super) fn check(&self, arena: &'static str, quantum: u64) -> Result<Want, ArenaError> {
        let size = round_up(arena, self.size, quantum)?;
        if !self.align.is_power_of_two() {
            return Err(ArenaError::Align {
                arena,
                align: self.align,
            });
        }
        let align = self.align.max(quantum);
        if self.phase >= align || !self.phase.is_multiple_of(quantum) {
            return Err(ArenaError::Phase {
                arena,
                phase: self.phase,
                align,
                quantum,
            });
        }
        if let Some(nocross) = self.nocross {
            // Where the segment begins between two multiples that it must not cross, at best.
            let offset = self.phase & nocross.wrapping_sub(1);
            if !nocross.is_power_of_two()
                || offset.checked_add(size).is_none_or(|end| end > nocross)
            {
                return Err(ArenaError::Nocross {
                    arena,
                    nocross,
                    size,
                    phase: self.phase,
                });
            }
        }
        if self.min > self.max {
            return Err(ArenaError::Bounds {
                arena,
                min: self.min,
                max: self.max,
            });
        }
        Ok(Want {
            size,
            align,
            phase: self.phase,
            nocross: self.nocross.unwrap_or(0),
            min: self.min,
            max: self.max,
            policy: self.policy,
        })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} units", self.size)?;
        if self.align > 1 {
            write!(f, " aligned to {}", self.align)?;
        }
        if self.phase > 0 {
            write!(f, " at phase {}", self.phase)?;
        }
        if let Some(nocross) = self.nocross {
            write!(f, " not across multiples of {nocross}")?;
        }
        if (self.min, self.max) != (0, u64::MAX) {
            write!(f, " within {} to {}", self.min, self.max)?;
        }
        Ok(())
    }
}

/// A size as a multiple of the quantum, which is a power of two.
#[inline]
pub(super) fn round_up(arena: &'static str, size: u64, quantum: u64) -> Result<u64, ArenaError> {
    if size == 0 {
        return Err(ArenaError::Empty { arena });
    }
    match size.checked_add(quantum - 1) {
        Some(sum) => Ok(sum & !(quantum - 1)),
        None => Err(ArenaError::TooLarge {
            arena,
            size,
            quantum,
        }),
    }
}

/// A request that makes sense: all but the bounds are multiples of the quantum, and there are addresses that satisfy
/// alignment, phase and nocross together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Want {
    pub(super) size: u64,
    pub(super) align: u64,
    pub(super) phase: u64,
    /// 0 is none.
    pub(super) nocross: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) policy: Option<Policy>,
}

impl Want {
    /// A size, anywhere.
    pub(super) fn plain(size: u64, quantum: u64) -> Self {
        Self {
            size,
            align: quantum,
            phase: 0,
            nocross: 0,
            min: 0,
            max: u64::MAX,
            policy: None,
        }
    }

    /// What was asked for, as an error reports it.
    pub(super) fn request(&self) -> Request {
        Request {
            size: self.size,
            align: self.align,
            phase: self.phase,
            nocross: (self.nocross != 0).then_some(self.nocross),
            min: self.min,
            max: self.max,
            policy: self.policy,
        }
    }

    /// Whether there are bounds.
    pub(super) fn is_bounded(&self) -> bool {
        (self.min, self.max) != (0, u64::MAX)
    }

    /// How large a segment must be so that there is a fit wherever it begins, bounds aside. `None` when that is more
    /// than any segment has.
    pub(super) fn enough(&self, quantum: u64) -> Option<u64> {
        // Of all multiples of the larger one plus phase, one lies in reach, and there it crosses nothing.
        (self.align.max(self.nocross) - quantum).checked_add(self.size)
    }

    /// The span to import, size and alignment, in which there is certainly a fit.
    pub(super) fn span(&self) -> Option<(u64, u64)> {
        let size = self.size.checked_add(self.phase)?;
        Some((size, self.align.max(self.nocross)))
    }

    /// The lowest address at which the request fits in a free segment.
    #[inline]
    pub(super) fn fit(&self, start: u64, last: u64) -> Option<u64> {
        let (low, high) = (start.max(self.min), last.min(self.max));
        let addr = self.in_phase(low)?;
        if !self.ends_by(addr, high) {
            return None;
        }
        let end = addr + (self.size - 1);
        if self.nocross == 0 || (addr ^ end) < self.nocross {
            return Some(addr);
        }
        // From the next multiple on there is a fit that crosses nothing, or else `check` had refused.
        let addr = self.in_phase((addr | (self.nocross - 1)).checked_add(1)?)?;
        self.ends_by(addr, high).then_some(addr)
    }

    /// The first address from `low` on in phase.
    fn in_phase(&self, low: u64) -> Option<u64> {
        let past = low.wrapping_sub(self.phase) & (self.align - 1);
        if past == 0 {
            Some(low)
        } else {
            low.checked_add(self.align - past)
        }
    }

    fn ends_by(&self, addr: u64, high: u64) -> bool {
        addr <= high && self.size - 1 <= high - addr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fit of small numbers is the lowest address that satisfies the words of the documentation.
    #[test]
    fn a_fit_is_the_lowest_address_that_satisfies_all() {
        let mut fits = 0;
        for align in [1, 2, 4, 16] {
            for phase in 0..align {
                for nocross in [0, 4, 8, 32] {
                    for size in 1..=9 {
                        let mut request = Request::new(size).align(align).phase(phase);
                        if nocross != 0 {
                            request = request.nocross(nocross);
                        }
                        let all: Vec<u64> = (0..200)
                            .filter(|a| {
                                a % align == phase
                                    && (nocross == 0 || a / nocross == (a + size - 1) / nocross)
                            })
                            .collect();
                        let Ok(want) = request.check("test", 1) else {
                            assert!(all.is_empty(), "{request:?}");
                            continue;
                        };
                        for (start, last) in [(0, 5), (3, 3), (5, 40), (17, 60), (31, 99)] {
                            let expected = all
                                .iter()
                                .copied()
                                .find(|a| *a >= start && a + size - 1 <= last);
                            assert_eq!(
                                want.fit(start, last),
                                expected,
                                "{request:?} in {start}..={last}"
                            );
                            fits += usize::from(expected.is_some());
                            let enough = want.enough(1).unwrap();
                            assert!(
                                last - start + 1 < enough || expected.is_some(),
                                "{request:?}"
                            );
                        }
                        let (size, align) = want.span().unwrap();
                        assert!(want.fit(align, align + size - 1).is_some(), "{request:?}");
                    }
                }
            }
        }
        assert!(fits > 1000);
    }

    #[test]
    fn the_end_of_all_numbers_is_no_trap() {
        let top = u64::MAX;
        let fit = |request: Request| request.check("test", 1).unwrap().fit(top - 9, top);
        assert_eq!(fit(Request::new(10)), Some(top - 9));
        assert_eq!(fit(Request::new(11)), None);
        assert_eq!(fit(Request::new(1).align(16)), None);
        assert_eq!(fit(Request::new(1).align(16).phase(15)), Some(top));
        assert_eq!(fit(Request::new(8).nocross(8)), Some(top - 7));
        assert_eq!(fit(Request::new(1).within(top..=top)), Some(top));
        assert_eq!(fit(Request::new(4).align(1 << 63)), None);
        let huge = Request::new(top).align(1 << 63).check("test", 1).unwrap();
        assert_eq!(huge.enough(1), None);
        assert_eq!(huge.fit(0, top), Some(0));
        assert_eq!(huge.fit(1, top), None);
    }
}
