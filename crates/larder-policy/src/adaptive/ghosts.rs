//! Blocks that left, in the order in which they did, by number alone.

use super::super::PolicyError;
use super::super::bits::Bits;

/// Most numbers. The limit is no larger, and a sum of it and of those that came back fits 32 bits.
const MOST_NUMBERS: usize = 1 << 31;

/// A FIFO of the blocks that left and did not come back. Each has a number, which its owner keeps; here is one bit for each
/// of the latest numbers, so that a block that comes back makes room for an older one.
#[derive(Debug)]
pub(super) struct Ghosts {
    /// By number: it is among the latest ones, and came back. All other bits are clear, so one that leaves writes none.
    back: Bits,
    /// [`bits`](Self::bits), which each look at a shadow asks for.
    bits: u32,
    latest: u32,
    /// So many numbers up to the latest may be remembered.
    span: u32,
    /// Of these, so many came back.
    returned: u32,
    /// The most that `span` may be, since the next number must be free.
    most: u32,
    /// So many may be remembered.
    limit: u32,
}

impl Ghosts {
    /// Room for `most` ghosts: twice as many numbers, at most 2^31.
    pub(super) fn new(most: usize) -> Result<Self, PolicyError> {
        let back = Bits::new((most.max(32) * 2).min(MOST_NUMBERS))?;
        let numbers = back.len() as u32;
        Ok(Self {
            back,
            bits: (numbers.ilog2() + 1).min(32),
            latest: 0,
            span: 0,
            returned: 0,
            most: numbers - 2,
            limit: most.min(MOST_NUMBERS) as u32,
        })
    }

    /// The same, with numbers that begin after `latest`.
    pub(super) fn starting_at(mut self, latest: u32) -> Self {
        self.latest = latest;
        self
    }

    /// Changes how many are remembered.
    pub(super) fn limit(&mut self, limit: usize) {
        self.limit = limit.min(MOST_NUMBERS) as u32;
        self.shorten();
    }

    /// How many have left so far, modulo 2^32; also the number of the latest.
    #[inline]
    pub(super) fn evictions(&self) -> u32 {
        self.latest
    }

    /// How many numbers there are before the first one comes again: a power of two.
    pub(super) fn numbers(&self) -> usize {
        self.back.len() as usize
    }

    pub(super) fn len(&self) -> usize {
        (self.span - self.returned) as usize
    }

    /// One leaves; its number.
    #[inline]
    pub(super) fn push(&mut self) -> u32 {
        self.latest = self.latest.wrapping_add(1);
        if self.span < self.room() {
            self.span += 1;
        } else if self.back.get(self.latest.wrapping_sub(self.span).into()) {
            self.span += 1;
            self.shorten();
        } // Else one is forgotten that did not come back, and the span stays.
        self.latest
    }

    /// One comes back: true if it was remembered, and it no longer is.
    pub(super) fn take(&mut self, at: u32) -> bool {
        let there = self.in_reach(at) && self.back.set_if_clear(at.into());
        self.returned += u32::from(there);
        there
    }

    pub(super) fn has(&self, at: u32) -> bool {
        self.in_reach(at) && !self.back.get(at.into())
    }

    /// Is it remembered, if it did not come back?
    #[inline]
    fn in_reach(&self, at: u32) -> bool {
        self.latest.wrapping_sub(at) < self.span
    }

    /// The latest number, and how many up to it may be remembered.
    #[inline]
    pub(super) fn reach(&self) -> (u32, u32) {
        (self.latest, self.span)
    }

    /// So many low bits of a number say which it is, from when its block left until as many others left after it was forgotten as
    /// there are numbers here.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// How many numbers there may be up to the latest.
    #[inline]
    fn room(&self) -> u32 {
        (self.limit + self.returned).min(self.most)
    }

    /// Forgets the oldest until there are as few as there may be, and until the next number is free.
    #[inline(never)]
    fn shorten(&mut self) {
        while self.span > self.room() {
            self.span -= 1;
            let oldest = u64::from(self.latest.wrapping_sub(self.span));
            if self.back.get(oldest) {
                self.back.clear(oldest);
                self.returned -= 1;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.back.bytes()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let back = self.numbers() - self.back.clear_ones();
        let live = self.len();
        if back != self.returned as usize || live > self.limit as usize {
            return Err(format!(
                "ghosts: {back} are marked as back, {} counted; {live} are left, {} allowed",
                self.returned, self.limit
            ));
        }
        Ok(())
    }
}
