//! The null distributions of the two rank statistics of Wilcoxon (1945) and Mann & Whitney (1947).

use super::defaults::EXACT_SIGNED_RANK;
use super::special::{normal_cdf, normal_quantile};

/// P(T+ = t) for t = 0 ..= n (n + 1) / 2, where T+ is the sum of the ranks with a positive sign: every rank
/// counts or not, each with probability one half. Dynamic programming over ranks, O(n^3).
fn signed_rank_law(n: usize) -> Vec<f64> {
    let top = n * (n + 1) / 2;
    let mut law = vec![0.0; top + 1];
    law[0] = 1.0;
    let mut reached = 0;
    for rank in 1..=n {
        reached += rank;
        // Downwards, so that each rank is counted once. All terms are positive: nothing cancels.
        for t in (0..=reached).rev() {
            let without = law[t];
            let with = if t >= rank { law[t - rank] } else { 0.0 };
            law[t] = 0.5 * (without + with);
        }
    }
    law
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
        let mut below = 0.0;
        let mut rank = 0;
        for p in signed_rank_law(n) {
            below += p;
            if below > tail {
                break;
            }
            rank += 1;
        }
        rank
    } else {
        let (mean, sd) = signed_rank_moments(n);
        let k = mean - 0.5 + sd * normal_quantile(tail);
        if k < 1.0 { 0 } else { k.floor() as u64 }
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

/// P(T+ <= t), exact or by the normal approximation with continuity correction.
pub(crate) fn signed_rank_cdf(n: usize, t: f64) -> f64 {
    if n <= EXACT_SIGNED_RANK {
        if t < 0.0 {
            return 0.0;
        }
        signed_rank_law(n)
            .iter()
            .take(t.floor() as usize + 1)
            .sum::<f64>()
            .min(1.0)
    } else {
        let (mean, sd) = signed_rank_moments(n);
        normal_cdf((t - mean + 0.5) / sd)
    }
}
