//! The special functions that the laws of the estimates need: gamma, incomplete beta, normal, Student, F.
//!
//! Formulas: NIST *Digital Library of Mathematical Functions*, sections 5.11, 7.6, 7.9 and 8.17.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// What Stirling's formula leaves of ln gamma, for x >= 16 (DLMF 5.11.1).
fn stirling_rest(x: f64) -> f64 {
    // Bernoulli numbers over 2k (2k - 1).
    const SERIES: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
        -3617.0 / 122_400.0,
    ];
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    SERIES.iter().rev().fold(0.0, |sum, c| sum * square + c) * inverse
}

/// ln of the gamma function for x > 0: Stirling's formula after shifting x above 16.
fn ln_gamma(x: f64) -> f64 {
    let mut shift = 1.0;
    let mut x = x;
    while x < 16.0 {
        shift *= x;
        x += 1.0;
    }
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + stirling_rest(x) - shift.ln()
}

/// ln of the beta function, without the difference of two large logarithms where one side is large.
fn ln_beta(a: f64, b: f64) -> f64 {
    let (large, small) = (a.max(b), a.min(b));
    if large < 16.0 {
        return ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    }
    let whole = large + small;
    ln_gamma(small) - (large - 0.5) * (small / large).ln_1p() - small * whole.ln()
        + small
        + stirling_rest(large)
        - stirling_rest(whole)
}

/// The regularised incomplete beta function I_x(a, b), `0 <= x <= 1` and a, b > 0.
///
/// Continued fraction (DLMF 8.17.22) by the method of Lentz (1976), on the side where it converges fast.
/// `y` is `1 - x`, given apart so that it need not be rounded.
pub(crate) fn beta_inc(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_fraction(b, a, y, x);
    }
    beta_fraction(a, b, x, y)
}

fn beta_fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    // Whichever of x and y is near 1 has its logarithm taken from the other.
    let ln = |v: f64, rest: f64| if rest < 0.5 { (-rest).ln_1p() } else { v.ln() };
    let front = (a * ln(x, y) + b * ln(y, x) - ln_beta(a, b)).exp() / a;
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..20_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        fraction *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let step = c * d;
        fraction *= step;
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front * fraction
}

/// The normal law's P(Z <= z).
pub(crate) fn normal_cdf(z: f64) -> f64 {
    if z.is_nan() {
        return f64::NAN;
    }
    let x = z.abs() * FRAC_1_SQRT_2;
    let beyond = 0.5 * erfc(x);
    if z > 0.0 { 1.0 - beyond } else { beyond }
}

/// The complementary error function for x >= 0.
fn erfc(x: f64) -> f64 {
    if x > 27.5 {
        return 0.0;
    }
    let scale = (-x * x).exp() / PI.sqrt();
    if x < 2.0 {
        // DLMF 7.6.2: all terms positive.
        let mut term = 2.0 * x;
        let mut sum = term;
        let mut k = 1.0;
        while term > sum * 1e-18 && k < 200.0 {
            term *= 2.0 * x * x / (2.0 * k + 1.0);
            sum += term;
            k += 1.0;
        }
        1.0 - scale * sum
    } else {
        // DLMF 7.9.2, from the far end inwards: x + (1/2)/(x + 1/(x + (3/2)/(x + ...))).
        let depth = 200;
        let tail = (1..=depth)
            .rev()
            .fold(x, |rest, k| x + 0.5 * f64::from(k) / rest);
        scale / tail
    }
}

/// The z with P(Z <= z) = p.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return if p <= 0.0 {
            f64::NEG_INFINITY
        } else if p >= 1.0 {
            f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if p == 0.5 {
        return 0.0;
    }
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    invert(-40.0, 0.0, p, normal_cdf)
}

/// Student's law with `df` degrees of freedom: P(T <= t).
pub(crate) fn student_cdf(t: f64, df: f64) -> f64 {
    let square = t * t;
    if square.is_infinite() {
        return if t > 0.0 { 1.0 } else { 0.0 };
    }
    let beyond = 0.5 * beta_inc(0.5 * df, 0.5, df / (df + square), square / (df + square));
    if t > 0.0 { 1.0 - beyond } else { beyond }
}

/// P(|T| >= |t|): the two-sided p-value, without the loss of digits of `1 - cdf`.
pub(crate) fn student_two_sided(t: f64, df: f64) -> f64 {
    let square = t * t;
    if square.is_infinite() {
        return 0.0;
    }
    beta_inc(0.5 * df, 0.5, df / (df + square), square / (df + square))
}

/// The t with P(T <= t) = p.
pub(crate) fn student_quantile(p: f64, df: f64) -> f64 {
    if p == 0.5 {
        return 0.0;
    }
    if p > 0.5 {
        return -student_quantile(1.0 - p, df);
    }
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let mut low = -1.0;
    while student_cdf(low, df) > p && low > -1e300 {
        low *= 4.0;
    }
    invert(low, 0.0, p, |t| student_cdf(t, df))
}

/// P(F >= f) of Fisher's law with `d1` and `d2` degrees of freedom.
pub(crate) fn fisher_beyond(f: f64, d1: f64, d2: f64) -> f64 {
    if f <= 0.0 {
        return 1.0;
    }
    if f.is_infinite() {
        return 0.0;
    }
    let whole = d1 * f + d2;
    beta_inc(0.5 * d2, 0.5 * d1, d2 / whole, d1 * f / whole)
}

/// Bisection of a growing function down to neighbouring floats.
fn invert(mut lo: f64, mut hi: f64, p: f64, cdf: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..1100 {
        let mid = 0.5 * (lo + hi);
        if mid <= lo || mid >= hi {
            break;
        }
        if cdf(mid) < p {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    0.5 * (lo + hi)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(name: &str) -> Vec<Vec<f64>> {
        let all: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/golden/stats.json")).unwrap();
        serde_json::from_value(all["laws"][name].clone()).unwrap()
    }

    #[track_caller]
    fn near(ours: f64, theirs: f64, tolerance: f64) {
        let scale = theirs.abs().max(1e-300);
        assert!(
            (ours - theirs).abs() <= tolerance * scale,
            "{ours} is not {theirs}: {:e}",
            (ours - theirs).abs() / scale
        );
    }

    #[test]
    fn the_laws_agree_with_scipy() {
        for row in law("normal") {
            near(normal_cdf(row[0]), row[1], 1e-11);
        }
        for row in law("normal_quantile") {
            near(normal_quantile(row[0]), row[1], 1e-12);
        }
        for row in law("student") {
            near(student_cdf(row[0], row[1]), row[2], 1e-9);
        }
        for row in law("student_quantile") {
            near(student_quantile(row[0], row[1]), row[2], 1e-10);
        }
        for row in law("fisher") {
            near(fisher_beyond(row[0], row[1], row[2]), row[3], 1e-9);
        }
    }

    #[test]
    fn gamma_agrees_with_factorials_and_the_root_of_pi() {
        let mut ln_factorial = 0.0;
        for n in 1..60 {
            near(
                ln_gamma(f64::from(n) + 1.0).exp(),
                f64::exp(ln_factorial + f64::from(n).ln()),
                1e-12,
            );
            ln_factorial += f64::from(n).ln();
        }
        near(ln_gamma(0.5).exp(), PI.sqrt(), 1e-14);
    }

    #[test]
    fn the_ends_of_the_range_are_values() {
        assert_eq!(student_cdf(f64::INFINITY, 3.0), 1.0);
        assert_eq!(student_cdf(f64::NEG_INFINITY, 3.0), 0.0);
        assert_eq!(student_two_sided(f64::INFINITY, 3.0), 0.0);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert_eq!(fisher_beyond(f64::INFINITY, 2.0, 3.0), 0.0);
        assert!(normal_cdf(f64::NAN).is_nan());
    }
}
