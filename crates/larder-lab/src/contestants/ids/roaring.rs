//! The crate roaring: compressed bitmaps.

use roaring::RoaringBitmap;

use super::{FreeSet, IdSource, Ordered, Start};

/// A roaring bitmap of free identifiers: `min`, or with `CYCLIC` `range` from the last one on.
pub type RoaringFree<const CYCLIC: bool> = Ordered<RoaringBitmap, CYCLIC>;

impl FreeSet for RoaringBitmap {
    const ABOUT: &'static str =
        "crate roaring as a set of free identifiers, by the rule of the group";

    fn of(start: &Start) -> anyhow::Result<Self> {
        if !start.mostly_free() {
            return sorted(start.free_ids());
        }
        let mut free = Self::new();
        free.insert_range(0..=(start.count() - 1) as u32);
        for &id in start.listed() {
            free.remove(id);
        }
        Ok(free)
    }

    #[inline]
    fn lowest(&self) -> Option<u32> {
        self.min()
    }

    #[inline]
    fn at_or_after(&self, from: u32) -> Option<u32> {
        self.range(from..).next()
    }

    #[inline]
    fn add(&mut self, id: u32) -> bool {
        self.insert(id)
    }

    #[inline]
    fn take(&mut self, id: u32) {
        self.remove(id);
    }
}

/// The set of ascending identifiers.
fn sorted(ids: impl Iterator<Item = u32>) -> anyhow::Result<RoaringBitmap> {
    RoaringBitmap::from_sorted_iter(ids).map_err(|e| anyhow::anyhow!("{e}"))
}

/// A roaring bitmap of taken identifiers: small where few are taken. The next free one is found by trying, as the
/// crate has no search for a gap.
#[derive(Debug)]
pub struct RoaringTaken {
    taken: RoaringBitmap,
    count: u64,
    next: u64,
}

impl IdSource for RoaringTaken {
    const ABOUT: &'static str =
        "crate roaring as a set of taken identifiers; the next free one is found by trying";

    fn start(start: &Start) -> anyhow::Result<Self> {
        Ok(Self {
            taken: sorted(start.taken_ids())?,
            count: start.count(),
            next: 0,
        })
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        for _ in 0..self.count {
            let id = self.next;
            self.next = if id + 1 == self.count { 0 } else { id + 1 };
            if self.taken.insert(id as u32) {
                return Some(id);
            }
        }
        None
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.taken.remove(id as u32)
    }
}
