//! How a rule is shared between threads.

use crate::ids::Rule;
use crate::ids::rule::{Any, Clock, Cyclic, Epochs, Fifo, Lifo, Lowest, Random, Rested};

/// How far a rule lets identifiers lie ready for one CPU, outside of the map that all share.
///
/// In the formulas F is the number of free identifiers, C the number of CPUs that the process may use, and d(F) the number
/// of allocations that the rule alone promises between a free and the next use of the same identifier.
///
/// [`SharedRule`] says which rule has which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The rule is kept exactly: every operation goes to the map under its lock. Reuse distance: the rule's own.
    Exact,
    /// Freed identifiers lie ready for the CPU that freed them, the last one on top, and are handed out again by that
    /// CPU: no lock, no shared line. Reuse distance: 0, as for every rule that hands out the last freed first.
    Near,
    /// Identifiers are claimed from the map in batches of at most 64 and at most F / 4C, in the order of the rule, and handed
    /// out from the batches in that order; freed ones go to a return magazine and reach the map in batches of at most 128, the
    /// oldest first. Reuse distance: d(F - 128 C) less the batches, which are at most 64 C and at most F / 4: what lies in
    /// return magazines is out of the rule's sight, and what lies in batches was chosen before its time. While fewer than 4 C are
    /// free batches are not used, and it is d(F). An identifier that is wanted by name or in a run sends the batches back to the
    /// map, where they count as freed last.
    InOrder,
    /// For rules that go round. A freed identifier stays where it is: its byte says that it is free, and nothing else is
    /// written. Batches of at most 64 are claimed by going round over these bytes, under the lock, and each from at most one
    /// 4C-th of the range; so they are in the order of the rule. Reuse distance: d(F) less the batches, which are at most 64 C
    /// and on average F / 4 at most: what lies in a batch was chosen before its time. Where they are so scarce that
    /// thousands of bytes lie between them everything goes to the map, and it is d(F). A space with water marks must count what is
    /// free, and is shared as [`InOrder`](Self::InOrder).
    InPlace,
}

/// A [`Rule`] that [`IdSpace`](crate::ids::IdSpace) can keep for many threads.
///
/// ```
/// use larder::ids::rule::{Cyclic, Lowest};
/// use larder::ids::{Shape, SharedRule};
///
/// assert_eq!(Lowest::SHAPE, Shape::Exact);
/// assert_eq!(Cyclic::SHAPE, Shape::InPlace);
/// ```
pub trait SharedRule: Rule<Order: Send> {
    /// What the rule allows.
    const SHAPE: Shape;
}

impl SharedRule for Lowest {
    const SHAPE: Shape = Shape::Exact;
}

impl SharedRule for Cyclic {
    const SHAPE: Shape = Shape::InPlace;
}

impl SharedRule for Fifo {
    const SHAPE: Shape = Shape::InOrder;
}

/// The identifier that is cheapest to find is in a magazine nearby.
impl SharedRule for Any {
    const SHAPE: Shape = Shape::Near;
}

impl SharedRule for Lifo {
    const SHAPE: Shape = Shape::Near;
}

impl<const K: usize> SharedRule for Epochs<K>
where
    Self: Rule<Order: Send>,
{
    const SHAPE: Shape = Shape::InOrder;
}

/// A freed identifier does not come back to the thread that freed it, or the next one could be guessed: it goes through
/// the map.
impl SharedRule for Random {
    const SHAPE: Shape = Shape::InOrder;
}

/// A rest is a promise to the tick, so nothing lies in batches: they would be chosen before their time.
impl<R: Rule<Order: Send>, C: Clock + Send> SharedRule for Rested<R, C> {
    const SHAPE: Shape = Shape::Exact;
}
