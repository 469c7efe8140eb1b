//! Optimum sets, knees and crossovers on curves whose truth is known.

use super::laws::{Law, Noise};
use crate::stats::sweep::{Crossover, Knee, NoKnee, Sweep, crossover};
use crate::stats::{PairedTest, StatsError};

/// Rounds of a curve: every cost with its own noise, times what slows the whole round.
fn rounds(noise: &mut Noise, curve: &[f64], law: Law, n: usize) -> Vec<Vec<f64>> {
    (0..n)
        .map(|_| {
            let round = noise.one(Law::LogNormal(0.3));
            curve.iter().map(|c| c * round * noise.one(law)).collect()
        })
        .collect()
}

fn swept(seed: u64, settings: &[f64], curve: &[f64], sd: f64, n: usize) -> Sweep {
    let rounds = rounds(&mut Noise::new(seed), curve, Law::LogNormal(sd), n);
    Sweep::new(settings, &rounds).unwrap()
}

fn powers(n: u32) -> Vec<f64> {
    (0..n).map(|i| f64::from(1 << i)).collect()
}

#[test]
fn equal_settings_are_one_set_and_the_cheapest_is_recommended() {
    let settings = powers(5);
    let sweep = swept(1, &settings, &[3.0, 1.0, 1.0, 1.0, 2.0], 0.02, 12);
    let set = sweep.optimum_set(0.95, Some(&settings)).unwrap();
    assert_eq!(set.members, [1, 2, 3]);
    assert_eq!(set.recommended, 1);
    assert!(set.members.contains(&set.best));
    assert_eq!(set.ratios[set.best].value, 1.0);
    assert!(set.ratios[0].lo > 2.5);
    // Without a burden the best itself.
    let set = sweep.optimum_set(0.95, None).unwrap();
    assert_eq!(set.recommended, set.best);
}

#[test]
fn many_settings_in_few_rounds_are_still_told_apart() {
    // 37 comparisons of 10 pairs: signed ranks cannot give less than 2/1024, and 37 times that is above 5 %.
    let settings: Vec<f64> = (1..=38).map(f64::from).collect();
    let curve: Vec<f64> = settings
        .iter()
        .map(|s| if *s < 20.0 { 2.0 } else { 1.0 })
        .collect();
    let set = swept(2, &settings, &curve, 0.02, 10)
        .optimum_set(0.95, Some(&settings))
        .unwrap();
    assert_eq!(set.test, PairedTest::Student);
    assert!(set.members.iter().all(|j| *j >= 19), "{:?}", set.members);
    assert!(set.members.len() >= 17);
}

#[test]
fn the_true_optimum_is_in_the_set() {
    let settings = powers(8);
    // One setting is truly best, by less than its noise; the others follow closely.
    let curve: Vec<f64> = (0..8)
        .map(|j| 1.0 + 0.004 * f64::from(i32::abs(j - 3)))
        .collect();
    for (law, n) in [
        (Law::LogNormal(0.02), 8),
        (Law::LogNormal(0.02), 15),
        (Law::Spiky, 10),
    ] {
        let mut noise = Noise::new(31);
        let trials = 300;
        let held = (0..trials)
            .filter(|_| {
                let rounds = rounds(&mut noise, &curve, law, n);
                let sweep = Sweep::new(&settings, &rounds).unwrap();
                let set = sweep.optimum_set(0.95, None).unwrap();
                set.members.contains(&3)
            })
            .count();
        assert!(held * 100 >= trials * 95, "{law:?} n={n}: {held}");
    }
}

#[test]
fn a_knee_is_where_the_curve_comes_within_three_percent() {
    let settings = powers(8);
    // 1 + 1/s: within 3 % of the last from 64 on, were there no noise.
    let curve: Vec<f64> = settings.iter().map(|s| 1.0 + 1.0 / s).collect();
    let sweep = swept(3, &settings, &curve, 0.002, 20);
    let Knee::At {
        setting,
        ratio,
        from_start,
        ..
    } = sweep.knee(0.95, 0.03).unwrap()
    else {
        panic!("no knee")
    };
    assert_eq!(setting, 32.0);
    assert!(ratio.hi <= 1.03 && !from_start);
    let place = sweep.knee_location(0.95, 0.03, 7).unwrap().unwrap();
    assert!(
        place.lo <= 32.0 && place.hi >= 32.0 && place.hi <= 64.0,
        "{place:?}"
    );
    assert_eq!(
        sweep.knee_location(0.95, 0.03, 7),
        sweep.knee_location(0.95, 0.03, 7)
    );
}

#[test]
fn a_curve_that_still_falls_has_no_knee() {
    let settings = powers(6);
    let curve: Vec<f64> = settings.iter().map(|s| 100.0 / s).collect();
    let sweep = swept(4, &settings, &curve, 0.01, 10);
    assert_eq!(
        sweep.knee(0.95, 0.03).unwrap(),
        Knee::None(NoKnee::StillFalling)
    );
    assert_eq!(sweep.knee_location(0.95, 0.03, 1).unwrap(), None);
}

#[test]
fn a_flat_curve_is_flat_from_its_start() {
    let sweep = swept(5, &powers(6), &[1.0; 6], 0.001, 10);
    assert!(matches!(
        sweep.knee(0.95, 0.03).unwrap(),
        Knee::At {
            index: 0,
            from_start: true,
            ..
        }
    ));
}

#[test]
fn noise_larger_than_the_bar_is_no_knee_and_no_fall() {
    // Flat, with noise of 30 %: the best is whichever was lucky, and nothing below is surely as good.
    let settings = powers(3);
    let mut noise = Noise::new(10);
    let (mut unsure, mut maybe) = (0, 0);
    for _ in 0..50 {
        let rounds = rounds(&mut noise, &[1.0; 3], Law::LogNormal(0.3), 10);
        match Sweep::new(&settings, &rounds)
            .unwrap()
            .knee(0.95, 0.03)
            .unwrap()
        {
            Knee::None(NoKnee::Unsure) => unsure += 1,
            Knee::At {
                index,
                maybe_smaller,
                ..
            } => {
                assert_eq!(maybe_smaller, index > 0);
                maybe += 1;
            }
            Knee::None(other) => panic!("{other:?}"),
        }
    }
    assert!(unsure > 5 && maybe > 20);
}

#[test]
fn noise_moves_the_knee_up_and_never_below_what_is_sure() {
    // At 16 the cost is 4 % above the best: with this noise some setting below looks good, none is sure.
    let settings = powers(8);
    let curve: Vec<f64> = (0..8).map(|j| if j < 5 { 1.04 } else { 1.0 }).collect();
    let mut noise = Noise::new(6);
    let early = (0..200)
        .filter(|_| {
            let rounds = rounds(&mut noise, &curve, Law::LogNormal(0.02), 10);
            let sweep = Sweep::new(&settings, &rounds).unwrap();
            matches!(sweep.knee(0.95, 0.03).unwrap(), Knee::At { index, .. } if index < 5)
        })
        .count();
    assert!(early <= 20, "{early}");
}

#[test]
fn the_place_of_the_optimum_is_an_interval() {
    let settings = powers(7);
    let curve = [2.0, 1.5, 1.02, 1.0, 1.01, 1.4, 2.0];
    let place = swept(8, &settings, &curve, 0.02, 12)
        .optimum_location(0.95, 1)
        .unwrap();
    assert!(place.lo <= 8.0 && place.hi >= 8.0);
    assert!(place.lo >= 4.0 && place.hi <= 16.0, "{place:?}");
}

#[test]
fn a_sweep_refuses_what_it_cannot_use() {
    let one = |settings: &[f64], rounds: &[Vec<f64>]| Sweep::new(settings, rounds).unwrap_err();
    assert!(matches!(
        one(&[2.0, 1.0], &[vec![1.0, 1.0]]),
        StatsError::BadArgument { value: 1.0, .. }
    ));
    assert!(matches!(
        one(&[1.0, 2.0], &[vec![1.0]]),
        StatsError::Unpaired { a: 2, b: 1, .. }
    ));
    assert!(matches!(
        one(&[1.0], &[vec![0.0]]),
        StatsError::NotPositive { .. }
    ));
    assert!(matches!(one(&[], &[]), StatsError::TooFew { .. }));
    let few = swept(9, &[1.0, 2.0], &[1.0, 2.0], 0.1, 5);
    assert!(matches!(
        few.knee(0.95, 0.03),
        Err(StatsError::TooFew {
            have: 5,
            need: 6,
            ..
        })
    ));
    assert!(few.optimum_set(0.95, Some(&[1.0])).is_err());
    assert!(few.ratios_to(2, 0.95).is_err());
}

/// Costs of a and b over sizes, from laws of size.
fn two(
    seed: u64,
    sizes: &[f64],
    a: impl Fn(f64) -> f64,
    b: impl Fn(f64) -> f64,
) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let mut noise = Noise::new(seed);
    (0..12)
        .map(|_| {
            let round = noise.one(Law::LogNormal(0.3));
            let mut arm = |f: &dyn Fn(f64) -> f64| -> Vec<f64> {
                sizes
                    .iter()
                    .map(|s| round * f(*s) * noise.one(Law::LogNormal(0.02)))
                    .collect()
            };
            (arm(&a), arm(&b))
        })
        .unzip()
}

#[test]
fn one_crossover_is_found_where_it_is() {
    let sizes = powers(10);
    // 100 + s against 20 + 3 s: equal at 40.
    let (a, b) = two(1, &sizes, |s| 100.0 + s, |s| 20.0 + 3.0 * s);
    let Crossover::One(crossing) = crossover(&sizes, &a, &b, 0.95, 5).unwrap() else {
        panic!("not one")
    };
    assert!(crossing.a_wins_above);
    assert!(crossing.between.0 <= 40.0 && crossing.between.1 >= 40.0);
    // Interpolation between 32 and 64 is not exact for these laws.
    assert!((crossing.at.value - 40.0).abs() < 2.0, "{crossing:?}");
    assert!(crossing.at.lo <= crossing.at.value && crossing.at.value <= crossing.at.hi);
    assert!(crossing.at.hi - crossing.at.lo < 6.0, "{crossing:?}");
}

#[test]
fn no_crossover_is_an_answer() {
    let sizes = powers(8);
    let (a, b) = two(2, &sizes, |s| 10.0 + s, |s| 20.0 + 2.0 * s);
    assert_eq!(
        crossover(&sizes, &a, &b, 0.95, 5).unwrap(),
        Crossover::NoneInRange { a_ahead: true }
    );
    assert_eq!(
        crossover(&sizes, &b, &a, 0.95, 5).unwrap(),
        Crossover::NoneInRange { a_ahead: false }
    );
}

#[test]
fn two_crossovers_are_both_named() {
    let sizes = powers(9);
    // a is ahead in the middle only.
    let (a, b) = two(3, &sizes, |s| 1.0 + (s.log2() - 4.0).powi(2), |_| 5.0);
    let Crossover::Several(all) = crossover(&sizes, &a, &b, 0.95, 5).unwrap() else {
        panic!("not several")
    };
    assert_eq!(all.len(), 2);
    assert!(all[0].a_wins_above && !all[1].a_wins_above);
    assert!((all[0].at.value.log2() - 2.0).abs() < 0.2);
    assert!((all[1].at.value.log2() - 6.0).abs() < 0.2);
}

#[test]
fn curves_that_meet_and_part_again_touch() {
    let sizes = powers(7);
    let (a, b) = two(4, &sizes, |s| 1.0 + (s.log2() - 3.0).powi(2), |_| 1.0);
    assert_eq!(
        crossover(&sizes, &a, &b, 0.95, 5).unwrap(),
        Crossover::Touches { at: vec![8.0] }
    );
}

#[test]
fn a_crossover_refuses_what_it_cannot_use() {
    let rows = vec![vec![1.0, 2.0]; 6];
    assert!(crossover(&[0.0, 1.0], &rows, &rows, 0.95, 1).is_err());
    assert!(crossover(&[1.0, 2.0], &rows, &rows[1..], 0.95, 1).is_err());
    assert!(crossover(&[1.0, 2.0], &rows[1..], &rows[1..], 0.95, 1).is_err());
    assert!(crossover(&[], &[], &[], 0.95, 1).is_err());
    assert!(matches!(
        crossover(&[1.0, 2.0], &rows, &rows, 0.95, 1),
        Ok(Crossover::Touches { .. })
    ));
}

#[test]
fn the_best_is_found_although_rounds_differ_wildly() {
    // Rounds differ by factors of ten, the two settings by 0.3 %, their noise is 0.5 %.
    let mut noise = Noise::new(11);
    let right = (0..200)
        .filter(|_| {
            let rounds: Vec<Vec<f64>> = (0..20)
                .map(|_| {
                    let round = noise.one(Law::LogNormal(2.0));
                    [1.003, 1.0]
                        .map(|cost| cost * round * noise.one(Law::LogNormal(0.005)))
                        .to_vec()
                })
                .collect();
            Sweep::new(&[1.0, 2.0], &rounds).unwrap().best() == 1
        })
        .count();
    assert!(right >= 180, "{right}");
}

#[test]
fn a_crossover_is_found_among_many_sizes() {
    let sizes: Vec<f64> = (1..=40).map(f64::from).collect();
    let (a, b) = two(5, &sizes, |s| 20.0 / s, |_| 1.0);
    let (a, b) = (a[..10].to_vec(), b[..10].to_vec());
    let Crossover::One(crossing) = crossover(&sizes, &a, &b, 0.95, 5).unwrap() else {
        panic!("not one")
    };
    assert!((crossing.at.value - 20.0).abs() < 1.0, "{crossing:?}");
}
