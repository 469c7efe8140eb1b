//! Blocks that left, in the order in which they did, by number alone.

use super::super::PolicyError;
use super::super::bits::Bits;

/// A FIFO of the blocks that left and did not come back. Each has a number, which its owner keeps; here is one bit for each
/// of the latest numbers, so that a block that comes back makes room for an older one.
#[derive(Debug)]
pub(super) struct Ghosts {
    /// By number: it is not remembered.
    gone: Bits,
    /// [`bits`](Self::bits), which each look at a shadow asks for.
    bits: u32,
    /// Numbers after this one, up to `latest`, may be remembered.
    horizon: u32,
    latest: u32,
    live: usize,
    limit: usize,
}

impl Ghosts {
    /// Room for `most` ghosts: twice as many numbers, at most 2^31.
    pub(super) fn new(most: usize) -> Result<Self, PolicyError> {
        let gone = Bits::new((most.max(32) * 2).min(1 << 31), true)?;
        Ok(Self {
            bits: (gone.len().ilog2() + 1).min(32),
            gone,
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
        self.gone.len() as usize
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// One leaves; its number.
    #[inline]
    pub(super) fn push(&mut self) -> u32 {
        self.latest = self.latest.wrapping_add(1);
        self.gone.clear(self.latest.into());
        self.live += 1;
        self.shorten();
        self.latest
    }

    /// One comes back: true if it was remembered, and it no longer is.
    pub(super) fn take(&mut self, at: u32) -> bool {
        self.has(at) && self.take_any(at)
    }

    /// The same for a number whose bit is its own.
    #[inline]
    fn take_any(&mut self, at: u32) -> bool {
        let there = self.gone.set_if_clear(at.into());
        self.live -= usize::from(there);
        there
    }

    pub(super) fn has(&self, at: u32) -> bool {
        self.in_reach(at) && !self.gone.get(at.into())
    }

    /// Is it remembered, if it did not come back?
    #[inline]
    pub(super) fn in_reach(&self, at: u32) -> bool {
        self.latest.wrapping_sub(at) < self.latest.wrapping_sub(self.horizon)
    }

    /// So many low bits of a number say which it is, from when its block left until as many others left after it was forgotten as
    /// there are numbers here.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Forgets the oldest until there are as few as there may be, and until the next number is free.
    #[inline]
    fn shorten(&mut self) {
        let most = self.numbers() as u32 - 2;
        while self.live > self.limit || self.latest.wrapping_sub(self.horizon) > most {
            self.horizon = self.horizon.wrapping_add(1);
            self.take_any(self.horizon);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.gone.bytes()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let marked = self.gone.clear_ones();
        if marked != self.live || self.live > self.limit {
            return Err(format!(
                "ghosts: {marked} are marked, {} counted, {} allowed",
                self.live, self.limit
            ));
        }
        Ok(())
    }
}
