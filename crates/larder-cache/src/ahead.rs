//! Which blocks were read ahead and not used yet.

use larder_policy::Frame;

/// A bit for each frame.
#[derive(Debug)]
pub(super) struct Ahead {
    bits: Vec<u64>,
    count: usize,
}

impl Ahead {
    pub(super) fn new(frames: usize) -> Option<Self> {
        let mut bits = Vec::new();
        let words = frames.div_ceil(64);
        bits.try_reserve_exact(words).ok()?;
        bits.resize(words, 0);
        Some(Self { bits, count: 0 })
    }

    /// There are some.
    pub(super) fn any(&self) -> bool {
        self.count > 0
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

    /// It is no longer; says whether it was.
    pub(super) fn take(&mut self, frame: Frame) -> bool {
        let bit = 1 << (frame % 64);
        let word = &mut self.bits[frame as usize / 64];
        let was = *word & bit != 0;
        *word &= !bit;
        self.count -= usize::from(was);
        was
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
        let mut ahead = Ahead::new(65).unwrap();
        for frame in [0, 64, 64] {
            ahead.put(frame);
        }
        assert_eq!((ahead.take(64), ahead.take(64)), (true, false));
        assert!(ahead.any());
        assert!(ahead.take(0) && !ahead.any());
    }
}
