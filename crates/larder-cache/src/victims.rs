//! The cache as the rule sees it while it looks for a victim.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::cache::Shared;
use super::frames::Claimed;
use super::key::Key;
use super::write_back::BATCH;
use larder_policy::{Frame, FrameState, Frames, Shadow};

/// A block that has left the rule. The owner of this value holds its frame.
pub(super) struct Gone<'c> {
    pub(super) page: Claimed<'c>,
    pub(super) shadow: Option<Shadow>,
}

/// What is rare.
#[derive(Default)]
pub(super) struct Others<'c> {
    /// Those that left before the latest.
    pub(super) before: Vec<Gone<'c>>,
    /// Frames that the rule took out although they must stay.
    pub(super) kept: Vec<Frame>,
}

/// What the rule chooses among, and what it has chosen.
pub(super) struct Victims<'i, 'c> {
    shared: &'c Shared,
    dirty: &'i BTreeMap<Key, Frame>,
    /// The frame that was last said to be free to go, so that it still is when the rule takes it.
    claim: Cell<Option<Claimed<'c>>>,
    /// The latest that left. Most often it is the only one, and then nothing is allocated.
    pub(super) latest: Option<Gone<'c>>,
    pub(super) others: Option<Box<Others<'c>>>,
    /// Dirty blocks that the rule wants to be written.
    pub(super) asked: Vec<Key>,
}

impl<'i, 'c> Victims<'i, 'c> {
    pub(super) fn new(shared: &'c Shared, dirty: &'i BTreeMap<Key, Frame>) -> Self {
        Self {
            shared,
            dirty,
            claim: Cell::new(None),
            latest: None,
            others: None,
            asked: Vec::new(),
        }
    }

    fn is_dirty(&self, frame: Frame) -> bool {
        !self.dirty.is_empty() && self.dirty.contains_key(&self.shared.frames.key(frame))
    }

    #[cold]
    fn others(&mut self) -> &mut Others<'c> {
        self.others.get_or_insert_default()
    }

    /// A rule may have asked for several frames before it chose; by now another thread may hold this one.
    #[cold]
    fn claim_again(&self, frame: Frame) -> Option<Claimed<'c>> {
        let clean = !self.is_dirty(frame);
        clean.then(|| self.shared.frames.try_claim(frame)).flatten()
    }
}

impl Frames for Victims<'_, '_> {
    #[inline]
    fn state(&self, frame: Frame) -> FrameState {
        // Clean ones first: as long as there is one, dirty ones stay.
        if self.is_dirty(frame) {
            return FrameState::Pinned;
        }
        let before = self.claim.take();
        let (claim, state) = if before.as_ref().is_some_and(|page| page.frame() == frame) {
            (before, FrameState::Clean)
        } else if let Some(page) = self.shared.frames.try_claim(frame) {
            (Some(page), FrameState::Clean)
        } else {
            (before, FrameState::Pinned)
        };
        self.claim.set(claim);
        state
    }

    #[inline]
    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        let claim = self.claim.take().filter(|page| page.frame() == frame);
        match claim.or_else(|| self.claim_again(frame)) {
            Some(page) => {
                let gone = Gone { page, shadow };
                if let Some(before) = self.latest.replace(gone) {
                    self.others().before.push(before);
                }
            }
            None => self.others().kept.push(frame),
        }
    }

    #[cold]
    fn write_back(&mut self, frame: Frame) {
        if self.asked.len() < BATCH && self.is_dirty(frame) {
            self.asked.push(self.shared.frames.key(frame));
        }
    }
}
