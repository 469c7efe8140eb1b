//! The suppliers of ranges of numbers: larder's arenas, and two crates.

use larder::arena::{Arena, ArenaHandle, Fit};

/// Ranges of up to [`LARGEST`] units out of as many as it was made for.
pub(super) trait Ranges {
    /// A range; `None` when there is none.
    fn take(&mut self, units: u64) -> Option<u64>;

    /// Takes it back. False when it refuses.
    fn give(&mut self, start: u64, units: u64) -> bool;

    /// Segments that it knows, free and taken, where it tells.
    fn segments(&self) -> Option<u64> {
        None
    }
}

/// The largest range that is taken: each size up to here has a quantum cache.
pub(super) const LARGEST: u64 = 4;

/// An arena of this many units, with quantum caches or without.
///
/// # Errors
/// What it needs and does not get.
pub(super) fn arena(units: u64, fit: Fit, cached: bool) -> anyhow::Result<Arena> {
    let builder = Arena::builder("ranges").fit(fit);
    let builder = if cached {
        builder.quantum_max(LARGEST)
    } else {
        builder
    };
    let arena = builder.build()?;
    arena.add(0, units)?;
    Ok(arena)
}

impl Ranges for Arena {
    #[inline]
    fn take(&mut self, units: u64) -> Option<u64> {
        self.alloc(units).ok()
    }

    #[inline]
    fn give(&mut self, start: u64, units: u64) -> bool {
        self.free(start, units).is_ok()
    }

    fn segments(&self) -> Option<u64> {
        Some(self.stats().segments)
    }
}

impl Ranges for ArenaHandle<'_> {
    #[inline]
    fn take(&mut self, units: u64) -> Option<u64> {
        self.alloc(units).ok()
    }

    #[inline]
    fn give(&mut self, start: u64, units: u64) -> bool {
        self.free(start, units).is_ok()
    }
}

#[cfg(feature = "peers")]
pub(super) use peers::{Offsets, Sorted};

#[cfg(feature = "peers")]
mod peers {
    use std::ops::Range;

    use anyhow::ensure;
    use offset_allocator::{Allocation, Allocator};
    use range_alloc::RangeAllocator;

    use super::Ranges;

    /// `offset_allocator::Allocator`. A range is given back by the ticket that came with it, which is kept here by the
    /// range's start; an arena needs no such table.
    pub(in super::super) struct Offsets {
        allocator: Allocator<u32>,
        tickets: Vec<Option<Allocation<u32>>>,
    }

    impl Offsets {
        /// For `units` units in at most `live` ranges but for a filling with twice as many, and as many free pieces.
        ///
        /// # Errors
        /// More than 32 bits can count.
        pub(in super::super) fn new(units: u64, live: usize) -> anyhow::Result<Self> {
            ensure!(
                units < 1 << 30 && live < 1 << 28,
                "offset-allocator counts {units} units with 32 bits"
            );
            Ok(Self {
                allocator: Allocator::with_max_allocs(units as u32, 4 * live as u32 + 64),
                tickets: vec![None; units as usize],
            })
        }
    }

    impl Ranges for Offsets {
        #[inline]
        fn take(&mut self, units: u64) -> Option<u64> {
            let ticket = self.allocator.allocate(units as u32)?;
            *self.tickets.get_mut(ticket.offset as usize)? = Some(ticket);
            Some(u64::from(ticket.offset))
        }

        #[inline]
        fn give(&mut self, start: u64, _units: u64) -> bool {
            let ticket = self.tickets.get_mut(start as usize).and_then(Option::take);
            ticket.map(|ticket| self.allocator.free(ticket)).is_some()
        }
    }

    /// `range_alloc::RangeAllocator`: free ranges in a vector by address, the first that fits best.
    pub(in super::super) struct Sorted(pub(in super::super) RangeAllocator<u64>);

    impl Ranges for Sorted {
        #[inline]
        fn take(&mut self, units: u64) -> Option<u64> {
            self.0.allocate_range(units).ok().map(|range| range.start)
        }

        #[inline]
        fn give(&mut self, start: u64, units: u64) -> bool {
            self.0.free_range(Range {
                start,
                end: start + units,
            });
            true
        }
    }
}
