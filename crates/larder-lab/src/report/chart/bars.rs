//! A chart of categories: lying bars, so that every name has a whole line.

use super::axis;
use super::picture::{Picture, title};
use super::svg::{Anchor, FONT, Ink, Svg, WIDTH, width};
use crate::model::{Chart, Point, Provenance, Series};
use crate::report::number;

const BAR: f64 = 14.0;
const LEFT: f64 = 8.0;
const TOP: f64 = 26.0;
/// Between a bar and its number.
const SPACE: f64 = 6.0;

/// The category of a point, if it is one of the chart's.
pub(super) fn category(chart: &Chart, p: &Point) -> Option<usize> {
    let known = p.x >= 0.0 && p.x.fract() == 0.0 && p.x < chart.categories.len() as f64;
    known.then_some(p.x as usize)
}

/// Draws a chart of bars.
pub(super) fn draw(chart: &Chart) -> Picture {
    let mut scale = axis::values(chart);
    let unit = scale.unit().to_owned();
    let keep = |p: &&Point| category(chart, p).is_some() && scale.shows(p.y);
    let shown: Vec<Vec<Point>> = chart
        .series
        .iter()
        .map(|s| s.points.iter().filter(keep).copied().collect())
        .collect();
    let points = || shown.iter().flatten();
    let numbers = points().map(|p| width(&number::number(p.y, &unit)));
    // The numbers have a column of their own at the right edge, beside the longest interval.
    let room = numbers.fold(0.0, f64::max).min(120.0) + SPACE;
    let right = WIDTH - room;
    scale.thin(right - LEFT, |text| width(text) + 10.0);
    let place = |v: f64| LEFT + scale.share(v) * (right - LEFT);
    let zero = if scale.shows(0.0) { place(0.0) } else { LEFT };

    let mut svg = Svg::default();
    let mut body = Svg::default();
    svg.label(scale.label());
    let mut y = TOP;
    for (k, name) in chart.categories.iter().enumerate() {
        let rows: Vec<(usize, &Series, &Point)> = chart
            .series
            .iter()
            .zip(&shown)
            .enumerate()
            .flat_map(|(i, (s, points))| points.iter().map(move |p| (i, s, p)))
            .filter(|(_, _, p)| p.x as usize == k)
            .collect();
        if rows.is_empty() {
            continue;
        }
        let marks = chart.marks.iter().filter(|(x, _)| *x == k as f64);
        let name = marks.fold(name.clone(), |name, (_, m)| format!("{name} ({m})"));
        let strong = ("category", Ink::Strong);
        body.text(strong, (LEFT, y + FONT), Anchor::Start, WIDTH - LEFT, &name);
        y += FONT + 7.0;
        for (i, s, p) in rows {
            bar(
                &mut body,
                (i, s, p),
                (zero, place(p.y), y),
                &title(s, p, &unit, &name),
            );
            if p.lo.is_finite() && p.hi.is_finite() && p.hi > p.lo {
                let (lo, hi, middle) = (place(p.lo), place(p.hi), y + BAR / 2.0);
                body.line("whisker", Ink::Strong, (lo, middle), (hi, middle));
                for x in [lo, hi] {
                    body.line("whisker", Ink::Strong, (x, middle - 3.0), (x, middle + 3.0));
                }
            }
            let text = number::number(p.y, &unit);
            let at = (WIDTH - 2.0, y + BAR / 2.0 + FONT * 0.35);
            body.text(("tick", Ink::Text), at, Anchor::End, 130.0, &text);
            y += BAR + 3.0;
        }
        y += 7.0;
    }
    if points().next().is_some() {
        for t in scale.ticks() {
            let x = place(*t);
            svg.line("grid", Ink::Grid, (x, TOP), (x, y));
            let text = scale.tick(*t);
            let half = width(&text) / 2.0;
            let at = (x.max(half), y + FONT + 4.0);
            svg.text(("tick", Ink::Text), at, Anchor::Middle, 110.0, &text);
        }
        svg.line("axis", Ink::Axis, (zero, TOP), (zero, y));
    }
    svg.append(body);
    Picture {
        svg,
        height: y.max(TOP + 40.0) + FONT + 10.0,
        shown: shown.iter().map(Vec::len).collect(),
    }
}

fn bar(svg: &mut Svg, (i, s, _): (usize, &Series, &Point), at: (f64, f64, f64), title: &str) {
    let (zero, end, y) = at;
    let (from, to) = (zero.min(end), zero.max(end));
    // A bar without a length is a line: the reader must see that the value is there.
    let long = (to - from).max(1.0);
    let attributes = format!("x=\"{from:.1}\" y=\"{y:.1}\" width=\"{long:.1}\" height=\"{BAR}\"");
    let hollow = s.from == Provenance::Published;
    svg.mark(("rect", &attributes), i, hollow, title);
}
