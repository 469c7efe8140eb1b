//! What lies behind the lock of a space: the map, and the queue of threads that wait for it.

use std::fmt;

use super::queue::Queue;
use crate::ids::rule::Order;
use crate::os::lock::order::{Rank, Ranked};

impl<O> Ranked for Ledger<O> {
    const RANK: Rank = Rank::IdLedger;
}

/// The locked part of a space.
#[derive(Debug)]
pub(super) struct Ledger<O> {
    pub(super) order: O,
    /// Largest offset.
    pub(super) last: u64,
    /// The gate is up: everything goes to the map.
    pub(super) direct: bool,
    /// While the gate is up: the magazines are known to be empty, and nothing is on its way.
    pub(super) clean: bool,
    /// The last attempt met identifiers that rest, so that the number of free ones says nothing.
    pub(super) resting: bool,
    /// Where identifiers lie in place: the offset at which the next batch begins. `None` is wherever the map goes on.
    pub(super) sweep_from: Option<u64>,
    /// Cells that the next batch may need.
    pub(super) stretch: u64,
    /// Identifiers taken before there were magazines.
    pub(super) early: usize,
    /// Threads that need the gate up.
    pub(super) holders: u32,
    /// Offsets that are free, but that the map had no memory to take back: as many cells read `ORPHAN`.
    pub(super) orphans: u64,
    pub(super) queue: Queue,
    /// For each water mark, by bit, whether fewer are free.
    pub(super) below: u64,
    /// This process is a child: threads that were on their way with identifiers may be gone.
    pub(super) forked: bool,
    /// Fork generation of the process that used it last.
    pub(super) generation: u32,
    pub(super) counts: Counts,
}

/// What happened so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) claims: u64,
    pub(super) flushes: u64,
    pub(super) collections: u64,
    pub(super) direct: u64,
    pub(super) readings: u64,
}

impl<O: Order> Ledger<O> {
    pub(super) fn new(order: O, last: u64) -> Self {
        Self {
            order,
            last,
            direct: false,
            clean: false,
            resting: false,
            sweep_from: None,
            stretch: super::sync::BATCH as u64,
            early: 0,
            holders: 0,
            orphans: 0,
            queue: Queue::default(),
            below: 0,
            forked: false,
            generation: crate::os::fork::generation(),
            counts: Counts::default(),
        }
    }

    /// Free offsets of the map; what lies in magazines is not among them.
    pub(super) fn free(&self) -> u64 {
        // 2^64 free ones are one more than fit.
        (self.last - self.order.taken().min(self.last))
            .saturating_add(u64::from(self.order.taken() <= self.last))
    }

    /// Where identifiers lie in place: the offset at which the next batch begins.
    pub(super) fn next_place(&self) -> u64 {
        let at = match self.sweep_from {
            Some(at) => at,
            None => self.order.cursor().map_or(0, |cursor| cursor + 1),
        };
        if at > self.last { 0 } else { at }
    }

    /// The map goes on where the batches that were found in place ended.
    pub(super) fn end_sweep(&mut self) {
        if let Some(at) = self.sweep_from.take() {
            let latest = at.checked_sub(1).unwrap_or(self.last);
            // Without memory it begins elsewhere.
            let _ = self.order.set_cursor(latest);
        }
    }
}

/// A water mark was crossed.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use larder::ids::{Crossing, IdSpace, rule::Lowest};
/// let last = Arc::new(Mutex::new(None));
/// let reported = last.clone();
/// let mut ids = IdSpace::new(0u8..3, Lowest)?;
/// ids.on_crossing(2, Box::new(move |crossing| *reported.lock().unwrap() = Some(crossing)))?;
/// (ids.alloc()?, ids.alloc()?);
/// assert_eq!(*last.lock().unwrap(), Some(Crossing { mark: 2, below: true, free: 1 }));
/// ids.free(0)?;
/// assert_eq!(*last.lock().unwrap(), Some(Crossing { mark: 2, below: false, free: 2 }));
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing {
    /// The mark, as it was given.
    pub mark: u64,
    /// True when fewer identifiers than the mark are free now, false when as many or more are again.
    pub below: bool,
    /// Free identifiers of the map when it was crossed.
    pub free: u64,
}

/// A mark, and the function to call when it is crossed.
pub(super) struct Mark {
    pub(super) free: u64,
    pub(super) call: Box<dyn Fn(Crossing) + Send + Sync>,
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mark").field(&self.free).finish()
    }
}

/// Marks that were crossed, as bits, and what was free then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossed {
    pub(super) marks: u64,
    pub(super) below: u64,
    pub(super) free: u64,
}
