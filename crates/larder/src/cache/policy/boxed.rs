//! Rules whose type is chosen while the program runs.

use super::{
    Admission, Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow,
    Touch, Visitor, with_rule,
};

/// [`Policy`] for `Box<dyn Rule>`: the same calls. Every [`Policy`] is one.
///
/// ```
/// use larder::cache::policy::{Arrival, Block, Reason, rule};
/// let mut rule = rule("lru", 2)?;
/// for frame in 0..2 {
///     let admission = rule.miss(Block(7), None, Reason::Demand);
///     rule.insert(frame, Arrival::demand(Block(7), 0, admission));
/// }
/// let mut gone = Vec::new();
/// assert_eq!(rule.evict(&mut gone, 1), 1);
/// assert_eq!(gone, [0]);
/// # Ok::<(), larder::cache::policy::PolicyError>(())
/// ```
pub trait Rule: Send {
    /// [`Policy::NAME`].
    fn name(&self) -> &'static str;
    /// [`Policy::capacity`].
    fn capacity(&self) -> usize;
    /// [`Policy::len`].
    fn len(&self) -> usize;
    /// [`Policy::is_empty`].
    fn is_empty(&self) -> bool;
    /// [`Policy::miss`].
    fn miss(&mut self, block: Block, shadow: Option<Shadow>, reason: Reason) -> Admission;
    /// [`Policy::insert`].
    fn insert(&mut self, frame: Frame, arrival: Arrival);
    /// [`Policy::touch`].
    fn touch(&mut self, frame: Frame, touch: Touch);
    /// [`Policy::evict`].
    fn evict(&mut self, frames: &mut dyn Frames, wanted: usize) -> usize;
    /// [`Policy::remove`].
    fn remove(&mut self, frame: Frame);
    /// [`Policy::remembers`].
    fn remembers(&self, shadow: Shadow) -> bool;
    /// [`Policy::shadow_bits`].
    fn shadow_bits(&self) -> Option<u32>;
    /// [`Policy::whole_shadow`].
    fn whole_shadow(&self, low: u64) -> Shadow;
    /// [`Policy::resize`].
    ///
    /// # Errors
    /// Those of [`Policy::resize`].
    fn resize(&mut self, capacity: usize) -> Result<(), PolicyError>;
    /// [`Policy::tick`].
    fn tick(&mut self, frames: &mut dyn Frames);
    /// [`Policy::drop_behind`].
    fn drop_behind(&mut self, frame: Frame);
    /// [`Policy::check`].
    ///
    /// # Errors
    /// Those of [`Policy::check`].
    fn check(&self) -> Result<(), String>;
    /// [`Policy::bytes`].
    fn bytes(&self) -> usize;
    /// [`Policy::explain`].
    fn explain(&self) -> Vec<(&'static str, f64)>;
}

/// The owner behind a reference, with a size that generic code can name.
struct Owner<'f>(&'f mut dyn Frames);

impl Frames for Owner<'_> {
    fn state(&self, frame: Frame) -> FrameState {
        self.0.state(frame)
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        self.0.evicted(frame, shadow);
    }

    fn write_back(&mut self, frame: Frame) {
        self.0.write_back(frame);
    }
}

impl<P: Policy> Rule for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn capacity(&self) -> usize {
        Policy::capacity(self)
    }

    fn len(&self) -> usize {
        Policy::len(self)
    }

    fn is_empty(&self) -> bool {
        Policy::is_empty(self)
    }

    fn miss(&mut self, block: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        Policy::miss(self, block, shadow, reason)
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        Policy::insert(self, frame, arrival);
    }

    fn touch(&mut self, frame: Frame, touch: Touch) {
        Policy::touch(self, frame, touch);
    }

    fn evict(&mut self, frames: &mut dyn Frames, wanted: usize) -> usize {
        Policy::evict(self, &mut Owner(frames), wanted)
    }

    fn remove(&mut self, frame: Frame) {
        Policy::remove(self, frame);
    }

    fn remembers(&self, shadow: Shadow) -> bool {
        Policy::remembers(self, shadow)
    }

    fn shadow_bits(&self) -> Option<u32> {
        Policy::shadow_bits(self)
    }

    fn whole_shadow(&self, low: u64) -> Shadow {
        Policy::whole_shadow(self, low)
    }

    fn resize(&mut self, capacity: usize) -> Result<(), PolicyError> {
        Policy::resize(self, capacity)
    }

    fn tick(&mut self, frames: &mut dyn Frames) {
        Policy::tick(self, &mut Owner(frames));
    }

    fn drop_behind(&mut self, frame: Frame) {
        Policy::drop_behind(self, frame);
    }

    fn check(&self) -> Result<(), String> {
        Policy::check(self)
    }

    fn bytes(&self) -> usize {
        Policy::bytes(self)
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        Policy::explain(self)
    }
}

struct Make(usize);

impl Visitor for Make {
    type Out = Result<Box<dyn Rule>, PolicyError>;

    fn visit<P: Policy>(self) -> Self::Out {
        P::new(self.0).map(|rule| Box::new(rule) as Box<dyn Rule>)
    }
}

/// The rule of this name for `capacity` frames.
///
/// # Errors
/// [`PolicyError`]: no such rule, a capacity that no rule can have, or no memory.
///
/// ```
/// use larder::cache::policy::{PolicyError, rule};
/// let mut chosen = rule("adaptive", 100)?;
/// chosen.resize(50)?;
/// assert_eq!((chosen.name(), chosen.capacity(), chosen.len()), ("adaptive", 50, 0));
/// assert!(matches!(rule("lru", 0), Err(PolicyError::Capacity { frames: 0, .. })));
/// # Ok::<(), PolicyError>(())
/// ```
pub fn rule(name: &str, capacity: usize) -> Result<Box<dyn Rule>, PolicyError> {
    with_rule(name, Make(capacity))?
}
