//! A chart on one line of text per series.

use super::number;
use super::text::clean;
use crate::model::{Chart, Provenance, Scale, Series};

const LEVELS: [char; 8] = [
    '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}',
];

/// Fewer points than this have no shape to show.
const FEWEST: usize = 5;

/// One line per series with enough points: its shape, its ends along x, its lowest point.
#[must_use]
pub(super) fn lines(chart: &Chart, width: usize) -> Vec<String> {
    let (_, unit) = number::split_label(&chart.y.label);
    let (_, x_unit) = number::split_label(&chart.x.label);
    let finite = |s: &&Series| s.points.iter().filter(|p| p.y.is_finite()).count() >= FEWEST;
    let series: Vec<&Series> = chart.series.iter().filter(finite).collect();
    let names: Vec<String> = series
        .iter()
        .map(|s| match s.from {
            Provenance::Measured => clean(&s.name),
            Provenance::Published => format!("{} (published)", clean(&s.name)),
        })
        .collect();
    let longest = names
        .iter()
        .map(|n| n.chars().count())
        .max()
        .unwrap_or(0)
        .min(28);
    let room = width.saturating_sub(longest + 44).clamp(8, 40);
    series
        .into_iter()
        .zip(names)
        .map(|(s, name)| {
            let name: String = name.chars().take(longest).collect();
            let Some(low) = lowest(s) else {
                return format!("{name:longest$}  no points");
            };
            format!(
                "{name:longest$}  {}  lowest {} at {}",
                shape(s, chart.y.scale, room),
                number::number(low.1, &unit),
                number::tick(low.0, &x_unit),
            )
        })
        .collect()
}

fn lowest(s: &Series) -> Option<(f64, f64)> {
    s.points
        .iter()
        .filter(|p| p.y.is_finite())
        .min_by(|a, b| a.y.total_cmp(&b.y))
        .map(|p| (p.x, p.y))
}

fn shape(s: &Series, scale: Scale, room: usize) -> String {
    let ys: Vec<f64> = s
        .points
        .iter()
        .map(|p| match scale {
            Scale::Log if p.y > 0.0 => p.y.ln(),
            Scale::Log => f64::NAN,
            Scale::Linear => p.y,
        })
        .filter(|y| y.is_finite())
        .collect();
    let lo = ys.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = ys.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let n = ys.len().min(room);
    (0..n)
        .map(|i| {
            let y = ys[i * ys.len() / n];
            let share = if hi > lo { (y - lo) / (hi - lo) } else { 0.0 };
            LEVELS[((share * 7.0).round() as usize).min(7)]
        })
        .collect()
}
