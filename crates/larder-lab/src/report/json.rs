//! The report as JSON, for scripts.

use serde_json::{Value, json};

use super::document::Document;
use super::summary::Summary;

/// Version of the layout; it grows when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// The report as JSON: `schema`, `summary`, `runs` (each with `run` and `analysis`) and `submissions`.
///
/// Numbers that JSON cannot hold (NaN, infinities) are `null`.
///
/// ```
/// use larder_lab::report::{Document, json};
///
/// assert_eq!(json(&Document::default())["schema"], 1);
/// ```
#[must_use]
pub fn json(doc: &Document) -> Value {
    let part =
        |v: serde_json::Result<Value>| v.unwrap_or_else(|e| json!({ "error": e.to_string() }));
    let runs: Vec<Value> = doc
        .runs
        .iter()
        .map(|(run, analysis)| {
            json!({
                "run": part(serde_json::to_value(run)),
                "analysis": part(serde_json::to_value(analysis)),
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "summary": part(serde_json::to_value(Summary::of(doc))),
        "runs": runs,
        "submissions": part(serde_json::to_value(&doc.submissions)),
    })
}
