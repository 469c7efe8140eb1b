//! A chart of lines: values over a number.

use super::axis::{self, Axis};
use super::svg::{Anchor, FONT, Ink, Svg, WIDTH, list, width};
use super::{Form, Picture, title};
use crate::model::{Chart, Point, Provenance, Series};
use crate::report::number;

const PLOT_HEIGHT: f64 = 180.0;
const RIGHT: f64 = 12.0;
/// Height of one row of labels above the plot.
const ROW: f64 = 17.0;
/// Radius of a mark.
const R: f64 = 3.2;
/// Intervals are drawn as a ribbon from so many points on, else as error bars.
const RIBBON_FROM: usize = 7;

/// Where the plot lies in the picture, and its axes.
struct Plot {
    x: Axis,
    y: Axis,
    left: f64,
    top: f64,
}

impl Plot {
    fn x(&self, share: f64) -> f64 {
        self.left + share * (WIDTH - RIGHT - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.y.share(value)) * PLOT_HEIGHT
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x(self.x.share(x)), self.y(y))
    }

    fn bottom(&self) -> f64 {
        self.top + PLOT_HEIGHT
    }

    fn shown(&self, s: &Series) -> Vec<Point> {
        let keep = |p: &&Point| self.x.shows(p.x) && self.y.shows(p.y);
        s.points.iter().filter(keep).copied().collect()
    }

    /// The pieces of a line: it does not run across the gap of a broken axis.
    fn parts<'p>(&self, points: &'p [Point]) -> Vec<&'p [Point]> {
        if self.x.gap().is_none() {
            return vec![points];
        }
        points
            .chunk_by(|a, b| (a.x == 0.0) == (b.x == 0.0))
            .collect()
    }
}

/// A vertical mark with the row in which its label finds room.
struct Note {
    share: f64,
    label: String,
    row: usize,
    leftward: bool,
}

/// Draws a chart of lines.
pub(super) fn draw(chart: &Chart) -> Picture {
    let (mut x, mut y) = axis::axes(chart);
    y.thin(PLOT_HEIGHT, |_| FONT + 6.0);
    let longest = y.ticks().iter().map(|t| width(&y.tick(*t)));
    let left = (longest.fold(0.0, f64::max) + 10.0).clamp(24.0, 110.0);
    x.thin(WIDTH - RIGHT - left, |text| width(text) + 8.0);
    let notes = notes(chart, &x, WIDTH - RIGHT - left);
    let deep = notes.iter().map(|n| n.row + 1).max().unwrap_or(0);
    let plot = Plot {
        x,
        y,
        left,
        top: 26.0 + deep as f64 * ROW,
    };
    let mut svg = Svg::default();
    frame(&mut svg, &plot);
    for n in &notes {
        note(&mut svg, &plot, n);
    }
    let shown: Vec<Vec<Point>> = chart.series.iter().map(|s| plot.shown(s)).collect();
    // Intervals first, then lines, then marks: no interval hides a value.
    for (i, points) in shown.iter().enumerate() {
        for part in plot.parts(points) {
            intervals(&mut svg, &plot, i, part);
        }
    }
    for (i, (s, points)) in chart.series.iter().zip(&shown).enumerate() {
        for part in plot.parts(points).into_iter().filter(|p| p.len() > 1) {
            let class = match s.from {
                Provenance::Measured => "line",
                Provenance::Published => "line published",
            };
            let through = list(part.iter().map(|p| plot.at(p.x, p.y)));
            svg.path(class, Ink::Series(i), &through);
        }
    }
    for (i, (s, points)) in chart.series.iter().zip(&shown).enumerate() {
        for p in points {
            let place = number::tick(p.x, plot.x.unit());
            let said = title(s, p, plot.y.unit(), &place);
            let (name, attributes) = Form::of(i).shape(plot.at(p.x, p.y), R);
            let hollow = s.from == Provenance::Published;
            svg.mark((name, &attributes), i, hollow, &said);
        }
    }
    let height = plot.bottom() + 40.0;
    Picture {
        svg,
        height,
        shown: shown.iter().map(Vec::len).collect(),
    }
}

/// Grid, axes, ticks and labels.
fn frame(svg: &mut Svg, plot: &Plot) {
    let (from, to, bottom) = (plot.left, WIDTH - RIGHT, plot.bottom());
    let label = ("label", Ink::Text);
    svg.text(
        label,
        (2.0, FONT),
        Anchor::Start,
        WIDTH - 4.0,
        plot.y.label(),
    );
    for t in plot.y.ticks() {
        let y = plot.y(*t);
        svg.line("grid", Ink::Grid, (from, y), (to, y));
        let at = (from - 6.0, y + FONT * 0.35);
        svg.text(
            ("tick", Ink::Text),
            at,
            Anchor::End,
            110.0,
            &plot.y.tick(*t),
        );
    }
    svg.line("axis", Ink::Axis, (from, plot.top), (from, bottom));
    svg.line("axis", Ink::Axis, (from, bottom), (to, bottom));
    for t in plot.x.ticks() {
        let x = plot.x(plot.x.share(*t));
        svg.line("axis", Ink::Axis, (x, bottom), (x, bottom + 4.0));
        let text = plot.x.tick(*t);
        // The last label ends with the picture, the others stand under their ticks.
        let half = width(&text) / 2.0;
        let x = x.min(WIDTH - half).max(half);
        let at = (x, bottom + FONT + 4.0);
        svg.text(("tick", Ink::Text), at, Anchor::Middle, 110.0, &text);
    }
    let at = (to, bottom + 2.0 * FONT + 9.0);
    svg.text(label, at, Anchor::End, WIDTH - 4.0, plot.x.label());
    if let Some(gap) = plot.x.gap() {
        let x = plot.x(gap);
        svg.line("gap", Ink::Axis, (x, plot.top), (x, bottom));
    }
}

fn note(svg: &mut Svg, plot: &Plot, n: &Note) {
    let x = plot.x(n.share);
    let base = plot.top - 5.0 - n.row as f64 * ROW;
    svg.line(
        "callout-line",
        Ink::Note,
        (x, base - FONT + 2.0),
        (x, plot.bottom()),
    );
    let (x, anchor) = if n.leftward {
        (x - 4.0, Anchor::End)
    } else {
        (x + 4.0, Anchor::Start)
    };
    let room = if n.leftward { x } else { WIDTH - x };
    svg.text(
        ("callout-text", Ink::Note),
        (x, base),
        anchor,
        room,
        &n.label,
    );
}

fn intervals(svg: &mut Svg, plot: &Plot, series: usize, points: &[Point]) {
    let known = |p: &Point| p.lo.is_finite() && p.hi.is_finite() && p.hi > p.lo;
    if points.len() >= RIBBON_FROM && points.iter().any(known) {
        let end = |p: &Point, v: f64| plot.at(p.x, if known(p) { v } else { p.y });
        let above = points.iter().map(|p| end(p, p.hi));
        let below = points.iter().rev().map(|p| end(p, p.lo));
        svg.area("ribbon", Ink::Series(series), &list(above.chain(below)));
        return;
    }
    for p in points.iter().filter(|p| known(p)) {
        let (x, top) = plot.at(p.x, p.hi);
        let bottom = plot.y(p.lo);
        let ink = Ink::Series(series);
        svg.line("bar", ink, (x, top), (x, bottom));
        for y in [top, bottom] {
            svg.line("bar", ink, (x - 3.5, y), (x + 3.5, y));
        }
    }
}

/// Puts the labels of vertical marks into rows above the plot so that none covers another.
fn notes(chart: &Chart, x: &Axis, room: f64) -> Vec<Note> {
    let mut notes: Vec<Note> = chart
        .marks
        .iter()
        .filter(|(at, _)| x.shows(*at))
        .map(|(at, label)| Note {
            share: x.share(*at),
            label: label.clone(),
            row: 0,
            leftward: false,
        })
        .collect();
    let spans: Vec<(f64, f64, f64)> = notes
        .iter_mut()
        .map(|n| {
            let at = n.share * room;
            let long = width(&n.label) + 8.0;
            n.leftward = at + long > room && at > room / 2.0;
            if n.leftward {
                (at, at - long, at)
            } else {
                (at, at, at + long)
            }
        })
        .collect();
    for (n, row) in notes.iter_mut().zip(rows(&spans)) {
        n.row = row;
    }
    notes
}

/// Rows, from 0 next to the plot, for labels given as (line, left end, right end) in units.
///
/// A label stands above every label whose line runs up through it, and never beside one that it covers.
fn rows(spans: &[(f64, f64, f64)]) -> Vec<usize> {
    let mut rows = vec![0; spans.len()];
    // Each turn settles at least one label; lines that cross each other's labels both ways end at the cap.
    for _ in 0..spans.len() {
        for i in 0..spans.len() {
            let (at, from, to) = spans[i];
            for j in (0..spans.len()).filter(|j| *j != i) {
                let (line, left, right) = spans[j];
                let crossed = line > from && line < to && line != at;
                let covered = rows[i] == rows[j] && i < j && from < right && left < to;
                if (crossed && rows[i] <= rows[j]) || (covered && !crossed) {
                    rows[i] = (rows[j] + 1).min(spans.len());
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn labels_do_not_cover_each_other_or_stand_in_a_line() {
        assert_eq!(rows(&[(0.0, 0.0, 50.0), (60.0, 60.0, 90.0)]), [0, 0]);
        // The second line would run through the first label in a lower row.
        assert_eq!(rows(&[(0.0, 0.0, 50.0), (30.0, 30.0, 60.0)]), [1, 0]);
        // A chain, the last one leftward at the right edge.
        let r = rows(&[(0.0, 0.0, 50.0), (30.0, 30.0, 80.0), (100.0, 60.0, 100.0)]);
        assert!(r[0] > r[1] && r[1] != r[2], "{r:?}");
        // Two marks at one place.
        let r = rows(&[(10.0, 10.0, 50.0), (10.0, 10.0, 50.0)]);
        assert_ne!(r[0], r[1]);
        // Each line runs through the other's label: no order helps, but it ends, and bounded.
        let r = rows(&[(0.0, 0.0, 50.0), (30.0, -20.0, 30.0)]);
        assert!(r.iter().all(|row| *row <= 2), "{r:?}");
    }
}
