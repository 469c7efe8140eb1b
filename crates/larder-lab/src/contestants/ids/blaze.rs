//! The crate range-set-blaze: an ordered map of ranges.

use range_set_blaze::RangeSetBlaze;

use super::{IdSource, Start};

/// A `RangeSetBlaze<u32>` of free identifiers: `pop_first`, or with `CYCLIC` the range or gap at the last one.
#[derive(Debug)]
pub struct Blaze<const CYCLIC: bool> {
    free: RangeSetBlaze<u32>,
    last: u32,
    next: u32,
}

impl<const CYCLIC: bool> Blaze<CYCLIC> {
    #[inline]
    fn find(&self) -> Option<u32> {
        let (range, free) = self.free.range_or_gap_at(self.next);
        if free {
            return Some(self.next);
        }
        // A gap ends before the next range, and the last one at the end of the type.
        match range.end().checked_add(1) {
            Some(id) if id <= self.last => Some(id),
            _ => self.free.first(),
        }
    }
}

impl<const CYCLIC: bool> IdSource for Blaze<CYCLIC> {
    const ABOUT: &'static str =
        "crate range-set-blaze as a set of free identifiers, by the rule of the group";

    fn start(start: &Start) -> anyhow::Result<Self> {
        Ok(Self {
            free: start.free_ids().collect(),
            last: (start.count() - 1) as u32,
            next: 0,
        })
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        if !CYCLIC {
            return self.free.pop_first().map(u64::from);
        }
        let id = self.find()?;
        self.free.remove(id);
        self.next = if id == self.last { 0 } else { id + 1 };
        Some(u64::from(id))
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.free.insert(id as u32)
    }
}
