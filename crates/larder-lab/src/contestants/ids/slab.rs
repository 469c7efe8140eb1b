//! The crate slab: a vector with a list of its vacant slots.

use super::{IdSource, Start};

/// `Slab<()>`, bounded by us: the last freed first.
#[derive(Debug)]
pub struct SlabIds {
    slab: slab::Slab<()>,
    count: usize,
}

impl IdSource for SlabIds {
    const ABOUT: &'static str = "crate slab, Slab<()> with a bound of ours: the last freed first";

    fn start(start: &Start) -> anyhow::Result<Self> {
        let count = usize::try_from(start.count())?;
        let mut slab = slab::Slab::with_capacity(count);
        for _ in 0..count {
            slab.insert(());
        }
        for id in start.free_ids() {
            slab.remove(id as usize);
        }
        Ok(Self { slab, count })
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        if self.slab.len() == self.count {
            return None;
        }
        Some(self.slab.insert(()) as u64)
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.slab.try_remove(id as usize).is_some()
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.slab.capacity() * 16)
    }
}
