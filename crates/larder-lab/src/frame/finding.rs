//! Findings: a question, one sentence, one number with its interval, and a verdict with its subject.

use super::results::At;
use super::words::{ratio, reading, short};
use crate::model::{Cost, Finding, Table};
use crate::stats::Verdict;

/// A finding without a comparison.
pub fn finding(question: impl Into<String>, asked_by: &str, answer: impl Into<String>) -> Finding {
    Finding {
        question: question.into(),
        asked_by: asked_by.to_owned(),
        answer: answer.into(),
        ..Finding::default()
    }
}

impl Finding {
    /// The finding with the numbers behind its sentence.
    #[must_use]
    pub fn with(self, table: Table) -> Self {
        Self {
            table: Some(table),
            ..self
        }
    }
}

/// `larder's pool: 1.80 ns, 0.42 [0.40, 0.45] of mimalloc (4.30 ns).` `called` is how the first is called in the sentence.
pub fn versus(
    question: impl Into<String>,
    called: &str,
    ours: &At<'_, '_>,
    theirs: &At<'_, '_>,
    metric: &str,
    unit: &str,
) -> Option<Finding> {
    let both = (called, theirs.name());
    versus_called(question, both, ours, theirs, metric, unit)
}

/// The same, where the second is not called by its contestant's name either: a library, a state.
pub fn versus_called(
    question: impl Into<String>,
    (called, other_called): (&str, &str),
    ours: &At<'_, '_>,
    theirs: &At<'_, '_>,
    metric: &str,
    unit: &str,
) -> Option<Finding> {
    let c = ours.compare(theirs, metric);
    let (mine, other) = (ours.middle(metric)?, theirs.middle(metric)?);
    let answer = format!(
        "{called}: {} {unit}, {} of {} ({} {unit}).",
        short(mine),
        ratio(&c.ratio?),
        other_called,
        short(other)
    );
    Some(Finding {
        verdict: Some(c.verdict),
        reading: reading(called, c.verdict, other_called),
        ..finding(question, "larder", answer)
    })
}

/// A finding with the verdict of one cell against another, both as the reading calls them; `answer` makes the sentence of the
/// ratio in words and the verdict.
pub fn judged(
    question: impl Into<String>,
    asked_by: &str,
    (called, one): (&str, &At<'_, '_>),
    (other_called, other): (&str, &At<'_, '_>),
    metric: &str,
    answer: impl FnOnce(&str, Verdict) -> String,
) -> Option<Finding> {
    let c = one.compare(other, metric);
    Some(Finding {
        verdict: Some(c.verdict),
        reading: reading(called, c.verdict, other_called),
        ..finding(question, asked_by, answer(&ratio(&c.ratio?), c.verdict))
    })
}

/// A row of the summary: larder's cell beside the best peer and the floor, by their medians.
pub fn cost(
    what: &str,
    unit: &str,
    metric: &str,
    ours: Option<At<'_, '_>>,
    peer: Option<At<'_, '_>>,
    floor: Option<At<'_, '_>>,
) -> Option<Cost> {
    let middle = |at: Option<At<'_, '_>>| at.and_then(|at| at.middle(metric));
    let larder = middle(ours);
    larder.or(middle(peer))?;
    Some(Cost {
        what: what.to_owned(),
        unit: unit.to_owned(),
        larder,
        peer: peer.and_then(|at| Some((at.name().to_owned(), at.middle(metric)?))),
        floor: middle(floor),
        verdict: ours.zip(peer).map(|(a, b)| a.compare(&b, metric).verdict),
    })
}
