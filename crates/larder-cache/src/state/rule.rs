//! A rule as the cache has it: chosen by name while the program runs, and called once for many uses. What a miss asks
//! is compiled for each rule, so that the rule asks back without a virtual call for each frame.

use super::epoch_clock::Marks;
use super::eviction::Victims;
use crate::key::Key;
use crate::table::Table;
use larder_policy::{
    Adaptive, Block, Frame, Policy, PolicyError, Shadow, Shadows, Touch, Visitor, with_rule,
};

/// A use of a block that was found in a frame, reported some time after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    pub(crate) frame: Frame,
    /// The number of its request; of [`MANY`](Self::MANY), how many.
    pub(crate) request: u32,
    pub(crate) key: Key,
}

impl Use {
    pub(crate) const NONE: Self = Self {
        frame: 0,
        request: 0,
        key: Key::NONE,
    };

    /// In place of a frame: uses of saturated blocks of one file, which need not be reported to the rule.
    pub(crate) const MANY: Frame = Frame::MAX;

    /// How many uses this stands for.
    pub(crate) fn count(&self) -> u64 {
        if self.frame == Self::MANY {
            u64::from(self.request)
        } else {
            1
        }
    }
}

/// Uses that one handle has noted and not reported yet. It knows of no file born after `since`.
pub(crate) struct Noted<'n> {
    pub(crate) uses: &'n mut [Use],
    pub(crate) since: u64,
}

/// [`Policy`], and what is compiled for each rule together with the cache's part.
pub(crate) trait CacheRule: Policy {
    /// Reports uses to the rule in their order. A frame that holds another block by now was not used. Frames that are saturated
    /// then are marked, if there is something to mark them with. Returns whether frames that were saturated no longer are. `slot_of`
    /// says by which number the rule knows a frame, if that is not the frame's own.
    fn touch_all(
        &mut self,
        uses: &[Use],
        table: &Table,
        marks: Option<Marks>,
        slot_of: Option<&[u32]>,
    ) -> bool;

    /// How many frames must leave before one more comes in.
    fn over(&self) -> usize;

    /// [`Policy::evict`].
    fn choose(&mut self, victims: &mut Victims<'_, '_>, wanted: usize);

    /// [`Policy::tick`].
    fn age(&mut self, victims: &mut Victims<'_, '_>);

    /// Notes what was left of a block.
    fn keep(&self, shadows: &mut Shadows, key: Key, shadow: Shadow);

    /// Takes what was left of a block.
    fn recall(&self, shadows: &mut Shadows, key: Key) -> Option<Shadow>;
}

impl<P: Policy> CacheRule for P {
    fn touch_all(
        &mut self,
        uses: &[Use],
        table: &Table,
        marks: Option<Marks>,
        slot_of: Option<&[u32]>,
    ) -> bool {
        let (frames, dirty_bits) = (table.frames(), table.dirty_bits());
        let there = |used: &&Use| used.frame != Use::MANY && frames.key(used.frame) == used.key;
        for used in uses.iter().filter(there) {
            let request = used.request;
            let slot = slot_of.map_or(used.frame, |slots| slots[used.frame as usize]);
            self.touch(slot, Touch { request });
            if let Some(marks) = marks
                && self.settled(slot)
            {
                // A writer waits for a barrier if the block may be pinned: this should happen once, and not again and again.
                let pinned = marks.pinned.filter(|_| !dirty_bits.has(used.frame));
                frames.mark(used.frame, pinned.unwrap_or(marks.counted));
            }
        }
        self.unsettled()
    }

    fn over(&self) -> usize {
        (self.len() + 1).saturating_sub(self.capacity())
    }

    fn choose(&mut self, victims: &mut Victims<'_, '_>, wanted: usize) {
        self.evict(victims, wanted);
    }

    fn age(&mut self, victims: &mut Victims<'_, '_>) {
        self.tick(victims);
    }

    fn keep(&self, shadows: &mut Shadows, key: Key, shadow: Shadow) {
        shadows.put(Block(key.0), shadow, self);
    }

    fn recall(&self, shadows: &mut Shadows, key: Key) -> Option<Shadow> {
        shadows.take(Block(key.0), self)
    }
}

/// A rule, and the name that statistics have for it.
pub(crate) type NamedRule = (&'static str, Box<dyn CacheRule>);

/// Makes a rule for so many frames.
pub(crate) type MakeRule = Box<dyn FnOnce(usize) -> Result<NamedRule, PolicyError> + Send>;

/// The rule of this name, or the default one if it is no name of the registry's: a rule that came with the cache has one of its own.
pub(super) fn named_or_default(name: &str, frames: usize) -> Result<NamedRule, PolicyError> {
    match with_rule(name, frames, Boxed) {
        Err(PolicyError::Unknown { .. }) => default_rule()(frames),
        made => made,
    }
}

/// The rule that `make` makes.
pub(crate) fn own<P: Policy>(
    name: &'static str,
    make: impl FnOnce(usize) -> Result<P, PolicyError> + Send + 'static,
) -> MakeRule {
    Box::new(move |frames| Ok((name, Box::new(make(frames)?))))
}

/// `adaptive`. By its type: so its code lies where a miss calls it without a detour.
pub(crate) fn default_rule() -> MakeRule {
    own("adaptive", Adaptive::new)
}

struct Boxed;

impl Visitor for Boxed {
    type Out = NamedRule;

    fn visit<P: Policy>(self, name: &'static str, rule: P) -> NamedRule {
        (name, Box::new(rule))
    }
}

/// The rule of this name.
pub(crate) fn by_name(name: String) -> MakeRule {
    Box::new(move |frames| with_rule(&name, frames, Boxed))
}
