//! Blocks that were written, and of which no sync says yet that they are safe.
//!
//! Those that are in memory can be written again when a sync fails. Of those that have left, a failing sync takes what was written, so
//! they are remembered, as many as the cache has frames. If there are more, the files that have most of them keep only that there are
//! some, until an eighth of the room is free.

use std::collections::BTreeMap;

use crate::key::Key;
use larder_policy::Frame;

/// A block that was written, and then left or was forgotten.
#[derive(Debug, Clone, Copy)]
struct Left {
    /// How many syncs of its file had begun when it was written: the next one makes it safe.
    after: u64,
    /// It left by itself, so what the storage has of it is the cache's, and may be written again. Else it was invalidated.
    ours: bool,
    /// What is in memory of it now holds what was written then, or takes its place.
    here: bool,
    /// It was read again into this frame while a sync ran: if that succeeds, what was read is what was written.
    comes: Option<Frame>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// In memory, clean or dirty again, with how many syncs of their file had begun.
    here: BTreeMap<Key, (Frame, u64)>,
    left: BTreeMap<Key, Left>,
    most_left: usize,
    /// Files whose blocks that left are to be forgotten, one by one.
    large: Vec<u32>,
}

/// Bytes of a tree, about: a leaf has room for 11 entries and, with its parent's share, 4 words more. It is half to wholly full,
/// so 8 entries are taken for each.
pub(super) fn tree_bytes<K, V>(tree: &BTreeMap<K, V>) -> usize {
    let leaf = 11 * (size_of::<K>() + size_of::<V>()) + 4 * size_of::<usize>();
    tree.len().div_ceil(8) * leaf
}

impl Unsynced {
    pub(super) fn new(most_left: usize) -> Self {
        Self {
            here: BTreeMap::new(),
            left: BTreeMap::new(),
            most_left,
            large: Vec::new(),
        }
    }

    /// All that was written is safe.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.here.is_empty() && self.left.is_empty()
    }

    /// Those in memory.
    pub(super) fn here(&self) -> impl Iterator<Item = (Key, Frame)> {
        self.here.iter().map(|(&key, &(frame, _))| (key, frame))
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

    /// A block leaves memory. With `ours` what the storage has of it stays what the cache wrote. It is remembered by itself if its file
    /// has `known` all that left until now. Returns a file that must remember from now on that there are some, since there is no
    /// room for each, and the latest number of syncs after which one of them was written.
    #[must_use = "the file must remember it"]
    pub(super) fn leaves(&mut self, key: Key, ours: bool, known: bool) -> Option<(u32, u64)> {
        let here = self.here.remove(&key);
        if let Some(left) = self.left.get_mut(&key) {
            left.here = false;
            left.comes = None;
            left.ours &= ours;
            left.after = here.map_or(left.after, |(_, after)| after);
            return None;
        }
        let (_, after) = here?;
        if !known {
            return Some((key.file(), after));
        }
        let left = Left {
            after,
            ours,
            here: false,
            comes: None,
        };
        self.left.insert(key, left);
        (self.left.len() > self.most_left).then(|| self.make_room())
    }

    /// Forgets the blocks of the file that has most of them: what is never synced must not keep others from being remembered. An
    /// eighth of all is to go, since this looks at all: the [next](Self::makes_more_room) files are those with most after it.
    #[cold]
    fn make_room(&mut self) -> (u32, u64) {
        let mut files: Vec<(usize, u32)> = Vec::new();
        for key in self.left.keys() {
            match files.last_mut() {
                Some((len, file)) if *file == key.file() => *len += 1,
                _ => files.push((1, key.file())),
            }
        }
        files.sort_unstable();
        let mut room = 0;
        let go = files.into_iter().rev().take_while(|&(len, _)| {
            let goes = room == 0 || room < self.most_left / 8;
            room += len;
            goes
        });
        let mut go = go.map(|(_, file)| file);
        let first = go.next().unwrap_or(0);
        self.large = go.collect();
        self.forget(first)
    }

    /// Another file that must remember from now on that there are some, after [`leaves`](Self::leaves) said one.
    pub(super) fn makes_more_room(&mut self) -> Option<(u32, u64)> {
        let file = self.large.pop()?;
        Some(self.forget(file))
    }

    /// Forgets the blocks of a file that have left. Returns the file, and the latest number of syncs after which one was written.
    fn forget(&mut self, file: u32) -> (u32, u64) {
        let all = self.left.extract_if(Key::all_of(file), |_, _| true);
        let latest = all.map(|(_, left)| left.after).max();
        (file, latest.unwrap_or(0))
    }

    /// A block was read again, and no sync of its file failed meanwhile. One may still be `running`.
    pub(super) fn comes(&mut self, key: Key, frame: Frame, running: bool) {
        let Some(left) = self.left.get_mut(&key) else {
            return;
        };
        if running {
            left.comes = Some(frame);
            return;
        }
        left.here = true;
        let after = left.after;
        if left.ours {
            // Unless it was changed and written since.
            self.here.entry(key).or_insert((frame, after));
            self.left.remove(&key);
        }
    }

    /// A block that was not in memory is written from front to end.
    pub(super) fn overwritten(&mut self, key: Key) {
        if let Some(left) = self.left.get_mut(&key) {
            left.here = true;
        }
    }

    /// A file ends before this block; with `empty`, nothing but zeroes stays in memory behind it.
    pub(super) fn cut(&mut self, from: Key, empty: bool) {
        let behind = from..=*Key::all_of(from.file()).end();
        if empty {
            self.here
                .extract_if(behind.clone(), |_, _| true)
                .for_each(drop);
        }
        self.left.extract_if(behind, |_, _| true).for_each(drop);
    }

    /// A sync of a file, the `begun`th, succeeded.
    pub(super) fn safe(&mut self, file: u32, begun: u64) {
        let here = self
            .here
            .extract_if(Key::all_of(file), |_, (_, after)| *after < begun);
        here.for_each(drop);
        let left = self
            .left
            .extract_if(Key::all_of(file), |_, left| left.after < begun);
        left.for_each(drop);
        let mut came = Vec::new();
        for (&key, left) in self.left.range_mut(Key::all_of(file)) {
            came.extend(left.comes.take().map(|frame| (key, frame)));
        }
        for (key, frame) in came {
            self.comes(key, frame, false);
        }
    }

    /// A sync of a file failed. Calls `again` for each block that must be written again, and returns whether others are
    /// lost: all those that left, but for those in memory that `is_dirty` says will be written.
    pub(super) fn failed(
        &mut self,
        file: u32,
        is_dirty: impl Fn(Key) -> bool,
        mut again: impl FnMut(Key, Frame),
    ) -> bool {
        let mut lost = false;
        for (key, left) in self.left.extract_if(Key::all_of(file), |_, _| true) {
            lost |= !(left.here && is_dirty(key));
        }
        for (key, (frame, _)) in self.here.extract_if(Key::all_of(file), |_, _| true) {
            again(key, frame);
        }
        lost
    }

    /// A block of the file was written, and no sync says yet that it is safe.
    pub(super) fn has(&self, file: u32) -> bool {
        let mut here = self.here.range(Key::all_of(file));
        here.next().is_some() || self.has_left(file)
    }

    /// A block of the file was written, and left.
    pub(super) fn has_left(&self, file: u32) -> bool {
        self.left.range(Key::all_of(file)).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of so many files were written and left; how many there are of each that must remember it.
    fn told(files: &[u64]) -> Vec<(u32, usize)> {
        let mut unsynced = Unsynced::new(64);
        let mut told = Vec::new();
        let all = (0..).zip(files);
        for key in all.flat_map(|(file, &len)| (0..len).map(move |at| Key::new(file, at))) {
            unsynced.written(key, 0, 7);
            let before = |unsynced: &Unsynced| unsynced.left.len();
            let mut next = unsynced.leaves(key, true, true);
            while let Some((file, after)) = next {
                assert_eq!(after, 7);
                assert!(!unsynced.has_left(file));
                told.push((file, before(&unsynced)));
                next = unsynced.makes_more_room();
            }
            assert!(unsynced.left.len() <= 64);
        }
        told
    }

    #[test]
    fn room_is_made_for_many_and_the_files_with_most_pay_for_it() {
        assert_eq!(told(&[1; 64]), []);
        let small = told(&[1; 65]);
        assert_eq!(small.len(), 8, "an eighth of the room");
        assert_eq!(told(&[1, 60, 1, 1, 2]), [(1, 5)], "one is enough");
        assert_eq!(told(&[30, 7, 3, 25]), [(0, 35)]);
        assert_eq!(told(&[5, 7, 6, 5, 7, 6, 5, 7, 6, 5, 6]), [(7, 58), (4, 51)]);
    }
}
