//! Sets of frames.

use crate::error::CacheError;
use larder_base::table::grow;
use larder_policy::Frame;

/// A bit for each frame, and how many are set, so that a miss asks no summary.
#[derive(Debug, Default)]
pub(super) struct FrameSet {
    bits: Vec<u64>,
    count: usize,
}

impl FrameSet {
    pub(super) fn new(frames: usize) -> Result<Self, CacheError> {
        let mut set = Self::default();
        set.grow(frames)?;
        Ok(set)
    }

    /// Makes room for so many frames, if there is less.
    pub(super) fn grow(&mut self, frames: usize) -> Result<(), CacheError> {
        let grown = grow(&mut self.bits, frames.div_ceil(64), 0);
        grown.map_err(|_| CacheError::Memory { frames })
    }

    /// Some are in.
    pub(super) fn any(&self) -> bool {
        self.count > 0
    }

    /// How many are in.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn has(&self, frame: Frame) -> bool {
        self.bits[frame as usize / 64] & 1 << (frame % 64) != 0
    }

    pub(super) fn put(&mut self, frame: Frame) {
        let bit = 1 << (frame % 64);
        let word = &mut self.bits[frame as usize / 64];
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }

    /// Takes a frame out; says whether it was in.
    pub(super) fn take(&mut self, frame: Frame) -> bool {
        let word = &mut self.bits[frame as usize / 64];
        // Not a `bool` from the start: where a caller branches on it, rustc 1.95 to 1.97 drop it from the sum (rust-lang/rust#158206).
        let was = *word >> (frame % 64) & 1;
        *word &= !(1 << (frame % 64));
        self.count -= was as usize;
        was != 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.bits.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_each_frame_once() {
        let mut set = FrameSet::new(65).unwrap();
        for frame in [0, 64, 64] {
            set.put(frame);
        }
        assert_eq!((set.take(64), set.take(64)), (true, false));
        assert!(set.any());
        assert!(set.take(0) && !set.any());
    }

    #[test]
    fn one_without_room_gets_it_later_and_keeps_what_is_in() {
        let mut set = FrameSet::default();
        assert_eq!((set.any(), set.len(), set.bytes()), (false, 0, 0));
        set.grow(65).unwrap();
        set.put(64);
        set.grow(1).unwrap();
        set.grow(200).unwrap();
        set.put(199);
        assert!(set.has(64) && set.has(199) && !set.has(65));
        assert_eq!(set.len(), 2);
    }
}
