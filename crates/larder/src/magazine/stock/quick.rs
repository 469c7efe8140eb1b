//! The two halves of a fast path: what needs no lock, and what is left for the caller's slow path.

use super::Stock;

impl Stock {
    /// As [`try_get`](Self::try_get), but without a lock: in locked mode there is never a round. For fast paths whose slow
    /// path calls [`locked_get`](Self::locked_get) or `try_get`.
    #[inline(always)]
    pub(crate) fn quick_get(&self) -> Option<usize> {
        self.cpu_layer.pop_section()
    }

    /// As [`try_put`](Self::try_put), but without a lock: in locked mode there is never room.
    #[inline(always)]
    #[must_use]
    pub(crate) fn quick_put(&self, round: usize) -> bool {
        self.cpu_layer.push_section(round)
    }

    /// What [`quick_get`](Self::quick_get) leaves: a round under a lock, in locked mode only.
    pub(crate) fn locked_get(&self) -> Option<usize> {
        self.cpu_layer.pop_locked()
    }

    /// What [`quick_put`](Self::quick_put) leaves.
    pub(crate) fn locked_put(&self, round: usize) -> bool {
        self.cpu_layer.push_locked(round)
    }
}
