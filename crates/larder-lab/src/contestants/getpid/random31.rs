//! The random numbers of a C library of 2002, so that the harness of 2002 makes the same choices.

/// `random()` of the GNU C library with its default state of 31 words: additive feedback, `x[n] = x[n-3] + x[n-31]`,
/// of which the lowest bit is dropped; the state is filled by `16807 x mod (2^31 - 1)` and run 310 times.
///
/// ```
/// use larder_lab::contestants::getpid::Random31;
/// // The number that every C program on Linux prints first without a call of srandom().
/// assert_eq!(Random31::new(1).draw(), 1_804_289_383);
/// ```
#[derive(Debug, Clone)]
pub struct Random31 {
    state: [u32; 31],
    at: usize,
}

impl Random31 {
    /// The generator as `srandom(seed)` leaves it; 1 is the seed of a program that never called it. 0 counts as 1.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        let mut state = [0; 31];
        let mut word = u64::from(seed.max(1)) % 0x7fff_ffff;
        for slot in &mut state {
            // Below 2^31, so the cast keeps every bit.
            *slot = word as u32;
            word = word * 16_807 % 0x7fff_ffff;
        }
        let mut random = Self { state, at: 3 };
        for _ in 0..310 {
            random.draw();
        }
        random
    }

    /// The next number, from 0 to 2^31 - 1.
    pub fn draw(&mut self) -> u32 {
        // `at` runs through the words; the other pointer of the C library is 28 words ahead of it, which is 3 behind.
        let back = (self.at + 28) % 31;
        let sum = self.state[self.at].wrapping_add(self.state[back]);
        self.state[self.at] = sum;
        self.at = (self.at + 1) % 31;
        sum >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_are_those_of_every_linux_machine() {
        let mut random = Random31::new(1);
        let first: Vec<u32> = (0..5).map(|_| random.draw()).collect();
        assert_eq!(
            first,
            [
                1_804_289_383,
                846_930_886,
                1_681_692_777,
                1_714_636_915,
                1_957_747_793
            ]
        );
    }
}
