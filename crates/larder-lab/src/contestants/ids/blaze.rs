//! The crate range-set-blaze: an ordered map of ranges.

use range_set_blaze::RangeSetBlaze;

use super::{FreeSet, Ordered, Start};

/// A `RangeSetBlaze<u32>` of free identifiers: `pop_first`, or with `CYCLIC` the range or gap at the last one.
pub type Blaze<const CYCLIC: bool> = Ordered<RangeSetBlaze<u32>, CYCLIC>;

impl FreeSet for RangeSetBlaze<u32> {
    const ABOUT: &'static str =
        "crate range-set-blaze as a set of free identifiers, by the rule of the group";

    fn of(start: &Start) -> anyhow::Result<Self> {
        Ok(start.free_ids().collect())
    }

    #[inline]
    fn lowest(&self) -> Option<u32> {
        self.first()
    }

    #[inline]
    fn at_or_after(&self, from: u32) -> Option<u32> {
        let (range, free) = self.range_or_gap_at(from);
        if free {
            return Some(from);
        }
        // A gap ends before the next range, and the last one at the end of the type.
        range.end().checked_add(1)
    }

    #[inline]
    fn add(&mut self, id: u32) -> bool {
        self.insert(id)
    }

    #[inline]
    fn take(&mut self, id: u32) {
        self.remove(id);
    }

    #[inline]
    fn take_lowest(&mut self) -> Option<u32> {
        self.pop_first()
    }
}
