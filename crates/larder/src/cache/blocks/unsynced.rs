//! Blocks that were written, and of which no sync says yet that they are safe.
//!
//! Those that are in memory can be written again when a sync fails. Of those that have left, a failing sync takes what was written, so
//! they are remembered, as many as the cache has frames. Of further ones their file keeps only that there are some.

use std::collections::BTreeMap;

use super::key::{Key, MOST_INDEX};
use super::lists::tree_bytes;
use crate::cache::policy::Frame;

/// A block that was written, and then left or was forgotten.
#[derive(Debug, Clone, Copy)]
struct Left {
    /// How many syncs of its file had begun when it was written: the next one makes it safe.
    after: u64,
    /// It left by itself, so what the storage has of it is the cache's, and may be written again. Else it was invalidated.
    ours: bool,
    /// What is in memory of it now holds what was written then, or takes its place.
    here: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// In memory, clean or dirty again, with how many syncs of their file had begun.
    here: BTreeMap<Key, (Frame, u64)>,
    left: BTreeMap<Key, Left>,
    most_left: usize,
}

fn of(file: u32) -> core::ops::RangeInclusive<Key> {
    Key::new(file, 0)..=Key::new(file, MOST_INDEX)
}

impl Unsynced {
    pub(super) fn new(most_left: usize) -> Self {
        Self {
            here: BTreeMap::new(),
            left: BTreeMap::new(),
            most_left,
        }
    }

    /// Those in memory.
    pub(super) fn here(&self) -> &BTreeMap<Key, (Frame, u64)> {
        &self.here
    }

    /// Bytes of both lists, about.
    pub(super) fn bytes(&self) -> usize {
        tree_bytes(&self.here) + tree_bytes(&self.left)
    }

    /// A block was written, when so many syncs of its file had begun.
    pub(super) fn written(&mut self, key: Key, frame: Frame, syncs: u64) {
        self.here.insert(key, (frame, syncs));
        if self.left.get(&key).is_some_and(|left| left.here) {
            self.left.remove(&key);
        }
    }

    /// A block leaves memory. With `ours` what the storage has of it stays what the cache wrote. Returns the number of syncs after
    /// which it was written, if there is no room to remember that.
    #[must_use = "the file must remember it"]
    pub(super) fn leaves(&mut self, key: Key, ours: bool) -> Option<u64> {
        let here = self.here.remove(&key);
        if let Some(left) = self.left.get_mut(&key) {
            left.here = false;
            left.ours &= ours;
            left.after = here.map_or(left.after, |(_, after)| after);
            return None;
        }
        let (_, after) = here?;
        if self.left.len() >= self.most_left {
            return Some(after);
        }
        let here = false;
        self.left.insert(key, Left { after, ours, here });
        None
    }

    /// A block was read again, while no sync of its file ran: what was read is what was written.
    pub(super) fn comes(&mut self, key: Key, frame: Frame) {
        if let Some(left) = self.left.get_mut(&key) {
            left.here = true;
            if left.ours {
                self.here.insert(key, (frame, left.after));
                self.left.remove(&key);
            }
        }
    }

    /// A block that was not in memory is written from front to end.
    pub(super) fn overwritten(&mut self, key: Key) {
        if let Some(left) = self.left.get_mut(&key) {
            left.here = true;
        }
    }

    /// A file ends before this block.
    pub(super) fn cut(&mut self, from: Key) {
        let behind = from..=Key::new(from.file(), MOST_INDEX);
        let here = self.here.extract_if(behind.clone(), |_, _| true);
        here.for_each(drop);
        self.left.extract_if(behind, |_, _| true).for_each(drop);
    }

    /// A sync of a file, the `begun`th, succeeded.
    pub(super) fn safe(&mut self, file: u32, begun: u64) {
        let here = self
            .here
            .extract_if(of(file), |_, (_, after)| *after < begun);
        here.for_each(drop);
        let left = self.left.extract_if(of(file), |_, left| left.after < begun);
        left.for_each(drop);
    }

    /// A sync of a file failed. Tells `again` of each block that must be written again, and returns whether others are lost: all
    /// those that left, but for those in memory that `is_dirty` says will be written.
    pub(super) fn failed(
        &mut self,
        file: u32,
        is_dirty: impl Fn(&Key) -> bool,
        mut again: impl FnMut(Key, Frame),
    ) -> bool {
        let mut lost = false;
        for (key, left) in self.left.extract_if(of(file), |_, _| true) {
            lost |= !(left.here && is_dirty(&key));
        }
        for (key, (frame, _)) in self.here.extract_if(of(file), |_, _| true) {
            again(key, frame);
        }
        lost
    }

    /// A block of the file was written, and left.
    pub(super) fn has_left(&self, file: u32) -> bool {
        self.left.range(of(file)).next().is_some()
    }
}
