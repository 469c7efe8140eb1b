//! A rule as the cache has it: chosen by name while the program runs, and called once for many uses. What a miss asks
//! is compiled for each rule, so that the rule asks back without a virtual call for each frame.

use super::cache::Shared;
use super::epochs::Marks;
use super::key::Key;
use super::shadows::Shadows;
use super::victims::Victims;
use larder_policy::{Frame, Policy, PolicyError, Shadow, Touch, Visitor, with_rule};

/// A use of a block that was found in a frame, reported some time after.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) frame: Frame,
    /// The number of its request; of [`MANY`](Self::MANY), how many.
    pub(super) request: u32,
    pub(super) key: Key,
}

impl Use {
    pub(super) const NONE: Self = Self {
        frame: 0,
        request: 0,
        key: Key::NONE,
    };

    /// In place of a frame: uses of settled blocks of one file, which need not be reported to the rule.
    pub(super) const MANY: Frame = Frame::MAX;

    /// How many uses this stands for.
    pub(super) fn count(&self) -> u64 {
        if self.frame == Self::MANY {
            u64::from(self.request)
        } else {
            1
        }
    }
}

/// Uses that one handle has noted and not reported yet. It knows of no file born after `since`.
pub(super) struct Noted<'n> {
    pub(super) uses: &'n mut [Use],
    pub(super) since: u64,
}

/// [`Policy`], and what is compiled for each rule together with the cache's part.
pub(super) trait CacheRule: Policy {
    /// Reports uses to the rule in their order. A frame that holds another block by now was not used. Frames that are settled
    /// then are marked, if there is something to mark them with. Returns whether frames that were settled no longer are.
    fn touch_all(&mut self, uses: &[Use], shared: &Shared, marks: Option<Marks>) -> bool;

    /// How many frames must leave before one more comes in.
    fn over(&self) -> usize;

    /// [`Policy::evict`].
    fn let_go(&mut self, victims: &mut Victims<'_, '_>, wanted: usize);

    /// [`Policy::tick`].
    fn age(&mut self, victims: &mut Victims<'_, '_>);

    /// Notes what was left of a block.
    fn keep(&self, shadows: &mut Shadows, key: Key, shadow: Shadow);

    /// Takes what was left of a block.
    fn recall(&self, shadows: &mut Shadows, key: Key) -> Option<Shadow>;
}

impl<P: Policy> CacheRule for P {
    fn touch_all(&mut self, uses: &[Use], shared: &Shared, marks: Option<Marks>) -> bool {
        let Shared {
            frames, changed, ..
        } = shared;
        let there = |used: &&Use| used.frame != Use::MANY && frames.key(used.frame) == used.key;
        for used in uses.iter().filter(there) {
            let request = used.request;
            self.touch(used.frame, Touch { request });
            if let Some(marks) = marks
                && self.settled(used.frame)
            {
                // A writer waits for a barrier if the block may be pinned: this should happen once, and not again and again.
                let pinned = marks.pinned.filter(|_| !changed.has(used.frame));
                frames.mark(used.frame, pinned.unwrap_or(marks.counted));
            }
        }
        self.unsettled()
    }

    fn over(&self) -> usize {
        (self.len() + 1).saturating_sub(self.capacity())
    }

    fn let_go(&mut self, victims: &mut Victims<'_, '_>, wanted: usize) {
        self.evict(victims, wanted);
    }

    fn age(&mut self, victims: &mut Victims<'_, '_>) {
        self.tick(victims);
    }

    fn keep(&self, shadows: &mut Shadows, key: Key, shadow: Shadow) {
        shadows.put(key, shadow, self);
    }

    fn recall(&self, shadows: &mut Shadows, key: Key) -> Option<Shadow> {
        shadows.take(key, self)
    }
}

/// A rule, and the name that statistics have for it.
pub(super) type NamedRule = (&'static str, Box<dyn CacheRule>);

/// Makes a rule for so many frames.
pub(super) type MakeRule = Box<dyn FnOnce(usize) -> Result<NamedRule, PolicyError> + Send>;

/// The rule that `make` makes.
pub(super) fn own<P: Policy>(
    name: &'static str,
    make: impl FnOnce(usize) -> Result<P, PolicyError> + Send + 'static,
) -> MakeRule {
    Box::new(move |frames| Ok((name, Box::new(make(frames)?))))
}

struct Boxed;

impl Visitor for Boxed {
    type Out = NamedRule;

    fn visit<P: Policy>(self, name: &'static str, rule: P) -> NamedRule {
        (name, Box::new(rule))
    }
}

/// The rule of this name.
pub(super) fn by_name(name: String) -> MakeRule {
    Box::new(move |frames| with_rule(&name, frames, Boxed))
}
