//! Distances between samples, and what a sample stands for. A few terms of series instead of the C library's functions, which
//! lie in a library that every preloaded process would have to load.

use crate::heap::stacks::mix;

/// Parts of an object in which objects are counted.
pub(super) const PARTS: f64 = 65536.0;

/// The random word of a number: splitmix64.
pub(in crate::heap) fn random(number: u64) -> u64 {
    mix(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The distance of a number, in bytes: geometric, with this mean. At least 1.
#[inline(never)]
pub(in crate::heap) fn gap(number: u64, mean: f64) -> usize {
    let random = random(number);
    // Of 53 bits, and never 0.
    let uniform = ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let gap = -ln(uniform) * mean;
    // A whole number that is reached by a block of `size` bytes with the probability `1 - exp(-size / mean)`.
    (gap as usize).saturating_add(1)
}

/// What a sample of so many bytes stands for: objects in [`PARTS`], and bytes.
pub(super) fn weight(size: usize, interval: usize) -> (u64, u64) {
    let size = size.max(1);
    let objects = 1.0 / sampled(size as f64 / interval as f64);
    (
        (objects * PARTS + 0.5) as u64,
        (objects * size as f64 + 0.5) as u64,
    )
}

/// `1 - exp(-x)` for positive `x`.
fn sampled(x: f64) -> f64 {
    if x > 40.0 {
        return 1.0;
    }
    // Halved until the series is short, and doubled again: 1 - exp(-2h) = p * (2 - p).
    let (mut h, mut halved) = (x, 0);
    while h > 0.125 {
        h *= 0.5;
        halved += 1;
    }
    let mut p = 0.0;
    for n in (1..=8).rev() {
        p = h / f64::from(n) * (1.0 - p);
    }
    for _ in 0..halved {
        p *= 2.0 - p;
    }
    p
}

/// The natural logarithm of a positive normal number.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | (1023 << 52));
    if mantissa > core::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // 2 * artanh(s)
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let mut sum = 0.0;
    for n in (0..9).rev() {
        sum = sum * s * s + 1.0 / f64::from(2 * n + 1);
    }
    f64::from(exponent) * core::f64::consts::LN_2 + 2.0 * s * sum
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_series_agree_with_the_standard_library() {
        for i in 1..20_000 {
            let x = f64::from(i) / 7.0;
            for x in [x, 1.0 / x, x * 1e-9] {
                assert!(
                    (ln(x) - x.ln()).abs() <= 1e-12 * x.ln().abs().max(1.0),
                    "ln {x}"
                );
                let right = -(-x).exp_m1();
                assert!((sampled(x) / right - 1.0).abs() < 1e-11, "{x}");
            }
        }
        assert_eq!(ln(1.0), 0.0);
    }

    /// The mean of the distances, and how often blocks of a size are hit: within five standard errors.
    #[test]
    fn distances_are_geometric() {
        const COUNT: u64 = 200_000;
        let mean = 1000.0;
        let gaps: Vec<usize> = (0..COUNT).map(|n| gap(n, mean)).collect();
        let sum: usize = gaps.iter().sum();
        let off = (sum as f64 / COUNT as f64 - mean - 0.5).abs();
        assert!(off < 5.0 * mean / (COUNT as f64).sqrt(), "{off}");
        for size in [1, 100, 1000, 5000] {
            let p = sampled(size as f64 / mean);
            let hit = gaps.iter().filter(|gap| **gap <= size).count() as f64 / COUNT as f64;
            let error = (p * (1.0 - p) / COUNT as f64).sqrt();
            assert!((hit - p).abs() < 5.0 * error + 1e-9, "{size}: {hit} {p}");
        }
    }

    #[test]
    fn a_sample_stands_for_the_inverse_of_its_chance() {
        assert_eq!(weight(1 << 30, 1 << 10), (65536, 1 << 30));
        let (objects, bytes) = weight(16, 1 << 19);
        assert!((objects as f64 / PARTS - 32768.5).abs() < 1e-3);
        assert_eq!(bytes, (1 << 19) + 8);
        assert_eq!(weight(0, 1), weight(1, 1));
    }
}
