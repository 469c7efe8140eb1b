//! The verdicts at their borders.

use crate::model::Better;
use crate::stats::{Estimate, Verdict, verdict};

fn ratio(lo: f64, hi: f64) -> Estimate {
    Estimate {
        value: (lo * hi).sqrt(),
        lo,
        hi,
        n: 10,
        level: 0.95,
    }
}

fn word(lo: f64, hi: f64, floor: f64) -> Verdict {
    verdict(&ratio(lo, hi), floor, Better::Lower, 0.02)
}

#[test]
fn an_interval_on_one_side_and_beyond_the_floor_decides() {
    assert_eq!(word(0.5, 0.8, 0.05), Verdict::Faster);
    assert_eq!(word(1.2, 1.5, 0.05), Verdict::Slower);
}

#[test]
fn an_interval_that_reaches_into_the_floor_does_not() {
    assert_eq!(word(0.5, 0.97, 0.05), Verdict::Inconclusive);
    assert_eq!(word(1.03, 1.5, 0.05), Verdict::Inconclusive);
    assert_eq!(word(1.06, 1.5, 0.05), Verdict::Slower);
}

#[test]
fn an_interval_over_one_does_not() {
    assert_eq!(word(0.9, 1.1, 0.0), Verdict::Inconclusive);
    // One itself is not a difference, even with no floor.
    assert_eq!(word(0.5, 1.0, 0.0), Verdict::Inconclusive);
}

#[test]
fn same_needs_the_interval_and_the_floor_to_be_narrow() {
    assert_eq!(word(0.99, 1.01, 0.01), Verdict::Same { within: 0.02 });
    assert_eq!(word(1.0, 1.0, 0.0), Verdict::Same { within: 0.02 });
    assert_eq!(word(0.99, 1.01, 0.10), Verdict::Inconclusive);
    assert_eq!(word(0.99, 1.03, 0.01), Verdict::Inconclusive);
}

#[test]
fn a_sure_difference_too_small_to_matter_is_none() {
    assert_eq!(word(0.985, 0.99, 0.001), Verdict::Same { within: 0.02 });
}

#[test]
fn higher_is_better_turns_the_words() {
    let of = |lo, hi| verdict(&ratio(lo, hi), 0.01, Better::Higher, 0.02);
    assert_eq!(of(1.2, 1.5), Verdict::Faster);
    assert_eq!(of(0.5, 0.8), Verdict::Slower);
}

#[test]
fn a_count_without_a_good_direction_is_not_judged() {
    let of = |lo, hi| verdict(&ratio(lo, hi), 0.01, Better::Neither, 0.02);
    assert_eq!(of(0.5, 0.8), Verdict::Refused);
    assert_eq!(of(1.0, 1.0), Verdict::Same { within: 0.02 });
}

#[test]
fn nonsense_is_refused() {
    assert_eq!(word(f64::NAN, 1.0, 0.0), Verdict::Refused);
    assert_eq!(word(0.5, f64::INFINITY, 0.0), Verdict::Refused);
    assert_eq!(word(0.0, 0.5, 0.0), Verdict::Refused);
    assert_eq!(word(0.5, 0.8, f64::NAN), Verdict::Refused);
    assert_eq!(word(0.8, 0.5, 0.0), Verdict::Refused);
}

#[test]
fn swapping_the_arms_swaps_the_words() {
    for (lo, hi) in [(0.5, 0.8), (0.97, 0.99), (0.9, 1.2), (0.981, 1.01)] {
        for floor in [0.0, 0.015, 0.3] {
            let turned = match word(1.0 / hi, 1.0 / lo, floor) {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                other => other,
            };
            assert_eq!(word(lo, hi, floor), turned);
        }
    }
}
