//! The null distributions of the two rank statistics of Wilcoxon (1945) and Mann & Whitney (1947).

use super::defaults::{EXACT_MANN_WHITNEY, EXACT_SIGNED_RANK};
use super::special::normal_quantile;

/// P(T+ = t) for t = 0 ..= n (n + 1) / 2, where T+ is the sum of the ranks with a positive sign.
fn signed_rank_law(n: usize) -> Vec<f64> {
    sign_flip_law(&(1..=n).collect::<Vec<_>>())
}

/// P(sum = t) where each of `ranks` counts or not with probability one half. Dynamic programming over the
/// ranks; all terms are positive, so nothing cancels. O(n^3) for the ranks 1 ..= n.
fn sign_flip_law(ranks: &[usize]) -> Vec<f64> {
    let mut law = vec![0.0; ranks.iter().sum::<usize>() + 1];
    law[0] = 1.0;
    let mut reached = 0;
    for rank in ranks {
        reached += rank;
        // Downwards, so that each rank is counted once.
        for t in (0..=reached).rev() {
            let with = if t >= *rank { law[t - rank] } else { 0.0 };
            law[t] = 0.5 * (law[t] + with);
        }
    }
    law
}

/// P(sum <= t) of the law above: the signed-rank law given the ties, for ranks that are whole (twice the
/// mid-ranks).
pub(crate) fn sign_flip_cdf(ranks: &[usize], t: usize) -> f64 {
    sign_flip_law(ranks)
        .iter()
        .take(t + 1)
        .sum::<f64>()
        .min(1.0)
}

fn signed_rank_moments(n: usize) -> (f64, f64) {
    let n = n as f64;
    (
        n * (n + 1.0) / 4.0,
        (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt(),
    )
}

/// The largest k, from 1, such that the k-th smallest Walsh average has at most `tail` below it:
/// P(T+ <= k - 1) <= tail. 0 when there is none.
pub(crate) fn signed_rank_rank(n: usize, tail: f64) -> u64 {
    if n <= EXACT_SIGNED_RANK {
        largest_rank(&signed_rank_law(n), tail)
    } else {
        let (mean, sd) = signed_rank_moments(n);
        floor_rank(mean + 0.5 + sd * normal_quantile(tail))
    }
}

/// See [`signed_rank_coverage`](super::signed_rank_coverage).
pub(crate) fn signed_rank_coverage(n: usize, tail: f64) -> Option<f64> {
    let rank = signed_rank_rank(n, tail);
    if rank == 0 {
        return None;
    }
    if n > EXACT_SIGNED_RANK {
        return Some(1.0 - 2.0 * tail);
    }
    let below: f64 = signed_rank_law(n).iter().take(rank as usize).sum();
    Some(1.0 - 2.0 * below)
}

/// P(U = u) for u = 0 ..= n m, by the recursion of Mann & Whitney (1947) on which sample holds the largest
/// value: p(n, m, u) = n/(n+m) p(n-1, m, u-m) + m/(n+m) p(n, m-1, u). All terms positive; O(n^2 m^2).
fn mann_whitney_law(n: usize, m: usize) -> Vec<f64> {
    // row[j] is the law for (i, j); i grows.
    let mut row: Vec<Vec<f64>> = vec![vec![1.0]; m + 1];
    for i in 1..=n {
        let mut next: Vec<Vec<f64>> = Vec::with_capacity(m + 1);
        next.push(vec![1.0]);
        for j in 1..=m {
            let share = i as f64 / (i + j) as f64;
            let mut law = vec![0.0; i * j + 1];
            for (u, p) in row[j].iter().enumerate() {
                law[u + j] += share * p;
            }
            for (u, p) in next[j - 1].iter().enumerate() {
                law[u] += (1.0 - share) * p;
            }
            next.push(law);
        }
        row = next;
    }
    row.pop().unwrap_or_default()
}

/// Whether samples of these sizes are few enough for the exact law.
pub(crate) fn mann_whitney_is_exact(n: usize, m: usize) -> bool {
    n.max(m) <= EXACT_MANN_WHITNEY
}

fn mann_whitney_moments(n: usize, m: usize) -> (f64, f64) {
    let (n, m) = (n as f64, m as f64);
    (n * m / 2.0, (n * m * (n + m + 1.0) / 12.0).sqrt())
}

/// The largest k, from 1, with P(U <= k - 1) <= tail; 0 when there is none.
pub(crate) fn mann_whitney_rank(n: usize, m: usize, tail: f64) -> u64 {
    if n == 0 || m == 0 {
        0
    } else if mann_whitney_is_exact(n, m) {
        largest_rank(&mann_whitney_law(n, m), tail)
    } else {
        let (mean, sd) = mann_whitney_moments(n, m);
        floor_rank(mean + 0.5 + sd * normal_quantile(tail))
    }
}

/// P(U <= u) by the exact law.
pub(crate) fn mann_whitney_cdf(n: usize, m: usize, u: f64) -> f64 {
    if u < 0.0 {
        return 0.0;
    }
    mann_whitney_law(n, m)
        .iter()
        .take(u.floor() as usize + 1)
        .sum::<f64>()
        .min(1.0)
}

fn largest_rank(law: &[f64], tail: f64) -> u64 {
    let mut below = 0.0;
    law.iter()
        .take_while(|p| {
            below += **p;
            below <= tail
        })
        .count() as u64
}

fn floor_rank(k: f64) -> u64 {
    if k < 1.0 { 0 } else { k.floor() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_laws_are_those_counted_by_hand() {
        // Three ranks: sums 0 1 2 3 3 4 5 6.
        let eighths = [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0].map(|p| p / 8.0);
        assert_eq!(signed_rank_law(3), eighths);
        // Two against two: six orders.
        let law = mann_whitney_law(2, 2);
        for (p, count) in law.iter().zip([1.0, 1.0, 2.0, 1.0, 1.0]) {
            assert!((p - count / 6.0).abs() < 1e-15);
        }
    }

    #[test]
    fn laws_sum_to_one_at_the_largest_exact_size() {
        let sum: f64 = signed_rank_law(EXACT_SIGNED_RANK).iter().sum();
        assert!((sum - 1.0).abs() < 1e-12);
        let law = mann_whitney_law(EXACT_MANN_WHITNEY, EXACT_MANN_WHITNEY);
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_approximation_continues_the_exact_law() {
        for tail in [0.05, 0.025, 0.005] {
            for n in [101, 130] {
                let exact = largest_rank(&signed_rank_law(n), tail);
                let near = signed_rank_rank(n, tail);
                assert!(near.abs_diff(exact) <= 5, "{n} {tail}: {near} {exact}");
            }
            let exact = largest_rank(&mann_whitney_law(51, 40), tail);
            let near = mann_whitney_rank(51, 40, tail);
            assert!(near.abs_diff(exact) <= 5, "{tail}: {near} {exact}");
        }
    }
}
