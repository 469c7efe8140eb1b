//! Kneedle, as a second opinion.

/// The elbow of a falling curve by Kneedle (Satopaa, Albrecht, Irwin & Raghavan 2011), by index.
///
/// Both axes are brought to 0..1; the elbow is the first local maximum of `(1 - y) - x` after which the
/// difference falls by `sensitivity` times the mean step of x before it rises again. Known faults: it depends
/// on the scale and the range of the axis and it sees the first elbow of several. `None` for fewer than three
/// points, unequal lengths, a flat curve, or no such maximum.
///
/// ```
/// use larder_lab::stats::sweep::kneedle;
/// let xs: Vec<f64> = (1..=16).map(f64::from).collect();
/// let ys: Vec<f64> = xs.iter().map(|x| 1.0 / x).collect();
/// assert_eq!(kneedle(&xs, &ys, 1.0).map(|i| xs[i]), Some(4.0));
/// ```
#[must_use]
pub fn kneedle(xs: &[f64], ys: &[f64], sensitivity: f64) -> Option<usize> {
    let n = xs.len();
    if n < 3 || ys.len() != n || xs.iter().chain(ys).any(|v| !v.is_finite()) {
        return None;
    }
    let range = |v: &[f64]| {
        v.iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| {
                (lo.min(*x), hi.max(*x))
            })
    };
    let ((x0, x1), (y0, y1)) = (range(xs), range(ys));
    if x1 <= x0 || y1 <= y0 {
        return None;
    }
    let difference: Vec<f64> = xs
        .iter()
        .zip(ys)
        .map(|(x, y)| (y1 - y) / (y1 - y0) - (x - x0) / (x1 - x0))
        .collect();
    let step = 1.0 / (n as f64 - 1.0);
    let mut candidate: Option<usize> = None;
    for i in 1..n {
        let peak =
            i + 1 < n && difference[i] >= difference[i - 1] && difference[i] > difference[i + 1];
        if peak {
            candidate = Some(i);
        } else if let Some(top) = candidate
            && difference[i] < difference[top] - sensitivity * step
        {
            return Some(top);
        }
    }
    None
}
