//! Turns the raw picture's sentinel colours into classes and variables of the page's style sheet.

use std::fmt::Write as _;

use super::draw::Ink;

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

/// What a sentinel becomes: class, and the colour's variable with the light theme's value as fallback,
/// so that a picture cut out of the page keeps its colours.
fn look(ink: Ink, series: usize) -> (&'static str, String) {
    let of_series = || format!("var(--s{series},{})", FALLBACK[series % FALLBACK.len()]);
    match ink {
        Ink::Grid => ("grid", "var(--grid,#e3e6ea)".to_owned()),
        Ink::Axis => ("axis", "var(--axis,#8a929c)".to_owned()),
        Ink::Text => ("tick", "var(--muted,#57606a)".to_owned()),
        Ink::NoteLine => ("callout-line", "var(--note,#8a6d00)".to_owned()),
        Ink::NoteText => ("callout-text", "var(--note,#8a6d00)".to_owned()),
        Ink::Paper => ("paper", "var(--card,#ffffff)".to_owned()),
        Ink::Gap => ("gap", "var(--axis,#8a929c)".to_owned()),
        Ink::Line => ("line", of_series()),
        Ink::Ribbon => ("ribbon", of_series()),
        Ink::Mark => ("mark", of_series()),
        Ink::Bar => ("bar", of_series()),
        Ink::HollowMark => ("mark hollow", of_series()),
        Ink::PublishedLine => ("line published", of_series()),
    }
}

/// The light theme's colours of series.
const FALLBACK: [&str; super::COLOURS] = [
    "#0b62c4", "#c2410c", "#0f766e", "#9333ea", "#b91c4b", "#4d7c0f", "#7c5c00", "#475569",
];

/// The sentinel in one line of the raw picture.
fn sentinel(line: &str) -> Option<(Ink, usize, &str)> {
    for (at, _) in line.match_indices("\"#") {
        let Some(hex) = line.get(at + 1..at + 8) else {
            continue;
        };
        let byte = |i: usize| u8::from_str_radix(hex.get(i..i + 2)?, 16).ok();
        let (Some(role), Some(series), Some(0x5a)) = (byte(1), byte(3), byte(5)) else {
            continue;
        };
        if let Some(ink) = Ink::ALL.into_iter().find(|i| *i as u8 == role) {
            return Some((ink, usize::from(series), hex));
        }
    }
    None
}

/// The picture in the page's colours, with its description for screen readers and a title on each mark.
///
/// `titles` are in the order in which the marks were drawn.
pub(super) fn apply(raw: &str, id: &str, description: &str, titles: &[String]) -> String {
    let mut out = String::with_capacity(raw.len() * 5 / 4);
    let mut titles = titles.iter();
    for line in raw.lines() {
        if let Some(rest) = line.strip_prefix("<svg") {
            let view = rest
                .split("viewBox=\"")
                .nth(1)
                .and_then(|r| r.split('"').next())
                .unwrap_or("0 0 100 100");
            let _ = writeln!(
                out,
                "<svg class=\"chart\" viewBox=\"{view}\" role=\"img\" aria-labelledby=\"{id}-t\" xmlns=\"http://www.w3.org/2000/svg\"><title id=\"{id}-t\">{}</title>",
                escape(description)
            );
            continue;
        }
        let tag = line.strip_prefix('<').filter(|t| !t.starts_with('/'));
        let (Some(tag), Some((ink, series, hex))) = (tag, sentinel(line)) else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        let (class, colour) = look(ink, series);
        let name_end = tag.find(' ').unwrap_or(tag.len());
        let (name, attributes) = tag.split_at(name_end);
        let attributes = attributes
            .replace(hex, &colour)
            .replace(" opacity=\"1\"", "");
        let is_mark = matches!(ink, Ink::Mark | Ink::HollowMark);
        match (
            is_mark.then(|| titles.next()).flatten(),
            attributes.strip_suffix("/>"),
        ) {
            (Some(title), Some(open)) => {
                let _ = writeln!(
                    out,
                    "<{name} class=\"{class}\"{open}><title>{}</title></{name}>",
                    escape(title)
                );
            }
            _ => {
                let _ = writeln!(out, "<{name} class=\"{class}\"{attributes}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_become_classes_and_variables() {
        let raw = "<svg width=\"8\" height=\"4\" viewBox=\"0 0 8 4\" xmlns=\"x\">\n<circle cx=\"1\" opacity=\"1\" fill=\"#E3015A\" stroke=\"none\"/>\n<text fill=\"#D3005A\">\na &lt; b\n</text>\n</svg>\n";
        let out = apply(raw, "c1", "what <it> \"is\"", &["1 < 2".to_owned()]);
        assert!(out.contains("viewBox=\"0 0 8 4\" role=\"img\""), "{out}");
        assert!(out.contains("what &lt;it&gt; &quot;is&quot;"), "{out}");
        assert!(
            out.contains("<circle class=\"mark\" cx=\"1\" fill=\"var(--s1,#c2410c)\" stroke=\"none\"><title>1 &lt; 2</title></circle>"),
            "{out}"
        );
        assert!(
            out.contains("<text class=\"tick\" fill=\"var(--muted,#57606a)\">"),
            "{out}"
        );
    }
}
