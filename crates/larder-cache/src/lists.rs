//! The lists that grow with what is dirty and with files.

use std::collections::{BTreeMap, HashMap};

use super::inner::Inner;
use super::key::Key;
use super::opened::Opened;
use super::write_back::BATCH;

/// Bytes of a tree, about: a leaf has room for 11 entries and, with its parent's share, 4 words more. It is half to wholly full,
/// so 8 entries are taken for each.
pub(super) fn tree_bytes<K, V>(tree: &BTreeMap<K, V>) -> usize {
    let leaf = 11 * (size_of::<K>() + size_of::<V>()) + 4 * size_of::<usize>();
    tree.len().div_ceil(8) * leaf
}

/// Bytes of a hash table, about: an entry and a byte for each slot, of which 7 in 8 may be full.
fn hashed_bytes<K, V>(map: &HashMap<K, V>) -> usize {
    map.capacity() * 8 / 7 * (size_of::<(K, V)>() + 1)
}

impl Inner {
    /// Bytes of the lists, about.
    pub(super) fn lists_bytes(&self) -> usize {
        // Each has the lock of its syncs in a block of its own, of four words.
        let files = self.files.capacity() * (size_of::<Opened>() + size_of::<usize>() * 4)
            + self.vacant.capacity() * size_of::<u32>();
        tree_bytes(&self.dirty)
            + self.unsynced.bytes()
            + files
            + hashed_bytes(&self.numbers)
            + hashed_bytes(&self.former)
    }

    /// A block is dirty no more.
    pub(super) fn clean(&mut self, key: Key) {
        self.dirty.remove(&key);
        self.asked.remove(&key);
    }

    /// More than half of the cache is dirty, or the rule has asked for a batch of them: a thread that makes one more block
    /// dirty writes some first. Dirty blocks leave last, and left alone they would take the cache from those that are read.
    pub(super) fn many_dirty(&self) -> bool {
        let capacity = self.rule.capacity();
        self.dirty.len() * 2 > capacity || self.asked.len() >= (capacity / 16).clamp(1, BATCH)
    }
}
