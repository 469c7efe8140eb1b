//! Where blocks are: looked up and held without a lock, changed under the cache's.
//!
//! A lookup names a frame; the reader enters the frame's latch, or names the latch in a pin of its handle, and then compares the
//! frame's key. A thread that evicts a block claims the latch first, so a key that was compared stays true.

mod dirty_bits;
mod epoch;
mod frames;
mod latch;
mod lookup;
#[cfg(all(test, loom))]
mod loom_tests;
mod pins;

pub(crate) use dirty_bits::DirtyBits;
pub(crate) use epoch::Epoch;
pub use frames::{BlockMut, BlockRef};
pub(crate) use frames::{Claimed, Frames, Missed};
pub(crate) use latch::{MOST_READERS, TooMany};
pub(crate) use pins::{Pin, PinAt};

use super::error::CacheError;
use super::key::Key;
use epoch::CurrentEpochs;
use larder::pages::PagePool;
use larder_policy::Frame;
use lookup::Lookup;

/// All frames, the lookup of their blocks, and what may be done with a block without the lock.
pub(crate) struct Table {
    lookup: Lookup,
    frames: Frames,
    dirty_bits: DirtyBits,
    epochs: CurrentEpochs,
}

impl Table {
    pub(crate) fn new(frames: usize, pool: PagePool) -> Result<Self, CacheError> {
        Ok(Self {
            lookup: Lookup::new(frames)?,
            frames: Frames::new(frames, pool)?,
            dirty_bits: DirtyBits::new(frames)?,
            epochs: CurrentEpochs::new(),
        })
    }

    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    /// The frames whose block may be changed again without the lock.
    pub(crate) fn dirty_bits(&self) -> &DirtyBits {
        &self.dirty_bits
    }

    /// The epochs that are open, for all threads to read.
    pub(crate) fn epochs(&self) -> &CurrentEpochs {
        &self.epochs
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lookup.bytes() + self.frames.bytes() + self.dirty_bits.bytes()
    }

    /// The block, if the lookup has it near its home, it is saturated in this epoch and may be pinned, and no thread
    /// changes it. 40 instructions with the guard's end, none of them atomic, and 9 for each further slot of the lookup.
    ///
    /// Else what `missed` says, which is called from each place where it is known that this is no hit: a value that says why would
    /// cost every hit some instructions.
    #[inline(always)]
    pub(crate) fn hit<'c, E>(
        &'c self,
        key: Key,
        pin: &'c Pin,
        missed: impl FnOnce(Missed) -> Result<BlockRef<'c>, E>,
    ) -> Result<BlockRef<'c>, E> {
        if !pin.is_free() {
            return missed(Missed::Taken);
        }
        let slots = self.frames.slots();
        let Some(frame) = self.lookup.near(key, slots.len()) else {
            return missed(Missed::Absent);
        };
        match self
            .frames
            .pin(&slots[frame as usize], key, pin, &self.epochs)
        {
            Some(block) => Ok(block),
            None => missed(Missed::Pinned),
        }
    }

    /// The block, if it is in this frame and no thread changes it, and whether it is saturated.
    pub(crate) fn counted(&self, frame: Frame, key: Key) -> Option<(BlockRef<'_>, bool)> {
        self.frames.counted(frame, key, &self.epochs)
    }

    /// The frame that holds the block, if it was there when looked at.
    pub(crate) fn find(&self, key: Key) -> Option<Frame> {
        self.lookup.find(&self.frames, key)
    }

    /// Under the lock: the block is in the frame from now on. No frame must hold it.
    pub(crate) fn insert(&self, key: Key, frame: Frame) {
        self.frames.give(frame, key);
        self.lookup.insert(key, frame);
    }

    /// Under the lock: the frame holds nothing from now on.
    pub(crate) fn remove(&self, frame: Frame) {
        self.lookup.remove(&self.frames, frame);
        self.frames.set_key(frame, Key::NONE);
    }
}
