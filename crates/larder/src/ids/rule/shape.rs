//! How a rule is shared between threads.

/// How far a rule lets identifiers of an `IdSpace` lie ready for one CPU, outside of the map that all share.
///
/// In the formulas F is the number of free identifiers, C the number of CPUs that the process may use, and d(F) the number
/// of allocations that the rule alone promises between a free and the next use of the same identifier.
///
/// [`Rule::SHAPE`](super::Rule::SHAPE) says which rule has which.
///
/// ```
/// use larder::ids::{Rule, Shape};
/// use larder::ids::rule::{Cyclic, Lowest};
///
/// assert_eq!((Lowest::SHAPE, Cyclic::SHAPE), (Shape::Exact, Shape::InPlace));
/// ```
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
    /// For rules that go round. The experiment `id-space` needs it: by [`InOrder`](Self::InOrder) a cyclic space misses the
    /// 10 ns of the rows `threads`. A freed identifier stays where it is: its byte says that it is free, and nothing else is
    /// written. Batches of at most 64 are claimed by going round over these bytes, under the lock, and each from at most one
    /// 4C-th of the range; so they are in the order of the rule. Reuse distance: d(F) less the batches, which are at most 64 C
    /// and on average F / 4 at most: what lies in a batch was chosen before its time. Where they are so scarce that
    /// thousands of bytes lie between them everything goes to the map, and it is d(F). A space with water marks must count what is
    /// free, and is shared as [`InOrder`](Self::InOrder).
    InPlace,
}
