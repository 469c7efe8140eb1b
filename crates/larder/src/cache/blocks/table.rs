//! Which frame holds a block: looked at without a lock, changed under one.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::CacheError;
use super::key::Key;
use crate::cache::policy::Frame;

/// Open addressing with linear probing, at most half full. A slot has 32 bits of the key's hash and the frame plus one; 0 is
/// free.
///
/// A look takes no lock and may therefore come while entries move: it may miss a block that is there (the caller looks again
/// under the lock) and may name a frame that holds another block by now (the caller compares the key when it holds the frame).
#[derive(Debug)]
pub(super) struct Table {
    slots: Box<[AtomicU64]>,
    /// By frame.
    keys: Box<[AtomicU64]>,
}

impl Table {
    pub(super) fn new(frames: usize) -> Result<Self, CacheError> {
        let slots = (frames * 2).next_power_of_two();
        Ok(Self {
            slots: words(slots, 0).ok_or(CacheError::Memory { frames })?,
            keys: words(frames, Key::NONE.0).ok_or(CacheError::Memory { frames })?,
        })
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// The frame that holds the block, if it was there when looked at. About 12 instructions when the first slot has it.
    #[inline]
    pub(super) fn find(&self, key: Key) -> Option<Frame> {
        let hash = key.hash();
        let mut at = self.home(hash);
        // Entries that move towards their homes cannot make this endless: the table is at most half full, but a look that is
        // overtaken again and again ends after one round.
        for _ in 0..self.slots.len() {
            let slot = self.slots[at].load(Ordering::Acquire);
            if slot == 0 {
                return None;
            }
            let frame = slot as u32 - 1;
            if slot >> 32 == hash >> 32 && self.key(frame) == key {
                return Some(frame);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        None
    }

    /// The block in a frame.
    #[inline]
    pub(super) fn key(&self, frame: Frame) -> Key {
        Key(self.keys[frame as usize].load(Ordering::Acquire))
    }

    /// Under the lock: the block is in the frame from now on. It must not be in the table.
    pub(super) fn insert(&self, key: Key, frame: Frame) {
        self.keys[frame as usize].store(key.0, Ordering::Release);
        let hash = key.hash();
        let mut at = self.home(hash);
        while self.slots[at].load(Ordering::Relaxed) != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        let slot = hash >> 32 << 32 | (u64::from(frame) + 1);
        self.slots[at].store(slot, Ordering::Release);
    }

    /// Under the lock: the frame holds nothing from now on. Entries behind it move up, so that no mark of it is left.
    pub(super) fn remove(&self, frame: Frame) {
        let key = self.key(frame);
        let mask = self.slots.len() - 1;
        let mut hole = self.home(key.hash());
        loop {
            let slot = self.slots[hole].load(Ordering::Relaxed);
            if slot == 0 {
                debug_assert!(false, "frame {frame} is not in the table");
                return;
            }
            if slot as u32 == frame + 1 {
                break;
            }
            hole = (hole + 1) & mask;
        }
        let mut at = (hole + 1) & mask;
        loop {
            let slot = self.slots[at].load(Ordering::Relaxed);
            if slot == 0 {
                break;
            }
            let home = self.home(self.key(slot as u32 - 1).hash());
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole].store(slot, Ordering::Release);
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.slots[hole].store(0, Ordering::Release);
        self.keys[frame as usize].store(Key::NONE.0, Ordering::Release);
    }

    pub(super) fn bytes(&self) -> usize {
        (self.slots.len() + self.keys.len()) * size_of::<u64>()
    }
}

fn words(len: usize, value: u64) -> Option<Box<[AtomicU64]>> {
    let mut words = Vec::new();
    words.try_reserve_exact(len).ok()?;
    words.extend((0..len).map(|_| AtomicU64::new(value)));
    Some(words.into_boxed_slice())
}
