//! What is wanted, and where it fits.

/// By which rule a free segment is chosen.
///
/// ```
/// # use larder::arena::{Arena, Fit, Request};
/// let ids = Arena::builder("ids").build()?;
/// ids.add(0, 100)?;
/// let small = ids.alloc(10)?;
/// ids.alloc(1)?;
/// ids.free(small, 10)?;                       // free are now 10 in front and 89 behind
/// assert_eq!(ids.xalloc(&Request::new(9).fit(Fit::Instant))?, 11);
/// assert_eq!(ids.xalloc(&Request::new(9).fit(Fit::Best))?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
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

/// A request that makes sense: all but the bounds are multiples of the quantum, and there are addresses that satisfy
/// alignment, phase and nocross together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Want {
    pub(crate) size: u64,
    pub(crate) align: u64,
    pub(crate) phase: u64,
    /// 0 is none.
    pub(crate) nocross: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) fit: Option<Fit>,
}

impl Want {
    /// A size at a multiple of an alignment, which is one of the quantum.
    pub(crate) fn aligned(size: u64, align: u64) -> Self {
        Self {
            size,
            align,
            phase: 0,
            nocross: 0,
            min: 0,
            max: u64::MAX,
            fit: None,
        }
    }

    /// Whether there are bounds.
    pub(crate) fn is_bounded(&self) -> bool {
        (self.min, self.max) != (0, u64::MAX)
    }

    /// How large a segment must be so that there is a fit wherever it begins, bounds aside. `None` when that is more
    /// than any segment has.
    pub(crate) fn enough(&self, quantum: u64) -> Option<u64> {
        // Of all multiples of the larger one plus phase, one lies in reach, and there it crosses nothing.
        (self.align.max(self.nocross) - quantum).checked_add(self.size)
    }

    /// The span to import, size and alignment, in which there is certainly a fit.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        let size = self.size.checked_add(self.phase)?;
        Some((size, self.align.max(self.nocross)))
    }

    /// The lowest address at which the request fits in a free segment.
    #[inline]
    pub(crate) fn place(&self, start: u64, last: u64) -> Option<u64> {
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
