//! How often an interval holds the truth. Seeded, so a failure is a change of the code and not bad luck.

use super::laws::{Law, Noise};
use crate::model::{Better, StopReason};
use crate::stats::stopping::{Stopping, half_width};
use crate::stats::sweep::{Crossover, crossover};
use crate::stats::{Estimate, Verdict, hodges_lehmann, lag1, median, paired_ratio, verdict};

const LAWS: [Law; 3] = [Law::LogNormal(0.05), Law::LogNormal(0.5), Law::Spiky];

/// A weight of each round that both arms share: slow rounds are slow for both.
fn pair(noise: &mut Noise, law: Law, ratio: f64) -> (f64, f64) {
    let round = noise.one(Law::LogNormal(0.3));
    (ratio * round * noise.one(law), round * noise.one(law))
}

fn pairs(noise: &mut Noise, law: Law, ratio: f64, n: usize) -> (Vec<f64>, Vec<f64>) {
    (0..n).map(|_| pair(noise, law, ratio)).unzip()
}

fn holds(e: &Estimate, truth: f64) -> bool {
    e.lo <= truth && truth <= e.hi
}

/// Share of the trials in which `hit` is true.
fn share(trials: u32, mut hit: impl FnMut() -> bool) -> f64 {
    f64::from((0..trials).map(|_| u32::from(hit())).sum::<u32>()) / f64::from(trials)
}

fn medians_cover(trials: u32, least: f64) {
    for law in LAWS {
        for n in [6, 10, 20, 40] {
            let mut noise = Noise::new(1000 + n as u64);
            let covered = share(trials, || {
                let x = noise.many(law, n);
                holds(&median(&x, 0.95).unwrap(), law.median())
            });
            assert!(covered >= least, "{law:?} n={n}: {covered}");
        }
    }
}

fn ratios_cover(trials: u32, least: f64) {
    for law in LAWS {
        for n in [6, 10, 20, 40] {
            let mut noise = Noise::new(2000 + n as u64);
            let covered = share(trials, || {
                let (a, b) = pairs(&mut noise, law, 1.1, n);
                holds(&paired_ratio(&a, &b, 0.95).unwrap(), 1.1)
            });
            assert!(covered >= least, "{law:?} n={n}: {covered}");
            // An interval that always holds the truth is too wide to be of use.
            assert!(covered <= 0.99, "{law:?} n={n}: {covered}");
        }
    }
}

#[test]
fn the_median_is_covered() {
    medians_cover(3000, 0.94);
}

#[test]
fn the_ratio_is_covered() {
    ratios_cover(3000, 0.94);
}

#[test]
#[ignore = "takes a minute"]
fn the_median_is_covered_in_many_trials() {
    medians_cover(100_000, 0.949);
}

#[test]
#[ignore = "takes a minute"]
fn the_ratio_is_covered_in_many_trials() {
    ratios_cover(100_000, 0.949);
}

/// Runs the stopping rule as the runner does and returns the samples that it ended with.
fn until_stopped(
    noise: &mut Noise,
    law: Law,
    ratio: f64,
    (least, most, target): (u32, u32, f64),
) -> (Vec<f64>, Vec<f64>, StopReason) {
    let mut rule = Stopping::new(least, most, target);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for rounds in 1.. {
        let (x, y) = pair(noise, law, ratio);
        a.push(x);
        b.push(y);
        if rule.is_look(rounds)
            && let Some(why) = rule.decide(rounds, half_width(&a, &b, rule.level(rounds)))
        {
            return (a, b, why);
        }
    }
    unreachable!("the last look stops")
}

#[test]
fn stopping_on_precision_keeps_the_coverage() {
    for limits in [(6, 22, 0.05), (10, 75, 0.02)] {
        for law in [Law::LogNormal(0.03), Law::LogNormal(0.1), Law::Spiky] {
            let mut noise = Noise::new(77);
            let covered = share(1500, || {
                let (a, b, _) = until_stopped(&mut noise, law, 1.0, limits);
                holds(&paired_ratio(&a, &b, 0.95).unwrap(), 1.0)
            });
            assert!(covered >= 0.935, "{law:?} {limits:?}: {covered}");
        }
    }
}

/// One session: a reference, its twin, and a contestant with its true ratio. The verdict on the contestant.
fn session(noise: &mut Noise, law: Law, ratio: f64, n: usize) -> Verdict {
    let (mut own, mut twin, mut reference) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let round = noise.one(Law::LogNormal(0.3));
        own.push(ratio * round * noise.one(law));
        twin.push(round * noise.one(law));
        reference.push(round * noise.one(law));
    }
    let floor = paired_ratio(&twin, &reference, 0.95)
        .unwrap()
        .value
        .ln()
        .abs();
    let ab = paired_ratio(&own, &reference, 0.95).unwrap();
    verdict(&ab, floor, Better::Lower, 0.02)
}

#[test]
fn equal_things_are_seldom_called_faster_or_slower() {
    for law in LAWS {
        for n in [6, 10, 22] {
            let mut noise = Noise::new(3000 + n as u64);
            let wrong = share(1000, || {
                matches!(
                    session(&mut noise, law, 1.0, n),
                    Verdict::Faster | Verdict::Slower
                )
            });
            // The interval alone would be wrong in 5 of 100; the floor takes most of that away.
            assert!(wrong <= 0.02, "{law:?} n={n}: {wrong}");
        }
    }
}

#[test]
fn a_true_difference_is_found() {
    for (law, n, least) in [
        (Law::LogNormal(0.05), 6, 0.95),
        (Law::LogNormal(0.05), 10, 0.99),
        (Law::Spiky, 10, 0.5),
        (Law::Spiky, 22, 0.9),
    ] {
        let mut noise = Noise::new(4000);
        let found = share(500, || session(&mut noise, law, 0.7, n) == Verdict::Faster);
        assert!(found >= least, "{law:?} n={n}: {found}");
    }
}

#[test]
fn true_equality_is_found() {
    let mut noise = Noise::new(5000);
    let found = share(500, || {
        session(&mut noise, Law::LogNormal(0.01), 1.0, 15) == Verdict::Same { within: 0.02 }
    });
    assert!(found >= 0.95, "{found}");
}

/// Where log-linear curves cross in truth, and how often the interval holds that.
fn crossings_cover(trials: u32, law: Law, n: usize) -> f64 {
    let sizes = [1.0, 4.0, 16.0, 64.0, 256.0];
    let truth = 20.0_f64;
    let mut noise = Noise::new(6000 + n as u64);
    share(trials, || {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let round = noise.one(Law::LogNormal(0.3));
            a.push(
                sizes
                    .iter()
                    .map(|s| (s / truth).powf(-0.1) * round * noise.one(law))
                    .collect(),
            );
            b.push(sizes.iter().map(|_| round * noise.one(law)).collect());
        }
        match crossover(&sizes, &a, &b, 0.95, 1).unwrap() {
            Crossover::One(crossing) => holds(&crossing.at, truth),
            _ => false,
        }
    })
}

#[test]
fn a_crossing_is_covered_approximately() {
    for (law, n) in [(Law::LogNormal(0.03), 10), (Law::LogNormal(0.03), 22)] {
        let covered = crossings_cover(150, law, n);
        assert!(covered >= 0.85, "{law:?} n={n}: {covered}");
    }
}

#[test]
fn rounds_that_lean_on_each_other_are_warned_of() {
    // Log ratios that keep 0.6 of the one before: the interval covers too little, and lag 1 says so.
    let mut noise = Noise::new(7000);
    let (mut warned, trials) = (0, 1500);
    let covered = share(trials, || {
        let mut last = noise.normal() / (1.0_f64 - 0.36).sqrt();
        let logs: Vec<f64> = (0..22)
            .map(|_| {
                last = 0.6 * last + noise.normal();
                last
            })
            .collect();
        warned += u32::from(lag1(&logs).unwrap().warn);
        holds(&hodges_lehmann(&logs, 0.95).unwrap(), 0.0)
    });
    let warned = f64::from(warned) / f64::from(trials);
    assert!(covered < 0.8, "the warning would be needless: {covered}");
    assert!(warned > 0.6, "{warned}");
    // Independent rounds are seldom warned of.
    let wrong = share(trials, || {
        let logs: Vec<f64> = (0..22).map(|_| noise.normal()).collect();
        lag1(&logs).unwrap().warn
    });
    assert!(wrong < 0.04, "{wrong}");
}
