//! The standard library's ordered set, as a set of free identifiers.

use std::collections::BTreeSet;

use super::{IdSource, Start};

/// `BTreeSet<u32>` of free identifiers: `first`, or with `CYCLIC` `range` from the last one on.
#[derive(Debug)]
pub struct OrderedSet<const CYCLIC: bool> {
    free: BTreeSet<u32>,
    next: u32,
}

impl<const CYCLIC: bool> IdSource for OrderedSet<CYCLIC> {
    const ABOUT: &'static str =
        "the standard library's BTreeSet of free identifiers, by the rule of the group";

    fn start(start: &Start) -> anyhow::Result<Self> {
        Ok(Self {
            free: start.free_ids().collect(),
            next: 0,
        })
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        if !CYCLIC {
            return self.free.pop_first().map(u64::from);
        }
        let id = match self.free.range(self.next..).next() {
            Some(id) => *id,
            None => *self.free.first()?,
        };
        self.free.remove(&id);
        self.next = id.wrapping_add(1);
        Some(u64::from(id))
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.free.insert(id as u32)
    }
}
