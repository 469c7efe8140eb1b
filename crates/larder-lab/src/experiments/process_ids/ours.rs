//! larder's own ids under the workload of 2002.

use larder::ids::Ids;
use larder::ids::rule::Cyclic;

use crate::contestants::getpid::{GetPid, Layout, PID_MAX, Tasks};

/// `Ids<Cyclic>` over the ids of 2002.
#[derive(Debug)]
pub(super) struct Ours(Ids<Cyclic>);

impl Ours {
    /// The space after `last` was handed out.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn after(last: u32) -> anyhow::Result<Self> {
        let mut ids = Ids::new(1..PID_MAX, Cyclic)?;
        // The rule goes on from the id handed out last, so it is led there.
        if last > 0 {
            for _ in 0..last {
                ids.alloc()?;
            }
            for id in 1..=u64::from(last) {
                ids.free(id)?;
            }
        }
        Ok(Self(ids))
    }
}

impl GetPid for Ours {
    #[inline]
    fn get<L: Layout>(&mut self, _: &Tasks<L>) -> Option<u32> {
        self.0.alloc().ok().and_then(|id| u32::try_from(id).ok())
    }

    #[inline]
    fn freed(&mut self, pid: u32) {
        // An id that was not allocated is an error value; the shadow of the harness finds what follows from it.
        let _ = self.0.free(u64::from(pid));
    }

    fn taken(&mut self, pid: u32) {
        let _ = self.0.alloc_at(u64::from(pid));
    }
}
