//! Allocations that fail on purpose.

use core::sync::atomic::{AtomicU64, Ordering};

use super::options::Options;
use crate::heap::stacks::mix;

/// Counts allocations, and says which of them fail. The same seed and the same order of allocations give the same failures.
#[derive(Debug)]
pub(super) struct Inject(AtomicU64);

impl Inject {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The number of this allocation, from 1 on; `None` when it shall fail.
    pub(super) fn next(&self, options: &Options) -> Option<u64> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let counted = number.saturating_sub(options.fail_after);
        let every = options.fail > 0 && counted > 0 && counted.is_multiple_of(options.fail);
        let drawn = options.fail_chance > 0
            && counted > 0
            && draw(number, options.seed).is_multiple_of(options.fail_chance);
        (!every && !drawn).then_some(number)
    }
}

/// Whether this allocation gets guard pages.
pub(super) fn is_guarded(number: u64, options: &Options) -> bool {
    match options.guard {
        0 => false,
        1 => true,
        n => draw(number, !options.seed).is_multiple_of(n),
    }
}

fn draw(number: u64, seed: u64) -> u64 {
    mix(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ mix(seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(options: &Options) -> Vec<u64> {
        let inject = Inject::new();
        (1..=1000)
            .filter(|_| inject.next(options).is_none())
            .collect()
    }

    #[test]
    fn every_so_many_after_so_many() {
        let mut options = Options::default();
        assert!(failed(&options).is_empty());
        options.fail = 300;
        assert_eq!(failed(&options), [300, 600, 900]);
        options.fail_after = 450;
        assert_eq!(failed(&options), [750]);
    }

    #[test]
    fn a_chance_is_kept_and_repeats() {
        let mut options = Options {
            fail_chance: 10,
            ..Options::default()
        };
        let first = failed(&options);
        assert!((50..200).contains(&first.len()), "{}", first.len());
        assert_eq!(failed(&options), first);
        options.seed = 2;
        assert_ne!(failed(&options), first);
    }

    #[test]
    fn guards_are_sampled() {
        let mut options = Options::default();
        let count = |options: &Options| (0..10_000).filter(|&n| is_guarded(n, options)).count();
        assert_eq!(count(&options), 0);
        options.guard = 1;
        assert_eq!(count(&options), 10_000);
        options.guard = 100;
        assert!((50..200).contains(&count(&options)));
    }
}
