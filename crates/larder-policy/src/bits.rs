//! A bit for each of the latest numbers.

use super::PolicyError;
use larder_base::table::table;

/// Bits of the numbers modulo a power of two, which is how many there are.
#[derive(Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// At least `bits` of them and 64, all clear.
    pub(super) fn new(bits: usize) -> Result<Self, PolicyError> {
        let words = bits.div_ceil(64).checked_next_power_of_two();
        Ok(Self(table(words.unwrap_or(usize::MAX), 0)?))
    }

    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64 * 64
    }

    #[inline]
    fn place(&self, number: u64) -> (usize, u64) {
        let word = (number / 64) as usize & (self.0.len() - 1);
        (word, 1 << (number % 64))
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> bool {
        let (word, bit) = self.place(number);
        self.0[word] & bit != 0
    }

    #[inline]
    pub(super) fn set(&mut self, number: u64) {
        let (word, bit) = self.place(number);
        self.0[word] |= bit;
    }

    #[inline]
    pub(super) fn clear(&mut self, number: u64) {
        let (word, bit) = self.place(number);
        self.0[word] &= !bit;
    }

    /// Sets one; it was clear.
    #[inline]
    pub(super) fn set_if_clear(&mut self, number: u64) -> bool {
        let (word, bit) = self.place(number);
        let word = &mut self.0[word];
        let clear = *word & bit == 0;
        *word |= bit;
        clear
    }

    /// How many are clear.
    pub(super) fn clear_ones(&self) -> usize {
        self.0.iter().map(|word| word.count_zeros() as usize).sum()
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}
