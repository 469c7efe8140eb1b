//! Charts as SVG, in the colours of the page's style sheet.
//!
//! A chart of lines shows values over a number, a chart of bars values by name. Either has one mark for each point that its axes can show, a ribbon or error bars for intervals,
//! hollow marks for published numbers, and labelled vertical lines for values that the text names.

mod axis;
mod bars;
mod lines;
mod picture;
mod svg;

use self::picture::Form;
use self::svg::{Anchor, COLOURS, Ink};
use crate::model::{Chart, Provenance};

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
    /// The form of its marks: `circle`, `square`, `diamond`, `triangle`, or `bar`.
    pub(super) form: &'static str,
    /// Whether its numbers are published ones.
    pub(super) published: bool,
}

/// Draws a chart; `id` must be unique in the page.
#[must_use]
pub(super) fn draw(chart: &Chart, id: &str) -> Drawing {
    let mut picture = if chart.categories.is_empty() {
        lines::draw(chart)
    } else {
        bars::draw(chart)
    };
    let marks = picture.shown.iter().sum();
    if marks == 0 {
        let (ink, middle) = (("callout-text", Ink::Note), svg::WIDTH / 2.0);
        let at = (middle, picture.height / 2.0);
        let text = "no points to draw";
        picture.svg.text(ink, at, Anchor::Middle, svg::WIDTH, text);
    }
    let missing = chart.series.iter().zip(&picture.shown);
    let left_out = missing
        .filter(|(s, shown)| s.points.len() > **shown)
        .map(|(s, shown)| {
            format!(
                "{} of {} points of '{}' have no place on these axes (not finite, or not above zero on a logarithmic axis); the table has them.",
                s.points.len() - shown,
                s.points.len(),
                s.name
            )
        })
        .collect();
    let legend = chart
        .series
        .iter()
        .enumerate()
        .map(|(i, s)| LegendEntry {
            name: s.name.clone(),
            colour: i % COLOURS,
            form: if chart.categories.is_empty() {
                Form::of(i).name()
            } else {
                "bar"
            },
            published: s.from == Provenance::Published,
        })
        .collect();
    Drawing {
        svg: picture.svg.finish(picture.height, id, &describe(chart)),
        legend,
        marks,
        left_out,
    }
}

/// The text that stands in for the picture.
fn describe(chart: &Chart) -> String {
    let names: Vec<&str> = chart.series.iter().map(|s| s.name.as_str()).collect();
    let kind = if chart.categories.is_empty() {
        "Line chart"
    } else {
        "Bar chart"
    };
    format!(
        "{}. {kind} of {} by {}. Series: {}. The numbers are in the table below.",
        chart.title,
        chart.y.label,
        chart.x.label,
        names.join(", ")
    )
}

#[cfg(test)]
mod tests;
