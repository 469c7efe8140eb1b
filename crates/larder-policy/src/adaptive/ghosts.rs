//! Blocks that left, in the order in which they did, by number alone.

use super::super::PolicyError;
use larder_base::table::table;

/// A FIFO of the blocks that left and did not come back. Each has a number, which its owner keeps; here is one bit for each
/// of the latest numbers, so that a block that comes back makes room for an older one.
#[derive(Debug)]
pub(super) struct Ghosts {
    /// By number, modulo: it is not remembered.
    gone: Vec<u64>,
    mask: u32,
    /// Numbers after this one, up to `latest`, may be remembered.
    horizon: u32,
    latest: u32,
    live: usize,
    limit: usize,
}

impl Ghosts {
    /// Room for `most` ghosts: twice as many numbers, at most 2^31.
    pub(super) fn new(most: usize) -> Result<Self, PolicyError> {
        let numbers = (most.max(32) * 2).next_power_of_two().min(1 << 31);
        Ok(Self {
            gone: table(numbers / 64, u64::MAX)?,
            mask: numbers as u32 - 1,
            horizon: 0,
            latest: 0,
            live: 0,
            limit: most,
        })
    }

    /// The same, with numbers that begin after `latest`.
    pub(super) fn starting_at(mut self, latest: u32) -> Self {
        (self.horizon, self.latest) = (latest, latest);
        self
    }

    /// Changes how many are remembered.
    pub(super) fn limit(&mut self, limit: usize) {
        self.limit = limit;
        self.shorten();
    }

    /// How many have left so far, modulo 2^32; also the number of the latest.
    #[inline]
    pub(super) fn evictions(&self) -> u32 {
        self.latest
    }

    /// How many numbers there are before the first one comes again: a power of two.
    pub(super) fn numbers(&self) -> usize {
        self.mask as usize + 1
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// One leaves; its number.
    pub(super) fn push(&mut self) -> u32 {
        self.latest = self.latest.wrapping_add(1);
        let (word, bit) = self.place(self.latest);
        self.gone[word] &= !bit;
        self.live += 1;
        self.shorten();
        self.latest
    }

    /// One comes back: true if it was remembered, and it no longer is.
    pub(super) fn take(&mut self, at: u32) -> bool {
        let there = self.has(at);
        if there {
            let (word, bit) = self.place(at);
            self.gone[word] |= bit;
            self.live -= 1;
        }
        there
    }

    pub(super) fn has(&self, at: u32) -> bool {
        let back = self.latest.wrapping_sub(at);
        let (word, bit) = self.place(at);
        back < self.latest.wrapping_sub(self.horizon) && self.gone[word] & bit == 0
    }

    /// So many low bits of a number say which it is, from when its block left until as many others left after it was forgotten as
    /// there are numbers here.
    pub(super) fn bits(&self) -> u32 {
        (self.mask.count_ones() + 1).min(32)
    }

    fn place(&self, at: u32) -> (usize, u64) {
        let at = at & self.mask;
        (at as usize / 64, 1 << (at % 64))
    }

    /// Forgets the oldest until there are as few as there may be, and until the next number is free.
    fn shorten(&mut self) {
        while self.live > self.limit || self.latest.wrapping_sub(self.horizon) > self.mask - 1 {
            self.horizon = self.horizon.wrapping_add(1);
            let (word, bit) = self.place(self.horizon);
            if self.gone[word] & bit == 0 {
                self.gone[word] |= bit;
                self.live -= 1;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.gone.capacity() * size_of::<u64>()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let marked: u32 = self.gone.iter().map(|word| word.count_zeros()).sum();
        if marked as usize != self.live || self.live > self.limit {
            return Err(format!(
                "ghosts: {marked} are marked, {} counted, {} allowed",
                self.live, self.limit
            ));
        }
        Ok(())
    }
}
