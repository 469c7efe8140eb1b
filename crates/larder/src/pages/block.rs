//! A block: what is known of 64 neighbouring pages, one bit each.

use crate::os::ZeroIsValid;

/// Largest cluster: 2^20 pages, 4 GiB.
pub const MAX_CLUSTER_PAGES: usize = 1 << 20;

/// Pages of a block.
pub(super) const BLOCK_PAGES: usize = 64;

/// All pages of a block.
pub(super) const ALL: u64 = u64::MAX;

/// The state of 64 pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The page is here: not in a magazine, not with a user, not being worked on, and below the frontier.
    pub(super) home: u64,
    /// The page is backed by memory, as far as we know.
    pub(super) resident: u64,
    /// The page is known to be zero. Means nothing for pages that are not here.
    pub(super) zero: u64,
    /// Nanoseconds of the coarse clock at which the block last became whole.
    pub(super) whole_since: u64,
    /// Pages that have been ready, untouched, since `idle_since`; see `idle`.
    pub(super) idle: u64,
    /// Nanoseconds of the coarse clock.
    pub(super) idle_since: u64,
}

// SAFETY: numbers only.
unsafe impl ZeroIsValid for Block {}

impl Block {
    /// Pages that can be handed out without asking the kernel.
    pub(super) fn ready(self) -> u64 {
        self.home & self.resident
    }

    /// Pages that must be populated first.
    pub(super) fn cold(self) -> u64 {
        self.home & !self.resident
    }

    /// Every page is here.
    pub(super) fn is_whole(self) -> bool {
        self.home == ALL
    }
}

/// The bits `from..from + n` of a word; `from + n` is at most 64 and `n` at least 1.
pub(super) fn bits(from: usize, n: usize) -> u64 {
    (ALL >> (BLOCK_PAGES - n)) << from
}

/// Start of the first run of `n` ones in `word`.
pub(super) fn find_run(word: u64, n: usize) -> Option<usize> {
    // After the loop, bit i says that the n bits from i on are ones: every turn at most doubles the length known.
    let mut starts = word;
    let mut known = 1;
    while known < n {
        let step = known.min(n - known);
        starts &= starts >> step;
        known += step;
    }
    (starts != 0).then(|| starts.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_agree_with_looking_at_every_place() {
        let mut word = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..if cfg!(miri) { 10 } else { 2000 } {
            word = word.rotate_left(7).wrapping_mul(0xBF58_476D_1CE4_E5B9) | word >> 3;
            for n in 1..=64 {
                let slow = (0..=64 - n).find(|&i| word & bits(i, n) == bits(i, n));
                assert_eq!(find_run(word, n), slow, "{n} ones in {word:064b}");
            }
        }
        assert_eq!(find_run(ALL, 64), Some(0));
        assert_eq!(find_run(0, 1), None);
    }
}
