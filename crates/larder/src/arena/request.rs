//! What an allocation asks for.

use core::fmt;
use core::ops::RangeInclusive;

use super::core::{Fit, Want};

/// A size and where it may lie, for [`Arena::xalloc`](super::Arena::xalloc).
///
/// ```
/// use larder::arena::{Arena, Fit, Request};
///
/// let arena = Arena::builder("addresses").quantum(4096).build()?;
/// arena.add(0, 1 << 30)?;
/// let request = Request::new(8192)
///     .align(1 << 20)
///     .phase(4096)                   // one page after a multiple of a mebibyte
///     .nocross(1 << 20)              // not across such a multiple
///     .within(1 << 24..=(1 << 25) - 1)
///     .fit(Fit::Best);
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
    pub(super) fit: Option<Fit>,
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
            fit: None,
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
    /// # use larder::arena::{Arena, Fit, Request};
    /// # let ids = Arena::builder("ids").build()?;
    /// ids.add(5, 1000)?;
    /// ids.free(ids.alloc(1)?, 1)?;
    /// assert_eq!(ids.xalloc(&Request::new(1).fit(Fit::Next))?, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn fit(mut self, fit: Fit) -> Self {
        self.fit = Some(fit);
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

impl From<&Want> for Request {
    fn from(want: &Want) -> Self {
        Self {
            size: want.size,
            align: want.align,
            phase: want.phase,
            nocross: (want.nocross != 0).then_some(want.nocross),
            min: want.min,
            max: want.max,
            fit: want.fit,
        }
    }
}
