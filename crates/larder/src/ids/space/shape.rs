//! How a rule is shared between threads.

use crate::ids::Rule;
use crate::ids::rule::{Cyclic, Fifo, Lifo, Lowest};

/// How far a rule lets identifiers lie ready for one CPU, outside of the map that all share.
///
/// In the formulas F is the number of free identifiers, C the number of CPUs that the process may use and B what a CPU's
/// two magazines hold at most (128).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The rule is kept exactly: every operation goes to the map under its lock. Reuse distance: the rule's own.
    Exact,
    /// Freed identifiers lie ready for the CPU that freed them, the last one on top, and are handed out again by that
    /// CPU: no lock, no shared line. Reuse distance: 0, as for every rule that hands out the last freed first.
    Near,
    /// Identifiers are claimed from the map in lots, in the order of the rule, and handed out from the lots in that order;
    /// freed ones go to a return lot and reach the map in batches. An identifier is handed out at the earliest when the
    /// rule would do so for a space with C × (B + F / 4C) fewer free identifiers: that many may lie in lots. So where the
    /// rule alone promises a distance of d(F) allocations, the shared space promises d(F) - C × B - F / 4, never below 0,
    /// and from the moment on when it goes to the map directly (F < 4C) again d(F).
    InOrder,
}

/// A [`Rule`] that [`IdSpace`](crate::ids::IdSpace) can keep for many threads.
///
/// ```
/// use larder::ids::rule::{Cyclic, Lowest};
/// use larder::ids::{Shape, SharedRule};
///
/// assert_eq!(Lowest::SHAPE, Shape::Exact);
/// assert_eq!(Cyclic::SHAPE, Shape::InOrder);
/// ```
pub trait SharedRule: Rule<Order: Send> {
    /// What the rule allows.
    const SHAPE: Shape;
}

impl SharedRule for Lowest {
    const SHAPE: Shape = Shape::Exact;
}

impl SharedRule for Cyclic {
    const SHAPE: Shape = Shape::InOrder;
}

impl SharedRule for Fifo {
    const SHAPE: Shape = Shape::InOrder;
}

impl SharedRule for Lifo {
    const SHAPE: Shape = Shape::Near;
}
