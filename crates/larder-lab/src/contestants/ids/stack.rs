//! A bare array of free identifiers: the lower bound for handing out the last freed one.

use super::{IdSource, Start};

/// Identifiers of 32 bits in an array that has room for all of them. Checks nothing but the array's ends.
#[derive(Debug)]
pub struct Stack {
    slots: Box<[u32]>,
    len: usize,
}

impl IdSource for Stack {
    const ABOUT: &'static str =
        "a bare array of free identifiers of 32 bits: the last freed first, nothing checked";

    fn start(start: &Start) -> anyhow::Result<Self> {
        let mut slots: Vec<u32> = start.free_ids().collect();
        let len = slots.len();
        slots.resize(usize::try_from(start.count())?, 0);
        Ok(Self {
            slots: slots.into_boxed_slice(),
            len,
        })
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        let top = self.len.checked_sub(1)?;
        let id = *self.slots.get(top)?;
        self.len = top;
        Some(u64::from(id))
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        let Some(slot) = self.slots.get_mut(self.len) else {
            return false;
        };
        *slot = id as u32;
        self.len += 1;
        true
    }

    fn bytes(&self) -> Option<usize> {
        Some(4 * self.slots.len())
    }

    const CHECKS: bool = false;
}
