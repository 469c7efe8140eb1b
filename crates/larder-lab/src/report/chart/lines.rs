//! A chart of lines: values over a number.

use super::axis::{self, Axis};
use super::picture::{Form, Picture, title};
use super::svg::{Anchor, FONT, Ink, Svg, WIDTH, list, width};
use crate::model::{Chart, Point, Provenance, Series};
use crate::report::number;

const PLOT_HEIGHT: f64 = 180.0;
const RIGHT: f64 = 12.0;
/// Height of one row of labels above the plot.
const ROW: f64 = 17.0;
/// Radius of a mark.
const R: f64 = 3.2;
/// Intervals are drawn as a ribbon from this many points on, else as error bars.
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
    callouts(&mut svg, &plot, &notes);
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
    svg.label(plot.y.label());
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
    svg.text(
        ("label", Ink::Text),
        at,
        Anchor::End,
        WIDTH - 4.0,
        plot.x.label(),
    );
    if let Some(gap) = plot.x.gap() {
        let x = plot.x(gap);
        svg.line("gap", Ink::Axis, (x, plot.top), (x, bottom));
    }
}

/// The vertical marks: all lines first, so that none runs through a label.
fn callouts(svg: &mut Svg, plot: &Plot, notes: &[Note]) {
    let base = |n: &Note| plot.top - 5.0 - n.row as f64 * ROW;
    for n in notes {
        let x = plot.x(n.share);
        let from = (x, base(n) - FONT + 2.0);
        svg.line("callout-line", Ink::Note, from, (x, plot.bottom()));
    }
    for n in notes {
        let x = plot.x(n.share);
        let (x, anchor, room) = if n.leftward {
            (x - 4.0, Anchor::End, x - 4.0)
        } else {
            (x + 4.0, Anchor::Start, WIDTH - x - 4.0)
        };
        let style = ("callout-text", Ink::Note);
        svg.text(style, (x, base(n)), anchor, room, &n.label);
    }
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
    let spans: Vec<(f64, f64)> = notes
        .iter_mut()
        .map(|n| {
            let at = n.share * room;
            let long = width(&n.label) + 12.0;
            n.leftward = at + long > room && at > room / 2.0;
            if n.leftward {
                ((at - long).max(0.0), at)
            } else {
                (at, (at + long).min(room))
            }
        })
        .collect();
    // A line runs down beside the labels that were placed before its own: from the right those that stand
    // right of their lines, then from the left the others.
    let mut order: Vec<usize> = (0..notes.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&notes[*a], &notes[*b]);
        let by_share = a.share.total_cmp(&b.share);
        let by_side = a.leftward.cmp(&b.leftward);
        by_side.then(if a.leftward {
            by_share
        } else {
            by_share.reverse()
        })
    });
    let ordered: Vec<(f64, f64)> = order.iter().map(|i| spans[*i]).collect();
    for (i, row) in order.into_iter().zip(rows(&ordered)) {
        notes[i].row = row;
    }
    notes
}

/// Rows, from 0 next to the plot, for labels given as (left end, right end) in units: the lowest where
/// each is free.
fn rows(spans: &[(f64, f64)]) -> Vec<usize> {
    let mut rows: Vec<Vec<(f64, f64)>> = Vec::new();
    spans
        .iter()
        .map(|(from, to)| {
            let free = |row: &Vec<(f64, f64)>| row.iter().all(|(l, r)| from >= r || l >= to);
            let row = rows.iter().position(free).unwrap_or(rows.len());
            if row == rows.len() {
                rows.push(Vec::new());
            }
            rows[row].push((*from, *to));
            row
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis as AxisModel, Scale};

    #[test]
    fn no_label_covers_another() {
        let axis = |label: &str| AxisModel {
            label: label.to_owned(),
            scale: Scale::Log,
        };
        let marks = [
            (33.0, "33 pages: single-page TLB flushes end"),
            (256.0, "L2: 256 pages"),
            (256.0, "the same place"),
            (4096.0, "here the time is worse than unbuffered"),
            (8192.0, "L3: 8192 pages"),
            (1.0, "one"),
        ];
        let chart = Chart {
            title: String::new(),
            x: axis("pages"),
            y: axis("cost"),
            series: Vec::new(),
            marks: marks.map(|(x, label)| (x, label.to_owned())).to_vec(),
            categories: Vec::new(),
        };
        let (x, _) = axis::axes(&chart);
        let notes = notes(&chart, &x, 330.0);
        assert_eq!(notes.len(), marks.len());
        let span = |n: &Note| {
            let (at, long) = (n.share * 330.0, width(&n.label));
            if n.leftward {
                (at - long, at)
            } else {
                (at, at + long)
            }
        };
        for (i, a) in notes.iter().enumerate() {
            assert!(a.row < 5, "{}: row {}", a.label, a.row);
            for b in notes[i + 1..].iter().filter(|b| b.row == a.row) {
                let ((a_from, a_to), (b_from, b_to)) = (span(a), span(b));
                assert!(
                    a_to <= b_from || b_to <= a_from,
                    "{} covers {}",
                    a.label,
                    b.label
                );
            }
        }
    }
}
