//! A space that is filled when it is made, as cilium's pool of identities is (pkg/idpool).

use std::collections::HashSet;

use super::{IdSource, Start};

/// A hash set of every free identifier; any of them is next. Only its making is of interest.
#[derive(Debug)]
pub struct Eager(HashSet<u32>);

impl IdSource for Eager {
    const ABOUT: &'static str = "a hash set of all free identifiers, filled when it is made, as cilium's pool of identities was";

    fn start(start: &Start) -> anyhow::Result<Self> {
        Ok(Self(start.free_ids().collect()))
    }

    fn alloc(&mut self) -> Option<u64> {
        let id = *self.0.iter().next()?;
        self.0.remove(&id);
        Some(u64::from(id))
    }

    fn free(&mut self, id: u64) -> bool {
        self.0.insert(id as u32)
    }
}
