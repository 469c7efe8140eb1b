//! A small writer of SVG: elements in the page's colours, text escaped, whole names as titles.

use std::fmt::Write as _;

use crate::report::text::shortened;

/// Width of every picture in its own units.
///
/// A phone shows it at nine tenths of that, so that text of [`FONT`] units is some 11.5 pixels high there.
pub(super) const WIDTH: f64 = 380.0;
/// Size of text.
pub(super) const FONT: f64 = 13.0;
/// Width of an average character at [`FONT`], on the large side.
const CHARACTER: f64 = 7.7;

/// Series before colours repeat; from then on the form of the marks tells them apart.
pub(super) const COLOURS: usize = 8;

/// The light theme's colours of series.
const FALLBACK: [&str; COLOURS] = [
    "#0b62c4", "#c2410c", "#0f766e", "#9333ea", "#b91c4b", "#4d7c0f", "#7c5c00", "#475569",
];

/// What a thing is drawn with: a variable of the page's style sheet, and the light theme's value as
/// fallback, so that a picture cut out of the page keeps its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Grid,
    Axis,
    Text,
    Strong,
    Note,
    Paper,
    Series(usize),
}

impl Ink {
    pub(super) fn paint(self) -> String {
        match self {
            Self::Grid => "var(--grid,#e3e6ea)".to_owned(),
            Self::Axis => "var(--axis,#8a929c)".to_owned(),
            Self::Text => "var(--muted,#57606a)".to_owned(),
            Self::Strong => "var(--ink,#16191d)".to_owned(),
            Self::Note => "var(--note,#8a6d00)".to_owned(),
            Self::Paper => "var(--card,#ffffff)".to_owned(),
            Self::Series(i) => {
                let i = i % FALLBACK.len();
                format!("var(--s{i},{})", FALLBACK[i])
            }
        }
    }
}

/// Where a text begins at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Width of a text at [`FONT`], estimated.
pub(super) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// Escapes text for an element or an attribute.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML knows no other control characters, not even escaped.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with a tenth of a unit.
fn at(v: f64) -> String {
    let text = format!("{v:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Coordinates as SVG writes them.
pub(super) fn list(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let points: Vec<String> = points
        .into_iter()
        .map(|(x, y)| format!("{},{}", at(x), at(y)))
        .collect();
    points.join(" ")
}

/// A picture in the making.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
}

impl Svg {
    /// A line between two places.
    pub(super) fn line(&mut self, class: &str, ink: Ink, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\"/>",
            at(from.0),
            at(from.1),
            at(to.0),
            at(to.1),
            ink.paint()
        );
    }

    /// An open line through places.
    pub(super) fn path(&mut self, class: &str, ink: Ink, points: &str) {
        let _ = writeln!(
            self.body,
            "<polyline class=\"{class}\" points=\"{points}\" fill=\"none\" stroke=\"{}\"/>",
            ink.paint()
        );
    }

    /// A filled area.
    pub(super) fn area(&mut self, class: &str, ink: Ink, points: &str) {
        let _ = writeln!(
            self.body,
            "<polygon class=\"{class}\" points=\"{points}\" fill=\"{}\" stroke=\"none\"/>",
            ink.paint()
        );
    }

    /// A shape for one number, with a title that says it; `shape` is a name and its attributes.
    pub(super) fn mark(&mut self, shape: (&str, &str), series: usize, hollow: bool, title: &str) {
        let ink = Ink::Series(series).paint();
        let (class, fill, stroke) = if hollow {
            ("mark hollow", Ink::Paper.paint(), ink)
        } else {
            ("mark", ink, "none".to_owned())
        };
        let (name, attributes) = shape;
        let _ = writeln!(
            self.body,
            "<{name} class=\"{class}\" {attributes} fill=\"{fill}\" stroke=\"{stroke}\"><title>{}</title></{name}>",
            escape(title)
        );
    }

    /// What an axis shows, above the plot.
    pub(super) fn label(&mut self, text: &str) {
        let at = (2.0, FONT);
        self.text(("label", Ink::Text), at, Anchor::Start, WIDTH - 4.0, text);
    }

    /// Text; what does not fit into `room` is cut and stands whole in a title.
    pub(super) fn text(
        &mut self,
        (class, ink): (&str, Ink),
        (x, y): (f64, f64),
        anchor: Anchor,
        room: f64,
        text: &str,
    ) {
        let most = (room / CHARACTER).floor().max(1.0) as usize;
        let shown = shortened(text, most);
        let title = if shown == text {
            String::new()
        } else {
            format!("<title>{}</title>", escape(text))
        };
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" font-size=\"{FONT}\"{anchor} fill=\"{}\">{title}{}</text>",
            at(x),
            at(y),
            ink.paint(),
            escape(&shown)
        );
    }

    /// Puts what another picture holds above what this one has.
    pub(super) fn append(&mut self, other: Self) {
        self.body.push_str(&other.body);
    }

    /// The whole picture with its description for screen readers.
    pub(super) fn finish(self, height: f64, id: &str, description: &str) -> String {
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-labelledby=\"{id}-t\" xmlns=\"http://www.w3.org/2000/svg\"><title id=\"{id}-t\">{}</title>\n{}</svg>\n",
            at(height),
            escape(description),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_text_and_what_is_cut_stands_in_a_title() {
        let mut svg = Svg::default();
        let name = "</text><script>alert(1)</script> & more";
        svg.text(("tick", Ink::Text), (1.0, 2.25), Anchor::End, 40.0, name);
        svg.mark(("circle", "r=\"1\""), 9, true, "1 < \"2\"");
        let out = svg.finish(100.0, "c1", "what <it> is");
        assert!(!out.contains("<script"), "{out}");
        assert!(
            out.contains(
                "<title>&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; more</title>"
            ),
            "{out}"
        );
        assert!(out.contains("fill=\"var(--muted,#57606a)\""), "{out}");
        assert!(
            out.contains("stroke=\"var(--s1,#c2410c)\"><title>1 &lt; &quot;2&quot;</title>"),
            "{out}"
        );
        assert!(
            out.contains("viewBox=\"0 0 380 100\" role=\"img\""),
            "{out}"
        );
    }
}
