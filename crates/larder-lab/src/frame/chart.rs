//! Charts of lines over a factor.

use super::results::At;
use crate::model::{Axis, Chart, Point, Provenance, Scale, Series};
use crate::stats::Estimate;

/// A chart of lines; those without a point are left out.
pub fn lines(
    title: impl Into<String>,
    (x, x_scale): (&str, Scale),
    (y, y_scale): (&str, Scale),
    series: impl IntoIterator<Item = Series>,
) -> Chart {
    let axis = |label: &str, scale| Axis {
        label: label.to_owned(),
        scale,
    };
    let series = series.into_iter().filter(|s| !s.points.is_empty());
    Chart {
        title: title.into(),
        x: axis(x, x_scale),
        y: axis(y, y_scale),
        series: series.collect(),
        marks: Vec::new(),
        categories: Vec::new(),
    }
}

/// A measured line from points with intervals.
pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, Estimate)>) -> Series {
    let point = |(x, e): (f64, Estimate)| Point {
        x,
        y: e.value,
        lo: e.lo,
        hi: e.hi,
    };
    Series {
        name: name.into(),
        points: points.into_iter().map(point).collect(),
        from: Provenance::Measured,
    }
}

/// The line of a metric over a whole-number factor.
pub fn over<'r, 'a: 'r>(
    name: impl Into<String>,
    cells: impl IntoIterator<Item = At<'r, 'a>>,
    factor: &str,
    metric: &str,
) -> Series {
    let mut points: Vec<(f64, Estimate)> = cells
        .into_iter()
        .filter_map(|at| Some((at.int(factor)? as f64, at.estimate(metric)?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    line(name, points)
}
