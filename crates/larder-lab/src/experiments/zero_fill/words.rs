//! How numbers stand in sentences and tables.

use crate::model::{Finding, Value};
use crate::report::number;
use crate::stats::{Estimate, Verdict};

use super::look::{Compared, scaled};

/// Who asked what is asked here.
pub(super) const NAT: &str = "Nat! 2003";

/// Nanoseconds with their interval.
pub(super) fn ns(e: &Estimate) -> String {
    number::estimate(e, "ns")
}

/// A share (0 to 1) as percent with its interval.
pub(super) fn percent(e: &Estimate) -> String {
    number::estimate(&scaled(e, 100.0), "%")
}

/// A ratio with its interval.
pub(super) fn times(e: &Estimate) -> String {
    number::estimate(e, "x")
}

/// A comparison: the ratio and its word.
pub(super) fn compared(c: &Compared) -> String {
    format!("{} ({})", times(&c.ratio), number::verdict(&c.verdict))
}

/// A cell of a table for an estimate that may be missing.
pub(super) fn value(e: Option<Estimate>, unit: &str) -> Value {
    e.map_or(Value::Empty, |e| Value::Estimate(e, unit.to_owned()))
}

/// A cell of a table for a comparison that may be missing.
pub(super) fn ratio(c: Option<Compared>) -> Value {
    c.map_or(Value::Empty, |c| Value::Ratio(c.ratio, c.verdict))
}

/// Text in a table.
pub(super) fn text(t: &str) -> Value {
    Value::Text(t.to_owned())
}

/// A finding.
pub(super) fn finding(
    question: &str,
    asked_by: &str,
    answer: String,
    verdict: Option<Verdict>,
) -> Finding {
    Finding {
        question: question.to_owned(),
        asked_by: asked_by.to_owned(),
        answer,
        verdict,
        ..Finding::default()
    }
}

/// Joins with commas and an `and`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
