//! A bare ring of free identifiers: the lower bound for handing out the first freed one.

use super::{IdSource, Start};

/// Identifiers of 32 bits in a ring whose size is a power of two. Checks nothing: what is freed twice is there twice.
#[derive(Debug)]
pub struct Ring {
    slots: Box<[u32]>,
    /// Counts of identifiers taken out and put in; their difference is what is in the ring.
    taken: u32,
    put: u32,
}

impl IdSource for Ring {
    const ABOUT: &'static str =
        "a bare ring of free identifiers of 32 bits: the first freed first, nothing checked";

    fn start(start: &Start) -> anyhow::Result<Self> {
        let slots = start.count().next_power_of_two();
        anyhow::ensure!(
            slots < 1 << 32,
            "a ring of {slots} identifiers is not made; its counters have 32 bits"
        );
        let mut ring = Self {
            slots: vec![0; slots as usize].into_boxed_slice(),
            taken: 0,
            put: 0,
        };
        for id in start.free_ids() {
            ring.free(u64::from(id));
        }
        Ok(ring)
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        if self.taken == self.put {
            return None;
        }
        let id = self.slots[self.taken as usize & (self.slots.len() - 1)];
        self.taken = self.taken.wrapping_add(1);
        Some(u64::from(id))
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        let mask = self.slots.len() - 1;
        self.slots[self.put as usize & mask] = id as u32;
        self.put = self.put.wrapping_add(1);
        true
    }

    fn bytes(&self) -> Option<usize> {
        Some(4 * self.slots.len())
    }

    const CHECKS: bool = false;
}
