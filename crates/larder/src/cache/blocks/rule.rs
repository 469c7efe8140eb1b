//! A rule as the cache has it: chosen by name while the program runs, and told of many uses with one call.

use super::frames::Frames;
use super::key::Key;
use crate::cache::policy::{Frame, Policy, PolicyError, Rule, Touch, Visitor, with_rule};

/// A use of a block that was found in a frame, reported some time after.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) frame: Frame,
    pub(super) request: u32,
    pub(super) key: Key,
}

impl Use {
    pub(super) const NONE: Self = Self {
        frame: 0,
        request: 0,
        key: Key::NONE,
    };
}

/// [`Rule`], and a loop over uses that is compiled for each rule.
pub(super) trait CacheRule: Rule {
    /// Tells the rule of uses in their order. A frame that holds another block by now was not used.
    fn touch_all(&mut self, uses: &[Use], frames: &Frames);
}

impl<P: Policy> CacheRule for P {
    fn touch_all(&mut self, uses: &[Use], frames: &Frames) {
        for used in uses {
            if frames.key(used.frame) == used.key {
                let request = used.request;
                Policy::touch(self, used.frame, Touch { request });
            }
        }
    }
}

struct Make(usize);

impl Visitor for Make {
    type Out = Result<Box<dyn CacheRule>, PolicyError>;

    fn visit<P: Policy>(self) -> Self::Out {
        P::new(self.0).map(|rule| Box::new(rule) as Box<dyn CacheRule>)
    }
}

/// The rule of this name for `frames` frames.
pub(super) fn rule(name: &str, frames: usize) -> Result<Box<dyn CacheRule>, PolicyError> {
    with_rule(name, Make(frames))?
}
