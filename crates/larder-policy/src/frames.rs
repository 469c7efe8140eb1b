//! The questions of a rule to its owner while it looks for a victim.

use super::{Frame, Shadow};

/// The owner's answer about a frame.
///
/// ```
/// use larder_policy::{Admission, Arrival, Block, Frame, FrameState, Frames, Lru, Policy, Shadow};
///
/// struct Owner(Vec<Frame>);
/// impl Frames for Owner {
///     fn state(&self, frame: Frame) -> FrameState {
///         if frame == 0 { FrameState::Pinned } else { FrameState::Clean }
///     }
///     fn evicted(&mut self, frame: Frame, _: Option<Shadow>) {
///         self.0.push(frame);
///     }
/// }
/// let mut rule = Lru::fifo(2)?;
/// for frame in 0..2 {
///     rule.insert(frame, Arrival::demand(Block(frame.into()), 0, Admission::default()));
/// }
/// let mut owner = Owner(Vec::new());
/// assert_eq!(rule.evict(&mut owner, 2), 1);
/// assert_eq!(owner.0, [1]); // the oldest is pinned
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FrameState {
    /// It may leave at once.
    #[default]
    Clean,
    /// It may leave when it has been written. Rules that make no difference evict it; an owner that prefers clean
    /// victims answers [`Pinned`](Self::Pinned) instead, as long as it does.
    Dirty,
    /// It must stay now. Rules pass over it.
    Pinned,
}

/// The owner of the frames, as a rule sees it during [`Policy::evict`](super::Policy::evict).
///
/// A `Vec<Frame>` is an owner with nothing pinned that collects the victims.
///
/// ```
/// use larder_policy::{FrameState, Frames};
/// let mut gone = Vec::new();
/// assert_eq!(gone.state(1), FrameState::Clean);
/// gone.evicted(1, None);
/// gone.write_back(2);                 // it has nothing to write
/// assert_eq!(gone, [1]);
/// ```
pub trait Frames {
    /// May this frame leave? The answer may be another one the next time, also within one call of the rule: others take frames
    /// and let them go.
    fn state(&self, frame: Frame) -> FrameState;

    /// The frame has left the rule: its block is out. `shadow` is to be shown when the block comes back.
    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>);

    /// The rule wants this frame written now if it is dirty, also where the owner said [`Pinned`](FrameState::Pinned) for that; it
    /// stays. Owners that write back by themselves do nothing.
    fn write_back(&mut self, frame: Frame) {
        let _ = frame;
    }
}

impl<F: Frames + ?Sized> Frames for &mut F {
    fn state(&self, frame: Frame) -> FrameState {
        (**self).state(frame)
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        (**self).evicted(frame, shadow);
    }

    fn write_back(&mut self, frame: Frame) {
        (**self).write_back(frame);
    }
}

impl Frames for Vec<Frame> {
    fn state(&self, _frame: Frame) -> FrameState {
        FrameState::Clean
    }

    fn evicted(&mut self, frame: Frame, _shadow: Option<Shadow>) {
        self.push(frame);
    }
}
