//! The cache as the rule sees it while it looks for a victim.

use std::cell::{Cell, RefCell};

use super::dirty::{BATCH, DirtyBlocks};
use crate::key::Key;
use crate::table::{Claimed, Table};
use larder_policy::{Frame, FrameState, Frames, Shadow};

/// A block that has left the rule. The owner of this value holds its frame.
pub(super) struct Evicted<'c> {
    pub(super) page: Claimed<'c>,
    pub(super) shadow: Option<Shadow>,
}

/// What is rare.
#[derive(Default)]
pub(super) struct Others<'c> {
    /// Those that left before the latest.
    pub(super) before: Vec<Evicted<'c>>,
    /// What the rule took out although it must stay, by the rule's numbers.
    pub(super) kept: Vec<Frame>,
    /// Dirty blocks that the rule wants to be written.
    pub(super) requested: Vec<Key>,
}

/// What the rule chooses among, and what it has chosen.
pub(crate) struct Victims<'i, 'c> {
    table: &'c Table,
    dirty: &'i DirtyBlocks,
    /// The frames by the rule's numbers, if these are its own.
    frames: Option<&'i [Frame]>,
    /// The frame that was last said to be free to go, so that it still is when the rule takes it.
    claim: Cell<Option<Claimed<'c>>>,
    /// Frames that are held, of which the rule was told so, by its numbers.
    pub(super) held: RefCell<Vec<Frame>>,
    /// The latest that left. Most often it is the only one, and then nothing is allocated.
    pub(super) latest: Option<Evicted<'c>>,
    pub(super) others: Option<Box<Others<'c>>>,
}

impl<'i, 'c> Victims<'i, 'c> {
    pub(super) fn new(
        table: &'c Table,
        dirty: &'i DirtyBlocks,
        frames: Option<&'i [Frame]>,
    ) -> Self {
        Self {
            table,
            dirty,
            frames,
            claim: Cell::new(None),
            held: RefCell::default(),
            latest: None,
            others: None,
        }
    }

    #[inline(always)]
    fn frame(&self, slot: Frame) -> Frame {
        self.frames.map_or(slot, |frames| frames[slot as usize])
    }

    fn is_dirty(&self, frame: Frame) -> bool {
        self.dirty.get(self.table.frames().key(frame)).is_some()
    }

    /// Without memory a recorder does not hear of it.
    #[cold]
    fn note_held(&self, slot: Frame) {
        let mut held = self.held.borrow_mut();
        if held.try_reserve(1).is_ok() {
            held.push(slot);
        }
    }

    #[cold]
    fn others(&mut self) -> &mut Others<'c> {
        self.others.get_or_insert_default()
    }

    /// A rule may have requested for several frames before it chose; by now another thread may hold this one.
    #[cold]
    fn claim_again(&self, frame: Frame) -> Option<Claimed<'c>> {
        let clean = !self.is_dirty(frame);
        clean
            .then(|| self.table.frames().try_claim(frame))
            .flatten()
    }
}

impl Frames for Victims<'_, '_> {
    #[inline]
    fn state(&self, slot: Frame) -> FrameState {
        let frame = self.frame(slot);
        // Clean ones first: as long as there is one, dirty ones stay.
        if self.is_dirty(frame) {
            self.dirty.note_passed(slot);
            return FrameState::Pinned;
        }
        let before = self.claim.take();
        let (claim, state) = if before.as_ref().is_some_and(|page| page.frame() == frame) {
            (before, FrameState::Clean)
        } else if let Some(page) = self.table.frames().try_claim(frame) {
            (Some(page), FrameState::Clean)
        } else {
            self.note_held(slot);
            (before, FrameState::Pinned)
        };
        self.claim.set(claim);
        state
    }

    #[inline]
    fn evicted(&mut self, slot: Frame, shadow: Option<Shadow>) {
        let frame = self.frame(slot);
        let claim = self.claim.take().filter(|page| page.frame() == frame);
        match claim.or_else(|| self.claim_again(frame)) {
            Some(page) => {
                let evicted = Evicted { page, shadow };
                if let Some(before) = self.latest.replace(evicted) {
                    self.others().before.push(before);
                }
            }
            None => self.others().kept.push(slot),
        }
    }

    #[cold]
    fn write_back(&mut self, slot: Frame) {
        let frame = self.frame(slot);
        if self.is_dirty(frame) {
            let key = self.table.frames().key(frame);
            let requested = &mut self.others().requested;
            if requested.len() < BATCH {
                requested.push(key);
            }
        }
    }
}
