//! What must hold for any samples.

use proptest::prelude::*;

use crate::stats::{
    Estimate, hodges_lehmann, holm, mann_whitney, median, middle_of, moments, outliers,
    paired_ratio, shift, signed_rank,
};

fn samples(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    // A few repeated values among many, so that ties are met too.
    prop::collection::vec(
        prop_oneof![4 => -1e6..1e6_f64, 1 => (-3..3_i32).prop_map(f64::from)],
        range,
    )
}

fn costs(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(
        prop_oneof![4 => 1e-3..1e6_f64, 1 => (1..4_i32).prop_map(f64::from)],
        range,
    )
}

fn pairs(range: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    prop::collection::vec((1e-3..1e6_f64, 1e-3..1e6_f64), range)
        .prop_map(|pairs| pairs.into_iter().unzip())
}

fn ordered(e: &Estimate) -> bool {
    e.lo <= e.value && e.value <= e.hi
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-9)
}

proptest! {
    #[test]
    fn ends_are_in_order(x in samples(6..60), y in samples(6..60)) {
        for level in [0.5, 0.9, 0.95] {
            prop_assert!(ordered(&median(&x, level).unwrap()));
            prop_assert!(ordered(&hodges_lehmann(&x, level).unwrap()));
            prop_assert!(ordered(&shift(&x, &y, level).unwrap()));
        }
    }

    #[test]
    fn more_confidence_is_never_narrower(x in samples(8..60)) {
        let (sure, surer) = (median(&x, 0.9).unwrap(), median(&x, 0.99).unwrap());
        prop_assert!(surer.lo <= sure.lo && sure.hi <= surer.hi);
        let (sure, surer) = (hodges_lehmann(&x, 0.9).unwrap(), hodges_lehmann(&x, 0.99).unwrap());
        prop_assert!(surer.lo <= sure.lo && sure.hi <= surer.hi);
    }

    #[test]
    fn order_does_not_matter(x in samples(6..60), seed in any::<u64>()) {
        let mut y = x.clone();
        let len = y.len();
        for i in 0..len {
            y.swap(i, (seed as usize).wrapping_mul(i + 7) % len);
        }
        prop_assert_eq!(median(&x, 0.95).unwrap(), median(&y, 0.95).unwrap());
        prop_assert_eq!(hodges_lehmann(&x, 0.95).unwrap(), hodges_lehmann(&y, 0.95).unwrap());
        prop_assert!(close(signed_rank(&x).unwrap().p, signed_rank(&y).unwrap().p));
    }

    #[test]
    fn rounds_may_come_in_any_order_if_pairs_stay((a, b) in pairs(6..40)) {
        let (mut c, mut d) = (a.clone(), b.clone());
        c.reverse();
        d.reverse();
        prop_assert_eq!(paired_ratio(&a, &b, 0.95).unwrap(), paired_ratio(&c, &d, 0.95).unwrap());
    }

    #[test]
    fn a_ratio_scales((a, b) in pairs(6..40), factor in 1e-3..1e3_f64) {
        let plain = paired_ratio(&a, &b, 0.95).unwrap();
        let scaled: Vec<f64> = a.iter().map(|x| factor * x).collect();
        let scaled = paired_ratio(&scaled, &b, 0.95).unwrap();
        prop_assert!(close(scaled.value, factor * plain.value));
        prop_assert!(close(scaled.lo, factor * plain.lo) && close(scaled.hi, factor * plain.hi));
    }

    #[test]
    fn what_slows_a_whole_round_is_divided_out((a, b) in pairs(6..40), slow in 1.0..50.0_f64) {
        let plain = paired_ratio(&a, &b, 0.95).unwrap();
        let (mut c, mut d) = (a.clone(), b.clone());
        c[2] *= slow;
        d[2] *= slow;
        let slowed = paired_ratio(&c, &d, 0.95).unwrap();
        prop_assert!(close(plain.value, slowed.value) && close(plain.lo, slowed.lo));
    }

    #[test]
    fn swapping_inverts_a_ratio((a, b) in pairs(6..40)) {
        let (there, back) = (paired_ratio(&a, &b, 0.95).unwrap(), paired_ratio(&b, &a, 0.95).unwrap());
        prop_assert!(close(there.value, 1.0 / back.value));
        prop_assert!(close(there.lo, 1.0 / back.hi) && close(there.hi, 1.0 / back.lo));
    }

    #[test]
    fn centres_are_those_of_the_written_out_averages(x in samples(6..40)) {
        let mut walsh = Vec::new();
        for i in 0..x.len() {
            for j in i..x.len() {
                walsh.push(0.5 * x[i] + 0.5 * x[j]);
            }
        }
        prop_assert_eq!(hodges_lehmann(&x, 0.95).unwrap().value, middle_of(&walsh).unwrap());
    }

    #[test]
    fn shifts_are_those_of_the_written_out_differences(a in samples(4..30), b in samples(4..30)) {
        let all: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| x - y)).collect();
        prop_assert_eq!(shift(&a, &b, 0.9).unwrap().value, middle_of(&all).unwrap());
    }

    #[test]
    fn a_shifted_sample_shifts(a in costs(6..30), b in costs(6..30), by in -1e3..1e3_f64) {
        let moved: Vec<f64> = a.iter().map(|x| x + by).collect();
        let (plain, moved) = (shift(&a, &b, 0.95).unwrap(), shift(&moved, &b, 0.95).unwrap());
        prop_assert!((moved.value - plain.value - by).abs() < 1e-6);
    }

    #[test]
    fn p_values_are_probabilities(a in samples(1..40), b in samples(1..40)) {
        for p in [mann_whitney(&a, &b).unwrap().p, signed_rank(&a).unwrap().p] {
            prop_assert!((0.0..=1.0).contains(&p));
        }
        prop_assert!(close(mann_whitney(&a, &b).unwrap().p, mann_whitney(&b, &a).unwrap().p));
    }

    #[test]
    fn holm_never_lowers_and_keeps_the_order(p in prop::collection::vec(0.0..1.0_f64, 0..30)) {
        let adjusted = holm(&p);
        for i in 0..p.len() {
            prop_assert!(adjusted[i] >= p[i] && adjusted[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
            }
        }
    }

    #[test]
    fn the_mean_is_among_the_samples(x in samples(2..60)) {
        let m = moments(&x).unwrap();
        let (lo, hi) = (x.iter().copied().fold(f64::MAX, f64::min), x.iter().copied().fold(f64::MIN, f64::max));
        prop_assert!(m.mean >= lo - 1e-6 && m.mean <= hi + 1e-6);
        prop_assert!(m.sd >= 0.0 && m.se <= m.sd);
    }

    #[test]
    fn no_majority_is_an_outlier(x in samples(1..60)) {
        prop_assert!(2 * outliers(&x).unwrap().len() <= x.len());
    }

    #[test]
    fn nothing_panics_on_odd_input(x in prop::collection::vec(any::<f64>(), 0..20), level in any::<f64>()) {
        let _ = median(&x, level);
        let _ = hodges_lehmann(&x, level);
        let _ = paired_ratio(&x, &x, level);
        let _ = shift(&x, &x, level);
        let _ = mann_whitney(&x, &x);
        let _ = signed_rank(&x);
        let _ = moments(&x);
        let _ = outliers(&x);
        let _ = crate::stats::lag1(&x);
        let _ = holm(&x);
    }
}
