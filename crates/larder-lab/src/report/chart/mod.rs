//! Charts as SVG: drawn by plotters, coloured by the page's style sheet.
//!
//! A chart has one mark for each point that its axes can show, a ribbon or error bars for intervals,
//! hollow marks for published numbers, and labelled vertical lines for what the text speaks of.

mod axis;
mod draw;
mod theme;

use super::ReportError;
use super::number;
use crate::model::{Chart, Provenance};

/// Series before colours repeat; from then on the form of the marks tells them apart.
const COLOURS: usize = 8;

/// A drawn chart with what stands around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drawing {
    /// The picture, ready to stand in a page.
    pub(super) svg: String,
    /// One entry per series.
    pub(super) legend: Vec<LegendEntry>,
    /// Marks in the picture: one per point, less those that are left out.
    pub(super) marks: usize,
    /// Sentences about points that the axes cannot show.
    pub(super) left_out: Vec<String>,
}

/// A series in the legend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LegendEntry {
    /// Its name.
    pub(super) name: String,
    /// Number of its colour.
    pub(super) colour: usize,
    /// The form of its marks: `circle`, `square`, `diamond` or `triangle`.
    pub(super) form: &'static str,
    /// Whether its numbers are published ones.
    pub(super) published: bool,
}

/// Draws a chart; `id` must be unique in the page.
///
/// # Errors
/// What the drawing library reports.
pub(super) fn draw(chart: &Chart, id: &str) -> Result<Drawing, ReportError> {
    let (x, y) = axis::axes(chart);
    let raw = draw::raw(chart, &x, &y).map_err(|why| ReportError::Chart {
        title: chart.title.clone(),
        why,
    })?;
    let mut titles = Vec::new();
    let mut left_out = Vec::new();
    for s in &chart.series {
        let before = titles.len();
        for p in s.points.iter().filter(|p| x.shows(p.x) && y.shows(p.y)) {
            let unit = y.unit();
            let interval = if p.hi > p.lo {
                format!(
                    " [{}, {}]",
                    number::number(p.lo, unit),
                    number::number(p.hi, unit)
                )
            } else {
                String::new()
            };
            let published = match s.from {
                Provenance::Measured => "",
                Provenance::Published => " (published)",
            };
            titles.push(format!(
                "{}{published}: {}{interval} at {}",
                s.name,
                number::number(p.y, unit),
                number::tick(p.x, x.unit()),
            ));
        }
        let missing = s.points.len() - (titles.len() - before);
        if missing > 0 {
            left_out.push(format!(
                "{missing} of {} points of '{}' have no place on these axes (not finite, or not above zero on a logarithmic axis); the table has them.",
                s.points.len(),
                s.name
            ));
        }
    }
    let legend = chart
        .series
        .iter()
        .enumerate()
        .map(|(i, s)| LegendEntry {
            name: s.name.clone(),
            colour: i % COLOURS,
            form: Form::of(i).name(),
            published: s.from == Provenance::Published,
        })
        .collect();
    Ok(Drawing {
        svg: theme::apply(&raw, id, &describe(chart), &titles),
        legend,
        marks: titles.len(),
        left_out,
    })
}

/// What a reader who does not see the picture is told.
fn describe(chart: &Chart) -> String {
    let names: Vec<&str> = chart.series.iter().map(|s| s.name.as_str()).collect();
    format!(
        "{}. Line chart of {} by {}. Series: {}. The numbers are in the table below.",
        chart.title,
        chart.y.label,
        chart.x.label,
        names.join(", ")
    )
}

/// The form of a series' marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Circle,
    Square,
    Diamond,
    Triangle,
}

impl Form {
    fn of(series: usize) -> Self {
        // Shifted by one for each turn of the colours, so that no pair of form and colour returns early.
        match (series + series / COLOURS) % 4 {
            0 => Self::Circle,
            1 => Self::Square,
            2 => Self::Diamond,
            _ => Self::Triangle,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Circle => "circle",
            Self::Square => "square",
            Self::Diamond => "diamond",
            Self::Triangle => "triangle",
        }
    }
}

#[cfg(test)]
mod tests;
