//! Intervals by resampling whole rounds, for what has no rank distribution: where an optimum, a knee or a
//! crossover lies. Approximate, and labelled so: with ten rounds they cover less than stated.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::error::sorted;
use super::special::{normal_cdf, normal_quantile};

/// Draws `resamples` times `rounds` rounds with replacement and hands the indices to `visit`.
pub(crate) fn rounds(rounds: usize, resamples: usize, seed: u64, mut visit: impl FnMut(&[usize])) {
    if rounds == 0 {
        return;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn = vec![0; rounds];
    for _ in 0..resamples {
        for slot in &mut drawn {
            *slot = rng.random_range(0..rounds);
        }
        visit(&drawn);
    }
}

/// The p-quantile of sorted numbers, between neighbours by proportion. `NaN` for none.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = p.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// The percentile interval (Efron & Tibshirani 1993, chapter 13).
pub(crate) fn percentile(values: &[f64], tail: f64) -> (f64, f64) {
    let values = sorted(values);
    (quantile(&values, tail), quantile(&values, 1.0 - tail))
}

/// The bias-corrected accelerated interval (Efron 1987): the percentiles are moved by how the estimate sits
/// among the resamples and by the skew of the estimates that leave one round out.
///
/// Falls back to the percentile interval where all resamples lie on one side of the estimate.
pub(crate) fn bca(values: &[f64], estimate: f64, leave_one_out: &[f64], tail: f64) -> (f64, f64) {
    let values = sorted(values);
    let n = values.len() as f64;
    // Resamples equal to the estimate count half, or a discrete statistic would seem biased.
    let below: f64 = values
        .iter()
        .map(|v| match v.total_cmp(&estimate) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 0.0,
        })
        .sum();
    let bias = normal_quantile(below / n);
    let mean = leave_one_out.iter().sum::<f64>() / leave_one_out.len().max(1) as f64;
    let (cubes, squares) = leave_one_out.iter().fold((0.0, 0.0), |(c, s), v| {
        let d: f64 = mean - v;
        (c + d * d * d, s + d * d)
    });
    let skew = if squares > 0.0 {
        cubes / (6.0 * squares.powf(1.5))
    } else {
        0.0
    };
    let moved = |p: f64| {
        let z = bias + normal_quantile(p);
        normal_cdf(bias + z / (1.0 - skew * z))
    };
    let (lo, hi) = (moved(tail), moved(1.0 - tail));
    if bias.is_finite() && lo.is_finite() && hi.is_finite() && lo <= hi {
        (quantile(&values, lo), quantile(&values, hi))
    } else {
        (quantile(&values, tail), quantile(&values, 1.0 - tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_agree_with_scipy() {
        let all: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/golden/stats.json")).unwrap();
        let numbers =
            |v: &serde_json::Value| -> Vec<f64> { serde_json::from_value(v.clone()).unwrap() };
        for row in all["bca"].as_array().unwrap() {
            let values = numbers(&row["values"]);
            let (lo, hi) = bca(
                &values,
                row["estimate"].as_f64().unwrap(),
                &numbers(&row["without"]),
                (1.0 - 0.95) / 2.0,
            );
            assert!((lo - row["lo"].as_f64().unwrap()).abs() < 1e-9);
            assert!((hi - row["hi"].as_f64().unwrap()).abs() < 1e-9);
            let (lo, hi) = percentile(&values, 0.025);
            let theirs = numbers(&row["percentile"]);
            assert!((lo - theirs[0]).abs() < 1e-12 && (hi - theirs[1]).abs() < 1e-12);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_rounds() {
        let draw = |seed| {
            let mut all = Vec::new();
            rounds(7, 5, seed, |drawn| all.push(drawn.to_vec()));
            all
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().flatten().all(|r| *r < 7));
    }

    #[test]
    fn resamples_on_one_side_fall_back_to_percentiles() {
        let values = [1.0, 2.0, 3.0];
        assert_eq!(bca(&values, 9.0, &[1.0, 1.0], 0.0), (1.0, 3.0));
    }
}
