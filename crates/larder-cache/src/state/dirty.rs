//! Dirty blocks, in the order in which they are written back, and how far writing has come.

use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::unsynced::tree_bytes;
use crate::key::Key;
use larder_policy::Frame;

/// Blocks that are written at once.
pub(crate) const BATCH: usize = 64;

/// Blocks that are looked at under one lock for those that are dirty for long.
const WINDOW: usize = 4096;

/// How much of a cache may be dirty, and for how long, before blocks are written that nothing else wants to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirtyLimits {
    /// In 65536ths of the cache.
    share: u32,
    /// In [`TICK`]s.
    age: u32,
}

/// Time in which a block's age is counted.
const TICK: Duration = Duration::from_millis(10);

impl DirtyLimits {
    /// A share from 0 to 1, if it is one.
    pub(crate) fn new(share: f64, age: Duration) -> Option<Self> {
        let ticks = age.as_nanos().div_ceil(TICK.as_nanos());
        // Half a turn of the clock, 248 days.
        let most = u128::from(u32::MAX / 2);
        (0.0..=1.0).contains(&share).then_some(Self {
            share: (share * 65536.0) as u32,
            age: ticks.min(most) as u32,
        })
    }
}

/// What is dirty since `now` less the limit's age, or longer, is old.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Age {
    now: u32,
    age: u32,
}

impl Age {
    fn is_reached(self, since: u32) -> bool {
        // Less than nothing if it became dirty after `now`.
        self.now.wrapping_sub(since) as i32 >= self.age as i32
    }
}

/// A block that is dirty.
#[derive(Debug, Clone, Copy)]
struct Dirty {
    frame: Frame,
    /// In ticks, by a clock that turns over.
    since: u32,
}

/// A block is here from its first change until it is written or forgotten.
#[derive(Debug)]
pub(crate) struct DirtyBlocks {
    blocks: BTreeMap<Key, Dirty>,
    /// Dirty blocks that the rule wants to be written: as many as go at once, further ones are asked for again.
    requested: BTreeSet<Key>,
    /// Frames of dirty blocks that the rule which looks for a victim just now had to pass, by its numbers.
    passed: RefCell<Vec<Frame>>,
    limits: DirtyLimits,
    begun: Instant,
}

impl DirtyBlocks {
    pub(super) fn new(limits: DirtyLimits) -> Self {
        Self {
            blocks: BTreeMap::new(),
            requested: BTreeSet::new(),
            passed: RefCell::default(),
            limits,
            begun: Instant::now(),
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
        self.blocks.get(&key).map(|dirty| dirty.frame)
    }

    /// How many there are of a file. Looks at each: for tests.
    pub(super) fn count(&self, file: u32) -> usize {
        self.blocks.range(Key::all_of(file)).count()
    }

    /// Says whether it was clean.
    pub(super) fn insert(&mut self, key: Key, frame: Frame) -> bool {
        match self.blocks.entry(key) {
            Entry::Occupied(mut dirty) => {
                dirty.get_mut().frame = frame;
                false
            }
            Entry::Vacant(clean) => {
                let since = now(self.begun);
                clean.insert(Dirty { frame, since });
                true
            }
        }
    }

    /// A block is dirty no more. Returns its frame, if it was.
    pub(super) fn clean(&mut self, key: Key) -> Option<Frame> {
        self.requested.remove(&key);
        self.blocks.remove(&key).map(|dirty| dirty.frame)
    }

    /// A rule that looks for a victim had to pass a dirty block. Without memory it passes the block again next time.
    #[cold]
    pub(super) fn note_passed(&self, slot: Frame) {
        let mut passed = self.passed.borrow_mut();
        if passed.try_reserve(1).is_ok() {
            passed.push(slot);
        }
    }

    /// What was [passed](Self::note_passed), some of it more than once.
    #[inline(always)]
    pub(super) fn passed(&mut self) -> &mut Vec<Frame> {
        self.passed.get_mut()
    }

    /// The first one from a key on, before another.
    pub(crate) fn next(&self, from: Key, until: Key) -> Option<(Key, Frame)> {
        let next = self.blocks.range(from..until).next();
        next.map(|(&key, dirty)| (key, dirty.frame))
    }

    /// [`next`](Self::next), of those that are dirty for long.
    pub(crate) fn next_old(&self, from: Key, until: Key, age: Age) -> Option<(Key, Frame)> {
        let mut all = self.blocks.range(from..until);
        let next = all.find(|(_, dirty)| age.is_reached(dirty.since));
        next.map(|(&key, dirty)| (key, dirty.frame))
    }

    /// Since when blocks are dirty that are to be written now.
    pub(crate) fn age(&self) -> Age {
        Age {
            now: now(self.begun),
            age: self.limits.age,
        }
    }

    /// Where a look that begins at a key is to end, if there is anything to look at.
    pub(crate) fn window(&self, from: Key) -> Option<Key> {
        let window = self.blocks.range(from..).take(WINDOW);
        window.last().map(|(&last, _)| Key(last.0 + 1))
    }

    /// The last one of a file, or of all.
    pub(crate) fn last(&self, file: Option<u32>) -> Option<Key> {
        let last = match file {
            Some(file) => self.blocks.range(Key::all_of(file)).next_back(),
            None => self.blocks.last_key_value(),
        };
        last.map(|(&key, _)| key)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Frame)> {
        self.blocks.iter().map(|(&key, dirty)| (key, dirty.frame))
    }

    /// Of so many frames so many are dirty, and that is more than their share.
    pub(super) fn is_beyond_share(&self, dirty: usize, frames: usize) -> bool {
        dirty as u64 * 65536 > frames as u64 * u64::from(self.limits.share)
    }

    /// More than their share of the cache is dirty, or the rule has asked for a batch of them: a thread that makes one more
    /// block dirty writes some first. Dirty blocks leave last, and left alone they would take the cache from those that are
    /// read.
    pub(super) fn are_many(&self, capacity: usize) -> bool {
        self.is_beyond_share(self.len(), capacity)
            || self.requested.len() >= (capacity / 16).clamp(1, BATCH)
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

    pub(super) fn bytes(&self) -> usize {
        tree_bytes(&self.blocks)
    }
}

/// The time of a clock that begins with the cache.
fn now(begun: Instant) -> u32 {
    (begun.elapsed().as_nanos() / TICK.as_nanos()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_old_when_it_is_dirty_for_so_long_also_when_the_clock_turns_over() {
        let limits = DirtyLimits::new(0.5, Duration::from_millis(25)).unwrap();
        let mut dirty = DirtyBlocks::new(limits);
        for (index, since) in [(0, u32::MAX - 2), (1, u32::MAX), (2, 0), (3, 1)] {
            dirty.blocks.insert(Key(index), Dirty { frame: 0, since });
        }
        // A second change of a block that is dirty makes it no younger.
        dirty.insert(Key(0), 0);
        let old = |now| {
            let age = Age {
                now,
                age: limits.age,
            };
            let mut from = Key(0);
            std::iter::from_fn(|| {
                let (key, _) = dirty.next_old(from, Key::NONE, age)?;
                from = Key(key.0 + 1);
                Some(key.0)
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(old(u32::MAX), []);
        assert_eq!(old(0), [0]);
        assert_eq!(old(3), [0, 1, 2]);
        assert_eq!(old(4), [0, 1, 2, 3]);
        assert_eq!(dirty.window(Key(2)), Some(Key(4)));
        assert_eq!(dirty.window(Key(4)), None);
    }

    #[test]
    fn a_share_is_one_of_all_and_an_age_has_no_end() {
        assert!(DirtyLimits::new(f64::NAN, TICK).is_none());
        assert!(DirtyLimits::new(1.01, TICK).is_none());
        let most = DirtyLimits::new(1.0, Duration::MAX).unwrap();
        assert_eq!((most.share, most.age), (65536, u32::MAX / 2));
    }
}
