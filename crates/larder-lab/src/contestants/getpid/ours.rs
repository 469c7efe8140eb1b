//! larder's own ids in the space of 2002, under any of the library's rules.

use larder::ids::Ids;
use larder::ids::rule::{Cyclic, Rule};

use super::{GetPid, Layout, PID_MAX, Tasks};

/// `Ids` under a rule. An id that it refuses to take back is found by the list that the workload keeps.
#[derive(Debug)]
pub struct Ours<R: Rule>(pub(super) Ids<R>);

impl<R: Rule> Ours<R> {
    /// The ids of 2002, 1 to 32767.
    ///
    /// # Errors
    /// No memory.
    pub fn new(rule: R) -> anyhow::Result<Self> {
        Self::with_end(u64::from(PID_MAX), rule)
    }

    /// The ids 1 to `end - 1`.
    ///
    /// # Errors
    /// No memory.
    pub fn with_end(end: u64, rule: R) -> anyhow::Result<Self> {
        Ok(Self(Ids::new(1..end, rule)?))
    }

    /// How many ids are in use.
    pub fn used(&self) -> u64 {
        self.0.allocated()
    }
}

impl Ours<Cyclic> {
    /// The space of 2002 after `last` was handed out. The rule goes on from the id handed out last, so it is led there.
    ///
    /// # Errors
    /// No memory.
    pub fn after(last: u32) -> anyhow::Result<Self> {
        let mut ours = Self::new(Cyclic)?;
        for _ in 0..last {
            ours.0.alloc()?;
        }
        for id in 1..=u64::from(last) {
            ours.0.free(id)?;
        }
        Ok(ours)
    }
}

impl<R: Rule> GetPid for Ours<R> {
    #[inline]
    fn get<L: Layout>(&mut self, _: &Tasks<L>) -> Option<u32> {
        self.0.alloc().ok().and_then(|id| u32::try_from(id).ok())
    }

    #[inline]
    fn freed(&mut self, pid: u32) {
        let _ = self.0.free(u64::from(pid));
    }

    fn taken(&mut self, pid: u32) {
        let _ = self.0.alloc_at(u64::from(pid));
    }
}
