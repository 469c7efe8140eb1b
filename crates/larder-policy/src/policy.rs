//! The trait of a rule.

use super::{Admission, Arrival, Block, Frame, Frames, PolicyError, Reason, Shadow, Touch};

/// A replacement rule. See the [crate](crate) for the order of the calls.
///
/// Code that is generic over it is compiled for each rule; a `Box<dyn Policy>`, as [`rule`](crate::rule) makes one, is a rule, too.
///
/// Frames that the owner names are below the capacity that the rule was made with; `insert` names frames that are not in the
/// rule, `touch` and `remove` frames that are. A rule may panic when this is violated; it has no `unsafe`.
///
/// Otherwise a rule must not panic: an owner calls it in the middle of its own changes, mostly under its lock. The block cache of
/// `larder-cache` is left half changed by such a panic, and must not be used any more: its lists disagree, a block may be found with
/// another one's bytes, and threads may wait for ever.
///
/// Every method, as an owner of two frames calls them:
///
/// ```
/// use larder_policy::{Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow, Touch, TwoQ, rule};
///
/// #[derive(Default)]
/// struct Owner(Vec<(Frame, Option<Shadow>)>);
/// impl Frames for Owner {
///     fn state(&self, _: Frame) -> FrameState {
///         FrameState::Clean
///     }
///     fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
///         self.0.push((frame, shadow));
///     }
/// }
///
/// fn own(mut rule: impl Policy) -> Result<usize, PolicyError> {
///     let mut owner = Owner::default();
///     assert!(rule.is_empty());
///     for (frame, block) in [(0, Block(10)), (1, Block(11))] {
///         let admission = rule.miss(block, None, Reason::Demand);
///         rule.insert(frame, Arrival::demand(block, 1, admission));
///     }
///     if !rule.settled(1) || rule.unsettled() {
///         rule.touch(1, Touch { request: 2 });
///     }
///     rule.drop_behind(0);
///     rule.tick(&mut owner);
///     rule.evict(&mut owner, 1);
///     for &(_, shadow) in &owner.0 {
///         // kept, perhaps only its low bits, and shown when the block comes back
///         let low = |shadow: Shadow| rule.shadow_bits().map_or(shadow.get(), |bits| shadow.get() & ((1 << bits) - 1));
///         let whole = shadow.map(|shadow| rule.whole_shadow(low(shadow)));
///         assert!(whole.is_none_or(|shadow| rule.remembers(shadow)));
///     }
///     let left = 1 - owner.0[0].0;
///     if rule.len() == 1 {
///         rule.park(left); // pinned for longer
///         assert_eq!(rule.evict(&mut owner, 0), 0);
///         rule.unpark(left);
///         rule.rekey(left, Block(12));
///         if rule.invalidate(left).is_none() {
///             println!("nothing to remember");
///         }
///     }
///     rule.resize(1)?;
///     assert_eq!((rule.capacity(), rule.len(), rule.check()), (1, 0, Ok(())));
///     for (name, value) in rule.explain() {
///         println!("{name} {value}");
///     }
///     Ok(rule.bytes())
/// }
/// assert_eq!(own(TwoQ::new(2)?)?, own(rule("2q", 2)?)?);
/// # Ok::<(), PolicyError>(())
/// ```
pub trait Policy: Erased + Send + 'static {
    /// Frames it chooses among.
    fn capacity(&self) -> usize;

    /// Frames that are in.
    fn len(&self) -> usize;

    /// Nothing is in.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A block is to come that is not in memory; `shadow` is what its last eviction left, and `reason` is what the insertion
    /// will say. Comes before room is made, so that a rule that learns from misses has learnt before it chooses. The insertion
    /// may fail to follow: then the rule has forgotten what the shadow said.
    ///
    /// Readahead is no use: a rule learns nothing from it until the first touch, which then counts as the insertion's use, and
    /// as the return of an evicted block if the shadow said so.
    fn miss(&mut self, block: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let _ = (block, shadow, reason);
        Admission::default()
    }

    /// A block comes into a frame.
    fn insert(&mut self, frame: Frame, arrival: Arrival);

    /// A request uses the block of a frame.
    fn touch(&mut self, frame: Frame, touch: Touch);

    /// The frame is settled: further touches of it, by any request, change nothing. The answer holds until a method other than `touch`
    /// changes the rule, or until [`unsettled`](Self::unsettled) says otherwise. An owner need not report such
    /// touches.
    fn settled(&self, frame: Frame) -> bool {
        let _ = frame;
        false
    }

    /// A touch, since this was last asked, has changed the rule so that frames which were settled may no longer be.
    fn unsettled(&mut self) -> bool {
        false
    }

    /// Chooses up to `wanted` frames, reports each to `frames`, and forgets all but its shadow. There are fewer when the others are
    /// pinned. Returns how many there were. Several at once are the same frames as one at a time.
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize
    where
        Self: Sized;

    /// The block of a frame is gone for other reasons (truncated, deleted): no shadow is left.
    fn remove(&mut self, frame: Frame);

    /// What a frame holds of its block is of no use any more, and the block will be read again: as `remove`, but if the block stands
    /// well, it leaves a shadow by which it does so when it comes back.
    fn invalidate(&mut self, frame: Frame) -> Option<Shadow> {
        self.remove(frame);
        None
    }

    /// A frame is to stay pinned for a while. It keeps its standing and counts in [`len`](Self::len), but
    /// [`evict`](Self::evict) does not look at it, and no other method is called with it, until it is unparked. An owner that parks each
    /// frame that it had to call pinned makes an eviction independent of how many there are. A frame may be parked because it is dirty,
    /// too: the block cache of `larder-cache` parks those, until they are written or used.
    fn park(&mut self, frame: Frame) {
        let _ = frame;
    }

    /// A parked frame may be looked at again. Most rules that keep lists take it for the newest of its list.
    fn unpark(&mut self, frame: Frame) {
        let _ = frame;
    }

    /// It keeps frames that may not leave in their turn apart by itself, and looks at each of them rarely. An owner does not
    /// [park](Self::park) what is only dirty then: this would change what the rule decides.
    fn keeps_apart(&self) -> bool {
        false
    }

    /// A frame's block is another one from now on, with the same contents: an owner renumbers its blocks.
    fn rekey(&mut self, frame: Frame, block: Block) {
        let _ = (frame, block);
    }

    /// Would this shadow still say something? An owner that must forget shadows forgets those first for which this is false.
    fn remembers(&self, shadow: Shadow) -> bool {
        let _ = shadow;
        true
    }

    /// How many low bits of a shadow say which it is: an owner may keep those alone, and ask for the [whole](Self::whole_shadow). It
    /// drops those that the rule has forgotten before four times as many frames left after that as the capacity is; then the same
    /// bits may come again. With another capacity the number may be another one, and shadows of before are forgotten then.
    /// None if the rule wants all bits back.
    fn shadow_bits(&self) -> Option<u32> {
        None
    }

    /// The latest shadow of which these are the low [bits](Self::shadow_bits).
    fn whole_shadow(&self, low: u64) -> Shadow {
        Shadow::new(low)
    }

    /// Changes the capacity while running. When it shrinks, the owner evicts until as many frames are in as the capacity says,
    /// and names no frame beyond the largest capacity that there was.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](super::MOST_FRAMES), or no memory. The rule is as it was then.
    fn resize(&mut self, capacity: usize) -> Result<(), PolicyError>;

    /// About a second has passed. For rules that age by time, those of the kernels, and that then look for dirty frames to be
    /// written; a rule may also let frames go here.
    fn tick<F: Frames>(&mut self, frames: &mut F)
    where
        Self: Sized,
    {
        let _ = frames;
    }

    /// A sequential reader or writer of a file has passed this block and is not expected to come back to it. A
    /// hint from the owner's readahead and from whole writes; most rules ignore it.
    fn drop_behind(&mut self, frame: Frame) {
        let _ = frame;
    }

    /// Walks everything and says what does not hold. For tests and debug builds.
    ///
    /// # Errors
    /// A sentence that names the frame and the list.
    fn check(&self) -> Result<(), String>;

    /// Bytes of memory the rule has.
    fn bytes(&self) -> usize;

    /// What it has decided and why, as names and values: for statistics.
    fn explain(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// The methods of [`Policy`] that have the owner's type as a parameter, for an owner whose type is not known: what a boxed rule is
/// called by. Every rule has them.
#[doc(hidden)]
pub trait Erased {
    fn evict_erased(&mut self, frames: &mut dyn Frames, wanted: usize) -> usize;
    fn tick_erased(&mut self, frames: &mut dyn Frames);
}

impl<P: Policy> Erased for P {
    fn evict_erased(&mut self, mut frames: &mut dyn Frames, wanted: usize) -> usize {
        self.evict(&mut frames, wanted)
    }

    fn tick_erased(&mut self, mut frames: &mut dyn Frames) {
        self.tick(&mut frames);
    }
}

impl Policy for Box<dyn Policy> {
    fn capacity(&self) -> usize {
        (**self).capacity()
    }

    fn len(&self) -> usize {
        (**self).len()
    }

    fn miss(&mut self, block: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        (**self).miss(block, shadow, reason)
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        (**self).insert(frame, arrival);
    }

    fn touch(&mut self, frame: Frame, touch: Touch) {
        (**self).touch(frame, touch);
    }

    fn settled(&self, frame: Frame) -> bool {
        (**self).settled(frame)
    }

    fn unsettled(&mut self) -> bool {
        (**self).unsettled()
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        (**self).evict_erased(frames, wanted)
    }

    fn remove(&mut self, frame: Frame) {
        (**self).remove(frame);
    }

    fn invalidate(&mut self, frame: Frame) -> Option<Shadow> {
        (**self).invalidate(frame)
    }

    fn park(&mut self, frame: Frame) {
        (**self).park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        (**self).unpark(frame);
    }

    fn keeps_apart(&self) -> bool {
        (**self).keeps_apart()
    }

    fn rekey(&mut self, frame: Frame, block: Block) {
        (**self).rekey(frame, block);
    }

    fn remembers(&self, shadow: Shadow) -> bool {
        (**self).remembers(shadow)
    }

    fn shadow_bits(&self) -> Option<u32> {
        (**self).shadow_bits()
    }

    fn whole_shadow(&self, low: u64) -> Shadow {
        (**self).whole_shadow(low)
    }

    fn resize(&mut self, capacity: usize) -> Result<(), PolicyError> {
        (**self).resize(capacity)
    }

    fn tick<F: Frames>(&mut self, frames: &mut F) {
        (**self).tick_erased(frames);
    }

    fn drop_behind(&mut self, frame: Frame) {
        (**self).drop_behind(frame);
    }

    fn check(&self) -> Result<(), String> {
        (**self).check()
    }

    fn bytes(&self) -> usize {
        (**self).bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        (**self).explain()
    }
}
