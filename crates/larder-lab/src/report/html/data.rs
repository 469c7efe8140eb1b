//! The calculator's data: one JSON block that cannot end its element.

use serde_json::json;

use crate::calc::{Field, Quantity};
use crate::report::Document;
use crate::report::text::clean;

/// The JSON of the calculator: machines to choose from, labels, formulas.
///
/// Whatever could end a script element or start a comment in one is written as an escape.
///
/// # Errors
/// What the JSON writer reports.
pub(super) fn block(doc: &Document) -> Result<String, serde_json::Error> {
    let fields: Vec<_> = Field::TIMINGS
        .into_iter()
        .map(|f| json!({ "key": f.key(), "label": f.label() }))
        .collect();
    let quantities: Vec<_> = Quantity::ALL
        .into_iter()
        .map(|q| {
            json!({
                "key": q.key(),
                "label": q.label(),
                "formula": q.formula(),
                "negative": capital(q.negative_means()),
            })
        })
        .collect();
    let mut presets = doc.presets();
    for p in &mut presets {
        p.label = clean(&p.label);
        p.detail = clean(&p.detail);
    }
    let text = serde_json::to_string(&json!({
        "presets": presets,
        "fields": fields,
        "quantities": quantities,
    }))?;
    Ok(text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calc::{Submission, Timings};

    #[test]
    fn names_cannot_end_the_block() {
        let doc = Document {
            submissions: vec![Submission {
                machine: "</script><script>alert(1)//<!--".into(),
                os: "&".into(),
                timings: Timings::new(1.0, 2.0, None, 3.0).unwrap(),
                date: "2026-11-21".into(),
            }],
            ..Document::default()
        };
        let text = block(&doc).unwrap();
        assert!(!text.contains('<') && !text.contains('>') && !text.contains('&'));
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            back["presets"][0]["label"],
            "</script><script>alert(1)//<!--"
        );
    }
}
