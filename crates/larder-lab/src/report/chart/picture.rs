//! The shared part of line charts and bar charts.

use super::svg::{COLOURS, Svg, list};
use crate::model::{Point, Provenance, Series};
use crate::report::number;

/// A picture before its description, with what became of the points.
pub(super) struct Picture {
    pub(super) svg: Svg,
    pub(super) height: f64,
    /// Points that it shows, by series.
    pub(super) shown: Vec<usize>,
}

/// What the title of a point's mark says.
pub(super) fn title(s: &Series, p: &Point, unit: &str, place: &str) -> String {
    let number = |v| number::number(v, unit);
    let interval = if p.hi > p.lo {
        format!(" [{}, {}]", number(p.lo), number(p.hi))
    } else {
        String::new()
    };
    let published = match s.from {
        Provenance::Measured => "",
        Provenance::Published => " (published)",
    };
    let value = number(p.y);
    format!("{}{published}: {value}{interval} at {place}", s.name)
}

/// The form of a series' marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Circle,
    Square,
    Diamond,
    Triangle,
}

impl Form {
    pub(super) fn of(series: usize) -> Self {
        // Shifted by one for each turn of the colours, so that no pair of form and colour returns early.
        match (series + series / COLOURS) % 4 {
            0 => Self::Circle,
            1 => Self::Square,
            2 => Self::Diamond,
            _ => Self::Triangle,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Circle => "circle",
            Self::Square => "square",
            Self::Diamond => "diamond",
            Self::Triangle => "triangle",
        }
    }

    /// The mark at a place: an element's name and its attributes.
    pub(super) fn shape(self, (x, y): (f64, f64), r: f64) -> (&'static str, String) {
        let polygon = |corners: &[(f64, f64)]| {
            let points = corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r));
            ("polygon", format!("points=\"{}\"", list(points)))
        };
        match self {
            Self::Circle => ("circle", format!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\"")),
            Self::Square => polygon(&[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]),
            Self::Diamond => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            Self::Triangle => polygon(&[(0.0, -1.3), (1.2, 1.0), (-1.2, 1.0)]),
        }
    }
}
