//! The drawing itself, in sentinel colours that the theme turns into the page's.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::{COLOURS, Form};
use crate::model::{Chart, Point, Provenance, Series};
use crate::report::text::shortened;

/// Units of the picture per pixel of its natural size: plotters places by whole units,
/// and a line placed by whole pixels is ragged.
const FINE: u32 = 4;
/// Natural size.
const WIDTH: u32 = 920;
const PLOT_HEIGHT: u32 = 340;
/// Characters of a label in the picture; the legend and the tables have the whole of it.
const LABEL: usize = 42;
const FONT: u32 = 13;
/// Intervals are drawn as a ribbon from so many points on, else as error bars.
const RIBBON_FROM: usize = 7;

/// What a colour of the raw picture stands for: the first byte; the second is the colour of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Grid = 0xd1,
    Axis = 0xd2,
    Text = 0xd3,
    NoteLine = 0xd4,
    NoteText = 0xd5,
    Paper = 0xd6,
    Gap = 0xd7,
    Line = 0xe1,
    Ribbon = 0xe2,
    Mark = 0xe3,
    Bar = 0xe4,
    HollowMark = 0xe5,
    PublishedLine = 0xe6,
}

impl Ink {
    pub(super) const ALL: [Self; 13] = [
        Self::Grid,
        Self::Axis,
        Self::Text,
        Self::NoteLine,
        Self::NoteText,
        Self::Paper,
        Self::Gap,
        Self::Line,
        Self::Ribbon,
        Self::Mark,
        Self::Bar,
        Self::HollowMark,
        Self::PublishedLine,
    ];

    fn colour(self, series: usize) -> RGBColor {
        RGBColor(self as u8, (series % COLOURS) as u8, 0x5a)
    }

    fn stroke(self, series: usize, tenths: u32) -> ShapeStyle {
        self.colour(series).stroke_width(tenths * FINE / 10)
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

fn font(size: u32) -> (&'static str, f64) {
    // The backend divides the size by 1.24 before it writes it.
    ("sans-serif", f64::from(size * FINE) * 1.24)
}

/// A vertical mark with the row in which its label finds room.
struct Note {
    x: f64,
    share: f64,
    label: String,
    row: u32,
    leftward: bool,
}

/// Draws a chart in sentinel colours.
pub(super) fn raw(chart: &Chart, x: &Axis, y: &Axis) -> Result<String, String> {
    let left = left_margin(y);
    let notes = notes(chart, x, left);
    let deep = notes.iter().map(|n| n.row + 1).max().unwrap_or(0);
    let top = 30 + deep * 18;
    let bottom = 46;
    let height = PLOT_HEIGHT + top + bottom;
    let mut svg = String::new();
    {
        let area =
            SVGBackend::with_string(&mut svg, (WIDTH * FINE, height * FINE)).into_drawing_area();
        let layout = Layout { left, top, bottom };
        picture(&area, chart, (x, y), &notes, &layout).map_err(|e| e.to_string())?;
        area.present().map_err(|e| e.to_string())?;
    }
    Ok(svg)
}

struct Layout {
    left: u32,
    top: u32,
    bottom: u32,
}

/// Room for the longest tick label of the vertical axis.
fn left_margin(y: &Axis) -> u32 {
    use plotters::coord::ranged1d::{Ranged, ValueFormatter};
    let longest = y
        .key_points(10)
        .iter()
        .map(|t| y.format_ext(t).chars().count())
        .max()
        .unwrap_or(0);
    (longest as u32 * 8 + 14).clamp(38, 120)
}

/// Puts the labels of vertical marks into rows above the plot so that none covers another.
fn notes(chart: &Chart, x: &Axis, left: u32) -> Vec<Note> {
    let width = f64::from(WIDTH - left - 14);
    let mut notes: Vec<Note> = chart
        .marks
        .iter()
        .filter(|(at, _)| x.shows(*at))
        .map(|(at, label)| Note {
            x: *at,
            share: x.share(*at),
            label: shortened(label, LABEL),
            row: 0,
            leftward: false,
        })
        .collect();
    let spans: Vec<(f64, f64, f64)> = notes
        .iter_mut()
        .map(|n| {
            let at = n.share * width;
            let long = n.label.chars().count() as f64 * 6.6 + 10.0;
            n.leftward = at + long > width;
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

/// Rows, from 0 next to the plot, for labels given as (line, left end, right end) in pixels.
///
/// A label stands above every label whose line runs up through it, and never beside one that it covers.
fn rows(spans: &[(f64, f64, f64)]) -> Vec<u32> {
    let mut rows = vec![0_u32; spans.len()];
    // Each turn settles at least one label; lines that cross each other's labels both ways end at the cap.
    for _ in 0..spans.len() {
        for i in 0..spans.len() {
            let (at, from, to) = spans[i];
            for j in (0..spans.len()).filter(|j| *j != i) {
                let (line, left, right) = spans[j];
                let crossed = line > from && line < to && line != at;
                let covered = rows[i] == rows[j] && i < j && from < right && left < to;
                if (crossed && rows[i] <= rows[j]) || (covered && !crossed) {
                    rows[i] = (rows[j] + 1).min(spans.len() as u32);
                }
            }
        }
    }
    rows
}

type DrawResult = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn picture<'a>(
    area: &Area<'a>,
    chart: &Chart,
    (x, y): (&Axis, &Axis),
    notes: &[Note],
    layout: &Layout,
) -> DrawResult {
    let (grey, soft) = (Ink::Text.colour(0), Ink::NoteText.colour(0));
    let text = TextStyle::from(font(FONT)).color(&grey);
    let mut plot: Plot<'a> = ChartBuilder::on(area)
        .margin_top(layout.top * FINE)
        .margin_right(14 * FINE)
        .x_label_area_size(layout.bottom * FINE)
        .y_label_area_size(layout.left * FINE)
        .build_cartesian_2d(x.clone(), y.clone())?;
    plot.configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(Ink::Grid.stroke(0, 10))
        .axis_style(Ink::Axis.stroke(0, 10))
        .set_all_tick_mark_size(5 * FINE)
        .label_style(text.clone())
        .draw()?;
    let start = text.clone().pos(Pos::new(HPos::Left, VPos::Top));
    area.draw(&Text::new(
        shortened(y.label(), 2 * LABEL),
        (4 * FINE as i32, 4 * FINE as i32),
        start,
    ))?;
    let (w, h) = area.dim_in_pixel();
    let end = text.pos(Pos::new(HPos::Right, VPos::Bottom));
    let corner = (w as i32 - 14 * FINE as i32, h as i32 - 4 * FINE as i32);
    area.draw(&Text::new(shortened(x.label(), 2 * LABEL), corner, end))?;
    gap(&mut plot, x, y)?;
    for note in notes {
        vertical(area, &mut plot, note, y, layout)?;
    }
    // Ribbons first, then lines, then marks: no interval hides a value.
    for (i, s) in chart.series.iter().enumerate() {
        for part in parts(&shown(s, x, y), x) {
            intervals(&mut plot, i, part)?;
        }
    }
    for (i, s) in chart.series.iter().enumerate() {
        for part in parts(&shown(s, x, y), x) {
            lines(&mut plot, i, s.from, part)?;
        }
    }
    for (i, s) in chart.series.iter().enumerate() {
        marks(&mut plot, i, s.from, &shown(s, x, y))?;
    }
    if !chart.series.iter().any(|s| !shown(s, x, y).is_empty()) {
        let middle = TextStyle::from(font(FONT + 2))
            .color(&soft)
            .pos(Pos::new(HPos::Center, VPos::Center));
        let centre = (w as i32 / 2, h as i32 / 2);
        area.draw(&Text::new("no points to draw", centre, middle))?;
    }
    Ok(())
}

fn shown(s: &Series, x: &Axis, y: &Axis) -> Vec<Point> {
    let keep = |p: &&Point| x.shows(p.x) && y.shows(p.y);
    s.points.iter().filter(keep).copied().collect()
}

/// The pieces of a line: it does not run across the gap of a broken axis.
fn parts<'p>(points: &'p [Point], x: &Axis) -> Vec<&'p [Point]> {
    if x.gap().is_none() {
        return vec![points];
    }
    points
        .chunk_by(|a, b| (a.x == 0.0) == (b.x == 0.0))
        .collect()
}

/// The broken axis between zero and the first logarithm.
fn gap(plot: &mut Plot<'_>, x: &Axis, y: &Axis) -> DrawResult {
    let Some(at) = x.gap() else { return Ok(()) };
    plot.draw_series(std::iter::once(across(at, y, Ink::Gap.stroke(0, 10))))?;
    Ok(())
}

/// A line from the bottom of the plot to its top.
fn across(at: f64, y: &Axis, style: ShapeStyle) -> PathElement<(f64, f64)> {
    use plotters::coord::ranged1d::Ranged;
    let range = y.range();
    PathElement::new(vec![(at, range.start), (at, range.end)], style)
}

fn vertical(
    area: &Area<'_>,
    plot: &mut Plot<'_>,
    note: &Note,
    y: &Axis,
    layout: &Layout,
) -> DrawResult {
    plot.draw_series(std::iter::once(across(
        note.x,
        y,
        Ink::NoteLine.stroke(0, 13),
    )))?;
    let (w, _) = area.dim_in_pixel();
    let width = w - (layout.left + 14) * FINE;
    let x = (layout.left * FINE) as i32 + (f64::from(width) * note.share).round() as i32;
    // The lowest row lies next to the plot.
    let y = ((layout.top - 5 - note.row * 18) * FINE) as i32;
    let rise = (layout.top * FINE) as i32;
    area.draw(&PathElement::new(
        vec![(x, rise), (x, y - 6 * FINE as i32)],
        Ink::NoteLine.stroke(0, 13),
    ))?;
    let (side, shift) = if note.leftward {
        (HPos::Right, -5 * FINE as i32)
    } else {
        (HPos::Left, 5 * FINE as i32)
    };
    let soft = Ink::NoteText.colour(0);
    let style = TextStyle::from(font(FONT - 1))
        .color(&soft)
        .pos(Pos::new(side, VPos::Bottom));
    area.draw(&Text::new(note.label.clone(), (x + shift, y), style))
}

fn intervals(plot: &mut Plot<'_>, series: usize, points: &[Point]) -> DrawResult {
    let bounded: Vec<&Point> = points
        .iter()
        .filter(|p| p.hi > p.lo && p.lo.is_finite() && p.hi.is_finite())
        .collect();
    if bounded.len() >= RIBBON_FROM && bounded.len() == points.len() {
        let there = points.iter().map(|p| (p.x, p.hi));
        let back = points.iter().rev().map(|p| (p.x, p.lo));
        let edge: Vec<_> = there.chain(back).collect();
        let style = Ink::Ribbon.colour(series).filled();
        plot.draw_series(std::iter::once(Polygon::new(edge, style)))?;
        return Ok(());
    }
    let style = Ink::Bar.stroke(series, 15);
    let cap = 4 * FINE as i32;
    for p in bounded {
        plot.draw_series(std::iter::once(PathElement::new(
            vec![(p.x, p.lo), (p.x, p.hi)],
            style,
        )))?;
        for end in [p.lo, p.hi] {
            plot.draw_series(std::iter::once(
                EmptyElement::at((p.x, end)) + PathElement::new(vec![(-cap, 0), (cap, 0)], style),
            ))?;
        }
    }
    Ok(())
}

fn lines(plot: &mut Plot<'_>, series: usize, from: Provenance, points: &[Point]) -> DrawResult {
    if points.len() < 2 {
        return Ok(());
    }
    let ink = match from {
        Provenance::Measured => Ink::Line.stroke(series, 20),
        Provenance::Published => Ink::PublishedLine.stroke(series, 15),
    };
    let path: Vec<_> = points.iter().map(|p| (p.x, p.y)).collect();
    plot.draw_series(std::iter::once(PathElement::new(path, ink)))?;
    Ok(())
}

/// One mark per point. A published one is hollow: paper inside, colour at its edge.
fn marks(plot: &mut Plot<'_>, series: usize, from: Provenance, points: &[Point]) -> DrawResult {
    let tenths = match points.len() {
        0..=18 => 36,
        19..=48 => 28,
        _ => 21,
    };
    let radius = tenths * FINE as i32 / 10;
    let form = Form::of(series);
    for p in points {
        match from {
            Provenance::Measured => {
                let style = Ink::Mark.colour(series).filled();
                mark(plot, p, form, radius, style)?;
            }
            Provenance::Published => {
                mark(plot, p, form, radius, Ink::Paper.colour(0).filled())?;
                mark(plot, p, form, radius, Ink::HollowMark.stroke(series, 16))?;
            }
        }
    }
    Ok(())
}

fn mark(plot: &mut Plot<'_>, p: &Point, form: Form, r: i32, style: ShapeStyle) -> DrawResult {
    let at = EmptyElement::at((p.x, p.y));
    let corners = match form {
        Form::Circle => {
            plot.draw_series(std::iter::once(at + Circle::new((0, 0), r, style)))?;
            return Ok(());
        }
        Form::Square => vec![(-r, -r), (r, -r), (r, r), (-r, r)],
        Form::Diamond => vec![
            (0, -r * 13 / 10),
            (r * 13 / 10, 0),
            (0, r * 13 / 10),
            (-r * 13 / 10, 0),
        ],
        Form::Triangle => vec![(0, -r * 13 / 10), (r * 12 / 10, r), (-r * 12 / 10, r)],
    };
    if style.filled {
        plot.draw_series(std::iter::once(at + Polygon::new(corners, style)))?;
    } else {
        let closed: Vec<_> = corners.iter().chain(corners.first()).copied().collect();
        plot.draw_series(std::iter::once(at + PathElement::new(closed, style)))?;
    }
    Ok(())
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
