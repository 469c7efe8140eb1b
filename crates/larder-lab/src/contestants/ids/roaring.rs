//! The crate roaring: compressed bitmaps.

use roaring::RoaringBitmap;

use super::{IdSource, Start};

/// A roaring bitmap of free identifiers: `min`, or with `CYCLIC` `range` from the last one on.
#[derive(Debug)]
pub struct RoaringFree<const CYCLIC: bool> {
    free: RoaringBitmap,
    next: u32,
}

impl<const CYCLIC: bool> IdSource for RoaringFree<CYCLIC> {
    const ABOUT: &'static str =
        "crate roaring as a set of free identifiers, by the rule of the group";

    fn start(start: &Start) -> anyhow::Result<Self> {
        let free = if start.mostly_free() {
            let mut free = RoaringBitmap::new();
            free.insert_range(0..=(start.count() - 1) as u32);
            for &id in start.listed() {
                free.remove(id);
            }
            free
        } else {
            RoaringBitmap::from_sorted_iter(start.free_ids()).map_err(|e| anyhow::anyhow!("{e}"))?
        };
        Ok(Self { free, next: 0 })
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        let id = if CYCLIC {
            match self.free.range(self.next..).next() {
                Some(id) => id,
                None => self.free.min()?,
            }
        } else {
            self.free.min()?
        };
        self.free.remove(id);
        self.next = id.wrapping_add(1);
        Some(u64::from(id))
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.free.insert(id as u32)
    }
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
            taken: RoaringBitmap::from_sorted_iter(start.taken_ids())
                .map_err(|e| anyhow::anyhow!("{e}"))?,
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
