//! Which frame holds a block: looked at without a lock, changed under one.

use super::frames::Frames;
use crate::error::CacheError;
use crate::key::Key;
use crate::sync::{AtomicU32, Ordering};
use larder::internal::want_huge_pages;
use larder_policy::Frame;

/// Open addressing with linear probing, at most two thirds full. A slot has the frame in its low bits, as many as that
/// needs, and bits of the key's hash above; all ones are free. The keys are the frames' own.
///
/// A look takes no lock and may therefore come while entries move: it may miss a block that is there (the caller looks
/// again under the lock) and may name a frame that holds another block by now (the thread that then holds the frame
/// compares its key).
#[derive(Debug)]
pub(crate) struct Lookup {
    /// Homes are all but the last [`NEAR`]; after the last one comes the first. Behind it there is one that is always free, at which
    /// a hit ends in any case.
    slots: Box<[AtomicU32]>,
    /// How many homes there are.
    homes: u64,
    /// The bits of a slot that are the frame's; more than any frame.
    frame: u32,
    /// The other ones, which are the key's.
    key: u32,
}

/// A slot that holds nothing.
const FREE: u32 = u32::MAX;

/// Slots behind the last home, so that a hit hardly ever comes to the end.
const NEAR: usize = 32;

impl Lookup {
    pub(crate) fn new(frames: usize) -> Result<Self, CacheError> {
        let frame = (frames + 1).next_power_of_two() as u32 - 1;
        let homes = frames + frames / 2 + 1;
        let mut slots = Vec::new();
        slots
            .try_reserve_exact(homes + NEAR + 1)
            .map_err(|_| CacheError::Memory { frames })?;
        want_huge_pages(slots.spare_capacity_mut());
        slots.extend((0..=homes + NEAR).map(|_| AtomicU32::new(FREE)));
        Ok(Self {
            slots: slots.into_boxed_slice(),
            homes: homes as u64,
            frame,
            key: !frame,
        })
    }

    /// Its share of the way from the first home to the last, by the half of the hash that the tag is not of.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (((hash & u64::from(u32::MAX)) * self.homes) >> 32) as usize
    }

    /// Slots that may hold something.
    fn len(&self) -> usize {
        self.slots.len() - 1
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.len() { 0 } else { at + 1 }
    }

    /// How far it is from one slot to another, going on only.
    fn way(&self, from: usize, to: usize) -> usize {
        if to >= from {
            to - from
        } else {
            to + self.len() - from
        }
    }

    /// The bits of a slot that are the key's.
    #[inline(always)]
    fn tag(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 & self.key
    }

    /// The first frame from slot `at` on that may hold a block of this hash, and its slot.
    fn look(&self, hash: u64, mut at: usize) -> Option<(Frame, usize)> {
        let tag = self.tag(hash);
        // A look that moving entries overtake again and again ends after one turn of the table.
        for _ in 0..self.len() {
            let slot = self.slots[at].load(Ordering::Acquire);
            // What is left is a frame, and large if the slot is free or has another tag.
            let frame = slot.wrapping_sub(tag);
            if frame < self.frame {
                return Some((frame, at));
            }
            if slot == FREE {
                return None;
            }
            at = self.next(at);
        }
        None
    }

    /// The frame that holds the block, if it was there when looked at.
    pub(crate) fn find(&self, frames: &Frames, key: Key) -> Option<Frame> {
        let hash = key.hash();
        let mut at = self.home(hash);
        for _ in 0..self.len() {
            let (frame, found) = self.look(hash, at)?;
            if frames.key(frame) == key {
                return Some(frame);
            }
            at = self.next(found);
        }
        None
    }

    /// The first frame below `frames` that may hold the block, as a hit looks for it: from its home on, up to the first slot that is
    /// free. A slot of another hash, or a free one, leaves more than there are frames. 17 instructions, and 7 for each further slot.
    #[inline(always)]
    pub(crate) fn near(&self, key: Key, frames: usize) -> Option<Frame> {
        let hash = key.hash();
        let tag = self.tag(hash);
        debug_assert_eq!(self.slots.len() as u64, self.homes + NEAR as u64 + 1);
        let mut at = self.home(hash);
        loop {
            // SAFETY: a home is less than `homes`, and so less than the length by more than `NEAR`. The last slot is free from the beginning,
            // since all changes are at places less than `len()`, and at a free slot the look ends: so it never goes past it.
            let word = unsafe { self.slots.get_unchecked(at) }.load(Ordering::Acquire);
            let frame = word.wrapping_sub(tag);
            // One comparison says that it is a frame at all, and that there is such a one.
            if (frame as usize) < frames {
                return Some(frame);
            }
            if word == FREE {
                return None;
            }
            at += 1;
        }
    }

    /// Under the lock: names the frame for the block, which it must not name yet.
    pub(crate) fn insert(&self, key: Key, frame: Frame) {
        let hash = key.hash();
        let mut at = self.home(hash);
        while self.slots[at].load(Ordering::Relaxed) != FREE {
            at = self.next(at);
        }
        self.slots[at].store(self.tag(hash) | frame, Ordering::Release);
    }

    /// Under the lock: no block is in the frame from now on. Entries behind it move up, so that no mark of it is left.
    pub(crate) fn remove(&self, frames: &Frames, frame: Frame) {
        let key = frames.key(frame);
        let mut hole = self.home(key.hash());
        loop {
            let slot = self.slots[hole].load(Ordering::Relaxed);
            if slot == FREE {
                debug_assert!(false, "frame {frame} is not in the table");
                return;
            }
            if slot & self.frame == frame {
                break;
            }
            hole = self.next(hole);
        }
        let mut at = self.next(hole);
        loop {
            let slot = self.slots[at].load(Ordering::Relaxed);
            if slot == FREE {
                break;
            }
            let home = self.home(frames.key(slot & self.frame).hash());
            if self.way(home, at) >= self.way(hole, at) {
                self.slots[hole].store(slot, Ordering::Release);
                hole = at;
            }
            at = self.next(at);
        }
        self.slots[hole].store(FREE, Ordering::Release);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use larder::pages::PagePool;

    use super::super::Table;

    fn table(len: usize) -> Table {
        let pool = PagePool::builder().populate(false).build().unwrap();
        Table::new(len, pool).unwrap()
    }

    /// Blocks come and go, and after each change the table says of each block where it is.
    fn churn(len: usize, keys: &[Key], steps: usize, each: usize) {
        let table = table(len);
        let mut model: HashMap<Key, Frame> = HashMap::new();
        let mut free: Vec<Frame> = (0..len as Frame).collect();
        let mut word = 5_u64;
        for step in 0..steps {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = keys[(word >> 33) as usize % keys.len()];
            match (model.remove(&key), free.pop()) {
                (Some(frame), room) => {
                    table.remove(frame);
                    free.extend(room);
                    free.push(frame);
                }
                (None, Some(frame)) => {
                    table.insert(key, frame);
                    model.insert(key, frame);
                }
                (None, None) => {}
            }
            if step % each == 0 {
                for key in keys {
                    assert_eq!(table.find(*key), model.get(key).copied());
                }
            }
        }
        assert!(model.len() > len / 3);
        for (key, frame) in &model {
            table.remove(*frame);
            assert_eq!(table.find(*key), None);
        }
        let free = |slot: &AtomicU32| slot.load(Ordering::Relaxed) == FREE;
        assert!(table.lookup.slots.iter().all(free));
    }

    #[test]
    fn it_says_where_each_block_is_however_they_come_and_go() {
        let keys: Vec<_> = (0..1500).map(|index| Key::new(1, index)).collect();
        churn(1000, &keys, 20_000, 500);
        churn(1, &keys[..3], 300, 1);
    }

    #[test]
    fn after_the_last_slot_comes_the_first() {
        let small = table(64);
        let late = |key: &Key| small.lookup.home(key.hash()) as u64 >= small.lookup.homes - 2;
        let keys: Vec<_> = (0..)
            .map(|index| Key::new(1, index))
            .filter(late)
            .take(64)
            .collect();
        for (frame, key) in keys.iter().enumerate() {
            small.insert(*key, frame as Frame);
        }
        assert!(small.lookup.slots[10].load(Ordering::Relaxed) != FREE);
        // What is out of reach of a guess is found all the same.
        let guessed = keys
            .iter()
            .zip(0..)
            .filter(|&(key, frame)| small.lookup.near(*key, 64) == Some(frame));
        assert!((NEAR..64).contains(&guessed.count()));
        for (frame, key) in keys.iter().enumerate() {
            assert_eq!(small.find(*key), Some(frame as Frame));
        }
        churn(64, &keys, 3000, 1);
    }

    #[test]
    fn a_guess_names_the_frame_of_nearly_every_block_of_a_full_table() {
        let table = table(50_000);
        for frame in 0..50_000 {
            table.insert(Key::new(1, u64::from(frame)), frame);
        }
        let guessed = |frame: &Frame| {
            let key = Key::new(1, u64::from(*frame));
            table.lookup.near(key, 50_000) == Some(*frame)
        };
        assert!((0..50_000).filter(guessed).count() > 49_900);
        assert!(table.lookup.bytes() < 50_000 * 6 + 1000);
    }
}
