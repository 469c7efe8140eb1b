//! Whether the blocks that came first, while the cache filled, are worth more than later blocks; or those that were there when a loop was
//! found.

use super::super::PolicyError;
use super::super::bits::Bits;

/// Departures after which an observation counts half and the decision is made anew; fewer in a small cache.
const PERIOD: usize = 64;

/// Weighs the blocks that came while the cache filled against those that came after them.
///
/// When a cache has just been filled, it is unknown which blocks come back. In a loop larger than the cache the first blocks do, and a
/// queue in the order of arrival evicts each of them just before its use; where recent blocks are used again, the later ones do. So the
/// first blocks stay, apart, until there is evidence against them: the return of a later block that left in their stead. The first use
/// of a first block that would have left by now, in the order of arrival, is evidence for them.
#[derive(Debug)]
pub(super) struct First {
    /// In the order of arrival, those up to this arrival would have left.
    left: u32,
    /// Departures up to this number were in nobody's stead.
    since: u32,
    /// None of them had to leave yet.
    all_stayed: bool,
    /// What speaks against them, less what speaks for them.
    against: i32,
    /// Of the departures' numbers, the bits that count within a period.
    bits: u32,
    /// The period for which the question was asked last.
    asked: Option<u32>,
    /// By period of the latest departures: did the first ones stay?
    stayed: Bits,
}

impl First {
    /// Of a cache of this many frames, whose departures have this many different numbers.
    pub(super) fn new(capacity: usize, numbers: usize) -> Result<Self, PolicyError> {
        let bits = (capacity / 16).clamp(1, PERIOD).ilog2();
        Ok(Self {
            left: 0,
            since: 0,
            all_stayed: true,
            against: 0,
            bits,
            asked: None,
            stayed: periods(numbers, bits)?,
        })
    }

    /// The departures so far are forgotten, and there will be this many numbers.
    pub(super) fn resize(&mut self, numbers: usize) -> Result<(), PolicyError> {
        self.stayed = periods(numbers, self.bits)?;
        self.asked = None;
        Ok(())
    }

    /// None of them is left, and others are to be the first from now on: those that came after `arrival`, in whose stead blocks with numbers
    /// after `number` leave.
    pub(super) fn begin_anew(&mut self, arrival: u32, number: u32) {
        (self.left, self.since) = (arrival, number);
        (self.all_stayed, self.against, self.asked) = (true, 0, None);
    }

    /// A block is to leave, and its number will be `number`. True if it should be one of the first.
    pub(super) fn leaves(&mut self, number: u32) -> bool {
        self.left = self.left.saturating_add(1);
        let period = number >> self.bits;
        if self.asked != Some(period) {
            self.asked = Some(period);
            if self.against > 0 {
                self.all_stayed = false;
                self.stayed.clear(period.into());
            } else {
                self.stayed.set(period.into());
            }
            self.against /= 2;
        }
        !self.stayed_at(number)
    }

    /// Was there never enough against them?
    pub(super) fn all_stayed(&self) -> bool {
        self.all_stayed
    }

    /// One of them, which came with this number, is used for the first time since.
    pub(super) fn used(&mut self, arrival: u32) {
        if arrival <= self.left {
            self.against = self.against.saturating_sub(1);
        }
    }

    /// A block returns that left with this number.
    pub(super) fn returned(&mut self, number: u32) {
        let since = number.wrapping_sub(self.since).cast_signed();
        if since > 0 && self.stayed_at(number) {
            self.against = self.against.saturating_add(1);
        }
    }

    fn stayed_at(&self, number: u32) -> bool {
        self.stayed.get((number >> self.bits).into())
    }

    pub(super) fn bytes(&self) -> usize {
        self.stayed.bytes()
    }
}

/// A bit for each period of the numbers, and as many more, since the latest numbers may begin within one.
fn periods(numbers: usize, bits: u32) -> Result<Bits, PolicyError> {
    Bits::new((2 * numbers) >> bits)
}
