//! The k-th smallest of very many numbers, without storing them.

/// Maps floats to integers that sort alike (the total order of IEEE 754).
fn to_key(x: f64) -> i64 {
    let bits = x.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn from_key(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// The smallest float x in `[lo, hi]` for which `at_most(x)`, the count of numbers not above x, reaches k.
///
/// Bisection over the floats themselves, so the answer is one of the numbers exactly, after at most 64
/// counts, and no memory is used for the numbers (there are n (n + 1) / 2 Walsh averages).
pub(crate) fn kth(lo: f64, hi: f64, k: u64, at_most: impl Fn(f64) -> u64) -> f64 {
    let (mut lo, mut hi) = (to_key(lo), to_key(hi));
    while lo < hi {
        let mid = (lo & hi) + ((lo ^ hi) >> 1);
        if at_most(from_key(mid)) >= k {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    // Minus zero counts like zero but prints a sign.
    from_key(lo) + 0.0
}

/// The median of the numbers that `at_most` counts, `count` in all.
pub(crate) fn middle(lo: f64, hi: f64, count: u64, at_most: impl Fn(f64) -> u64) -> f64 {
    let upper = kth(lo, hi, count / 2 + 1, &at_most);
    if count % 2 == 1 {
        upper
    } else {
        0.5 * kth(lo, hi, count / 2, &at_most) + 0.5 * upper
    }
}
