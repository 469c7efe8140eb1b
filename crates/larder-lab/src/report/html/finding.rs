//! Findings and charts as the page shows them.

use askama::Template;

use super::table::TableView;
use crate::model::{Chart, Finding};
use crate::report::chart::{self, LegendEntry};
use crate::report::text;

/// Characters of an answer that stand unfolded.
const BRIEF: usize = 240;

/// A chart ready for its template; `{{ chart|safe }}` draws it.
#[derive(Template)]
#[template(path = "chart.html")]
pub(super) struct ChartView {
    title: String,
    svg: String,
    pub(super) marks: usize,
    legend: Vec<LegendEntry>,
    left_out: Vec<String>,
    table: TableView,
}

impl ChartView {
    /// Draws a chart; `None` where there is no point to draw. `id` must be unique in the page.
    pub(super) fn new(c: &Chart, id: &str) -> Option<Self> {
        let drawing = chart::draw(c, id);
        (drawing.marks > 0).then(|| Self {
            title: c.title.clone(),
            svg: drawing.svg,
            marks: drawing.marks,
            legend: drawing.legend,
            left_out: drawing.left_out,
            table: TableView::of_chart(c),
        })
    }
}

/// A finding ready for its template; `{{ finding|safe }}` draws it.
#[derive(Template)]
#[template(path = "finding.html")]
pub(super) struct FindingView {
    question: String,
    asked_by: String,
    answer: String,
    /// The whole answer where `answer` is its beginning.
    whole: String,
    reading: String,
    class: &'static str,
    table: Option<TableView>,
    pub(super) chart: Option<ChartView>,
}

impl FindingView {
    pub(super) fn new(f: &Finding, id: &str) -> Self {
        let answer = brief(&f.answer);
        let verdict = f.verdict.as_ref();
        Self {
            question: f.question.clone(),
            asked_by: match f.asked_by.as_str() {
                "larder" | "the lab" => String::new(),
                by => by.to_owned(),
            },
            whole: if answer == f.answer {
                String::new()
            } else {
                f.answer.clone()
            },
            answer,
            // A bare verdict ("faster") has no subject, so none stands beside an answer without a reading.
            reading: f.reading.clone(),
            class: verdict.map_or("plain", text::verdict_class),
            table: f
                .table
                .as_ref()
                .filter(|t| !t.rows.is_empty())
                .map(|t| TableView::new(t, true)),
            chart: f.chart.as_ref().and_then(|c| ChartView::new(c, id)),
        }
    }

    /// What the finding's fold has; empty without one.
    fn more(&self) -> String {
        let parts = [
            (!self.whole.is_empty(), "the whole answer"),
            (self.table.is_some(), "its numbers"),
            (self.chart.is_some(), "its chart"),
        ];
        let parts: Vec<&str> = parts.iter().filter(|p| p.0).map(|p| p.1).collect();
        parts.join(", ")
    }
}

/// Whether the question comes from a source outside this project.
pub(super) fn from_a_source(f: &Finding) -> bool {
    !matches!(f.asked_by.as_str(), "" | "larder" | "the lab")
}

/// The first sentence of a long answer, or the whole of a short one.
fn brief(answer: &str) -> String {
    if answer.chars().count() <= BRIEF {
        return answer.to_owned();
    }
    let sentence = answer
        .match_indices(". ")
        .map(|(at, _)| &answer[..=at])
        // An abbreviation or a number ends nothing: the next sentence begins with a capital.
        .find(|s| {
            let next = answer[s.len()..].trim_start().chars().next();
            s.chars().count() >= 30 && next.is_some_and(char::is_uppercase)
        });
    text::shortened(sentence.unwrap_or(answer), BRIEF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_begins_with_its_first_sentence() {
        assert_eq!(brief("No. It is not."), "No. It is not.");
        let first = "The pool takes 0.05 of the time, e.g. here, at 1. 5 pages.";
        assert_eq!(brief(&format!("{first} {}", "More. ".repeat(60))), first);
        let endless = "word ".repeat(100);
        assert_eq!(brief(&endless).chars().last(), Some('\u{2026}'));
        let f = Finding {
            answer: endless.clone(),
            ..Finding::default()
        };
        let page = FindingView::new(&f, "f").render().unwrap();
        assert!(page.contains(&endless), "{page}");
    }
}
