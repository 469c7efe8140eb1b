//! Rules whose type is chosen while the program runs.

use super::{Frames, Named, Policy, PolicyError, Visitor, with_rule};

/// A [`Policy`] whose type is not known, as in `Box<dyn Rule>`. Every [`Policy`] is one, and is called by the methods of [`Policy`].
/// Only the two that ask the owner back have a form of their own here, since a trait object has no generic methods.
///
/// ```
/// use larder_policy::{Arrival, Block, Policy, Reason, rule};
/// let mut rule = rule("lru", 2)?;
/// for frame in 0..2 {
///     let admission = rule.miss(Block(7), None, Reason::Demand);
///     rule.insert(frame, Arrival::demand(Block(7), 0, admission));
/// }
/// let mut gone = Vec::new();
/// assert_eq!(rule.evict_dyn(&mut gone, 1), 1);
/// assert_eq!(gone, [0]);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
pub trait Rule: Policy {
    /// [`Policy::evict`], for an owner whose type is not known either.
    fn evict_dyn(&mut self, frames: &mut dyn Frames, wanted: usize) -> usize;

    /// [`Policy::tick`], for an owner whose type is not known either.
    fn tick_dyn(&mut self, frames: &mut dyn Frames);
}

impl<P: Policy> Rule for P {
    fn evict_dyn(&mut self, mut frames: &mut dyn Frames, wanted: usize) -> usize {
        self.evict(&mut frames, wanted)
    }

    fn tick_dyn(&mut self, mut frames: &mut dyn Frames) {
        self.tick(&mut frames);
    }
}

struct Make(usize);

impl Visitor for Make {
    type Out = Result<Box<dyn Rule>, PolicyError>;

    fn visit<P: Named>(self) -> Self::Out {
        P::new(self.0).map(|rule| Box::new(rule) as Box<dyn Rule>)
    }
}

/// The rule of this name for `capacity` frames.
///
/// # Errors
/// [`PolicyError`]: no such rule, a capacity that no rule can have, or no memory.
///
/// ```
/// use larder_policy::{Policy, PolicyError, rule};
/// let mut chosen = rule("adaptive", 100)?;
/// chosen.resize(50)?;
/// assert_eq!((chosen.capacity(), chosen.len()), (50, 0));
/// assert!(matches!(rule("lru", 0), Err(PolicyError::Capacity { frames: 0, .. })));
/// # Ok::<(), PolicyError>(())
/// ```
pub fn rule(name: &str, capacity: usize) -> Result<Box<dyn Rule>, PolicyError> {
    with_rule(name, Make(capacity))?
}
