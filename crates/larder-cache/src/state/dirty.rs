//! Dirty blocks, in the order in which they are written back, and how far writing has come.

use std::collections::{BTreeMap, BTreeSet};

use super::pass::{Pass, Portion};
use super::unsynced::tree_bytes;
use crate::key::Key;
use larder_policy::Frame;

/// Blocks that are written at once.
pub(crate) const BATCH: usize = 64;

/// A block is here from its first change until it is written or forgotten.
#[derive(Debug)]
pub(crate) struct DirtyBlocks {
    blocks: BTreeMap<Key, Frame>,
    /// Dirty blocks that the rule wants to be written: as many as go at once, further ones are asked for again.
    requested: BTreeSet<Key>,
    /// Where writing went on to when room was last made.
    swept: Key,
    /// The pass over all of them, of which each call of `maintain` writes a portion.
    pass: Pass,
}

impl DirtyBlocks {
    pub(super) fn new() -> Self {
        Self {
            blocks: BTreeMap::new(),
            requested: BTreeSet::new(),
            swept: Key(0),
            pass: Pass::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The frame of a block, if it is dirty.
    pub(crate) fn get(&self, key: Key) -> Option<Frame> {
        self.blocks.get(&key).copied()
    }

    /// How many there are of a file.
    pub(super) fn count(&self, file: u32) -> usize {
        self.blocks.range(Key::all_of(file)).count()
    }

    pub(super) fn insert(&mut self, key: Key, frame: Frame) {
        self.blocks.insert(key, frame);
    }

    /// A block is dirty no more. Says whether it was.
    pub(super) fn clean(&mut self, key: Key) -> bool {
        self.requested.remove(&key);
        self.blocks.remove(&key).is_some()
    }

    /// The first one from a key on, before another.
    pub(crate) fn next(&self, from: Key, until: Key) -> Option<(Key, Frame)> {
        let next = self.blocks.range(from..until).next();
        next.map(|(&key, &frame)| (key, frame))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Frame)> {
        self.blocks.iter().map(|(&key, &frame)| (key, frame))
    }

    /// More than half of the cache is dirty, or the rule has asked for a batch of them: a thread that makes one more block
    /// dirty writes some first. Dirty blocks leave last, and left alone they would take the cache from those that are read.
    pub(super) fn are_many(&self, capacity: usize) -> bool {
        self.len() * 2 > capacity || self.requested.len() >= (capacity / 16).clamp(1, BATCH)
    }

    /// The rule wants these to be written.
    pub(super) fn request(&mut self, blocks: Vec<Key>) {
        let room = BATCH - self.requested.len();
        self.requested.extend(blocks.into_iter().take(room));
    }

    /// What the rule wants to be written, and is dirty still.
    pub(crate) fn take_requested(&mut self) -> Vec<(Key, Frame)> {
        let keys = core::mem::take(&mut self.requested).into_iter();
        keys.filter_map(|key| Some((key, self.get(key)?))).collect()
    }

    /// Where writing went on to when room was last made.
    pub(crate) fn swept(&mut self) -> &mut Key {
        &mut self.swept
    }

    /// The next portion of the pass.
    pub(crate) fn begin_portion(&mut self) -> Portion {
        self.pass.begin(self.blocks.len())
    }

    pub(crate) fn end_portion(&mut self, portion: &Portion, to: Key) {
        self.pass.end(portion, to);
    }

    pub(super) fn bytes(&self) -> usize {
        tree_bytes(&self.blocks)
    }
}
