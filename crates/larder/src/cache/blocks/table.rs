//! Which frame holds a block: looked at without a lock, changed under one.

use super::error::CacheError;
use super::frames::{Frames, Words};
use super::key::Key;
use super::sync::Ordering;
use crate::cache::policy::Frame;

/// Open addressing with linear probing, at most half full. A slot has the frame in its low bits, as many as that
/// needs, and bits of the key's hash above; all ones are free. The keys are the frames' own.
///
/// A look takes no lock and may therefore come while entries move: it may miss a block that is there (the caller looks again
/// under the lock) and may name a frame that holds another block by now (whoever then holds the frame compares its key).
#[derive(Debug)]
pub(super) struct Table {
    slots: Words,
    /// The bits of a slot that are the frame's; more than any frame.
    frame: u32,
    /// The other ones, which are the key's.
    key: u32,
}

const FREE: u32 = u32::MAX;

/// Slots that a hit looks at before it looks with more care.
const NEAR: usize = 32;

impl Table {
    pub(super) fn new(frames: usize) -> Result<Self, CacheError> {
        let frame = (frames + 1).next_power_of_two() as u32 - 1;
        Ok(Self {
            slots: Words::new(frames * 2, FREE).ok_or(CacheError::Memory { frames })?,
            frame,
            key: !frame,
        })
    }

    fn mask(&self) -> usize {
        self.slots.mask()
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & self.mask()
    }

    /// The bits of a slot that are the key's.
    #[inline(always)]
    fn tag(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 & self.key
    }

    /// The first frame from slot `at` on that may hold a block of this hash, and its slot.
    fn look(&self, hash: u64, at: usize) -> Option<(Frame, usize)> {
        let tag = self.tag(hash);
        let mask = self.mask();
        let mut at = at & mask;
        // Entries that move towards their homes cannot make this endless: the table is at most half full, but a look that is
        // overtaken again and again ends after one round.
        for _ in 0..self.slots.len() {
            let slot = self.slots.at(at).load(Ordering::Acquire);
            // What is left is a frame, and large if the slot is free or has another tag.
            let frame = slot.wrapping_sub(tag);
            if frame < self.frame {
                return Some((frame, at));
            }
            if slot == FREE {
                return None;
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// The frame that holds the block, if it was there when looked at.
    pub(super) fn find(&self, frames: &Frames, key: Key) -> Option<Frame> {
        let hash = key.hash();
        let mut at = hash as usize;
        for _ in 0..self.slots.len() {
            let (frame, found) = self.look(hash, at)?;
            if frames.key(frame) == key {
                return Some(frame);
            }
            at = found + 1;
        }
        None
    }

    /// The frame that holds the block, most likely: by the bits of its hash alone. A number that is no frame's if none is near.
    /// 12 instructions, and 7 for each further slot: one in two blocks of a full table has one.
    #[inline(always)]
    pub(super) fn guess(&self, key: Key) -> Frame {
        let hash = key.hash();
        let tag = self.tag(hash);
        let home = hash as usize;
        let mut slot = self.slots.at(home).load(Ordering::Acquire);
        for next in 1..NEAR {
            let frame = slot.wrapping_sub(tag);
            if frame < self.frame {
                return frame;
            }
            if slot == FREE {
                break;
            }
            slot = self
                .slots
                .at(home.wrapping_add(next))
                .load(Ordering::Acquire);
        }
        FREE
    }

    /// Under the lock: the block is in the frame from now on. It must not be in the table.
    pub(super) fn insert(&self, frames: &Frames, key: Key, frame: Frame) {
        frames.set_key(frame, key);
        let hash = key.hash();
        let mut at = self.home(hash);
        while self.slots.at(at).load(Ordering::Relaxed) != FREE {
            at = (at + 1) & self.mask();
        }
        self.slots
            .at(at)
            .store(self.tag(hash) | frame, Ordering::Release);
    }

    /// Under the lock: the frame holds nothing from now on. Entries behind it move up, so that no mark of it is left.
    pub(super) fn remove(&self, frames: &Frames, frame: Frame) {
        let key = frames.key(frame);
        let mask = self.mask();
        let mut hole = self.home(key.hash());
        loop {
            let slot = self.slots.at(hole).load(Ordering::Relaxed);
            if slot == FREE {
                debug_assert!(false, "frame {frame} is not in the table");
                return;
            }
            if slot & self.frame == frame {
                break;
            }
            hole = (hole + 1) & mask;
        }
        let mut at = (hole + 1) & mask;
        loop {
            let slot = self.slots.at(at).load(Ordering::Relaxed);
            if slot == FREE {
                break;
            }
            let home = self.home(frames.key(slot & self.frame).hash());
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots.at(hole).store(slot, Ordering::Release);
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.slots.at(hole).store(FREE, Ordering::Release);
        frames.set_key(frame, Key::NONE);
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>()
    }
}
