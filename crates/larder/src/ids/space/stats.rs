//! What a space has done.

use super::IdSpace;
use crate::ids::Id;
use crate::ids::rule::{Order, Rule};

/// What a space has done so far. Read without stopping any thread, so the numbers are of slightly different moments.
///
/// ```
/// use larder::ids::{IdSpace, rule::Lowest};
///
/// let tags = IdSpace::new(0u16..4096, Lowest)?;
/// let tag = tags.alloc()?;
/// let stats = tags.stats();
/// assert_eq!((stats.taken, stats.waiting, stats.orphans), (1, 0, 0));
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceStats {
    /// Identifiers that the map does not call free: allocated, lying ready for a CPU, or freed and left in place.
    pub taken: u64,
    /// Identifiers handed out of CPUs' magazines.
    pub hits: u64,
    /// Batches claimed from the map.
    pub claims: u64,
    /// Batches of freed identifiers that went to the map.
    pub flushes: u64,
    /// Times all magazines were emptied because identifiers were scarce, or because of one in particular.
    pub collections: u64,
    /// Identifiers taken straight from the map because they were scarce.
    pub direct: u64,
    /// Times all cells were read to know whether the space was full.
    pub readings: u64,
    /// Threads that wait now.
    pub waiting: u64,
    /// Free identifiers that cannot be handed out because the map had no memory to take them back.
    pub orphans: u64,
    /// Identifiers are so scarce that magazines are not used.
    pub scarce: bool,
}

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    /// What it has done so far.
    pub fn stats(&self) -> SpaceStats {
        let hits = self.front.get().map_or(0, |front| front.ready.stats().pops);
        let ledger = self.lock();
        SpaceStats {
            taken: ledger.order.taken(),
            hits,
            claims: ledger.counts.claims,
            flushes: ledger.counts.flushes,
            collections: ledger.counts.collections,
            direct: ledger.counts.direct,
            readings: ledger.counts.readings,
            waiting: ledger.queue.len() as u64,
            orphans: ledger.orphans,
            scarce: ledger.direct,
        }
    }
}
