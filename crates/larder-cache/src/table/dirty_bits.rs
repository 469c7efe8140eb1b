//! The dirty bits: which blocks may be changed again without the lock.

use crate::error::CacheError;
use crate::sync::{AtomicU64, Ordering};
use larder_policy::Frame;

/// A bit for each frame: its block is dirty, and its file ends behind it. Then the two things that are to be noted
/// before a block is changed are noted already, and the thread that changes it takes no lock.
///
/// A bit is set under the cache's lock by the thread that holds the frame alone, and taken by a thread that holds it, alone
/// or for reading. So the bit stays what it is while a thread holds the frame alone, and the latch makes it visible.
#[derive(Debug)]
pub(crate) struct DirtyBits(Box<[AtomicU64]>);

impl DirtyBits {
    pub(crate) fn new(frames: usize) -> Result<Self, CacheError> {
        let len = frames.div_ceil(64);
        let mut words = Vec::new();
        words
            .try_reserve_exact(len)
            .map_err(|_| CacheError::Memory { frames })?;
        words.extend((0..len).map(|_| AtomicU64::new(0)));
        Ok(Self(words.into_boxed_slice()))
    }

    fn word(&self, frame: Frame) -> (&AtomicU64, u64) {
        (&self.0[frame as usize / 64], 1 << (frame % 64))
    }

    pub(crate) fn has(&self, frame: Frame) -> bool {
        let (word, bit) = self.word(frame);
        word.load(Ordering::Relaxed) & bit != 0
    }

    pub(crate) fn put(&self, frame: Frame) {
        let (word, bit) = self.word(frame);
        word.fetch_or(bit, Ordering::Relaxed);
    }

    pub(crate) fn take(&self, frame: Frame) {
        let (word, bit) = self.word(frame);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * size_of::<AtomicU64>()
    }
}
