//! An owner of frames for tests: blocks are frames, so that an example reads as a list of blocks.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::{
    Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow, Touch,
};

/// What the owner knows of its frames.
#[derive(Debug, Default, Clone)]
pub(super) struct State {
    pub(super) dirty: BTreeSet<Frame>,
    pub(super) pinned: BTreeSet<Frame>,
    /// Frames that the rule wanted written, in order.
    pub(super) asked: Vec<Frame>,
    /// A write ends at once.
    pub(super) instant: bool,
    pub(super) gone: Vec<Frame>,
    pub(super) shadows: BTreeMap<Frame, Shadow>,
}

impl Frames for State {
    fn state(&self, frame: Frame) -> FrameState {
        if self.pinned.contains(&frame) {
            FrameState::Pinned
        } else if self.dirty.contains(&frame) {
            FrameState::Dirty
        } else {
            FrameState::Clean
        }
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        assert!(!self.pinned.contains(&frame), "{frame} is pinned and left");
        self.dirty.remove(&frame);
        self.gone.push(frame);
        if let Some(shadow) = shadow {
            self.shadows.insert(frame, shadow);
        }
    }

    fn write_back(&mut self, frame: Frame) {
        self.asked.push(frame);
        if self.instant {
            self.dirty.remove(&frame);
        }
    }
}

/// A rule and its owner. The block of frame n is n.
pub(super) struct Owner<P> {
    pub(super) rule: P,
    pub(super) state: State,
    request: u32,
}

impl<P: Policy> Owner<P> {
    pub(super) fn new(make: fn(usize) -> Result<P, PolicyError>, capacity: usize) -> Self {
        Self {
            rule: make(capacity).unwrap(),
            state: State::default(),
            request: 0,
        }
    }

    pub(super) fn bring(&mut self, block: Frame, reason: Reason) {
        let shadow = self.state.shadows.remove(&block);
        self.request += 1;
        let arrival = Arrival {
            block: Block(block.into()),
            reason,
            request: self.request,
            admission: self.rule.miss(Block(block.into()), shadow, reason),
        };
        self.rule.insert(block, arrival);
        self.check();
    }

    /// The block is removed and comes again.
    pub(super) fn bring_over(&mut self, block: Frame, reason: Reason) {
        self.rule.remove(block);
        self.check();
        self.bring(block, reason);
    }

    pub(super) fn read(&mut self, blocks: impl IntoIterator<Item = Frame>) {
        for block in blocks {
            self.bring(block, Reason::Demand);
        }
    }

    /// A use by a request of its own.
    pub(super) fn touch(&mut self, block: Frame) {
        self.request += 1;
        self.again(block);
    }

    /// A use by the request before.
    pub(super) fn again(&mut self, block: Frame) {
        let request = self.request;
        self.rule.touch(block, Touch { request });
        self.check();
    }

    /// The next `wanted` to leave.
    pub(super) fn evict(&mut self, wanted: usize) -> Vec<Frame> {
        let before = self.state.gone.len();
        let count = self.rule.evict(&mut self.state, wanted);
        self.check();
        let gone = self.state.gone[before..].to_vec();
        assert_eq!(gone.len(), count);
        gone
    }

    pub(super) fn tick(&mut self) {
        self.rule.tick(&mut self.state);
        self.check();
    }

    pub(super) fn check(&self) {
        if let Err(fault) = self.rule.check() {
            panic!("{fault}");
        }
    }
}
