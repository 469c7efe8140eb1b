//! The goals of all runs, by state.

use super::table::{CellView, Head, TableView};
use crate::model::{Goal, GoalState};
use crate::report::{Document, number, text};

/// Goals that were not measured for one reason.
pub(super) struct Unmeasured {
    pub(super) why: String,
    pub(super) goals: Vec<String>,
}

fn all(doc: &Document) -> impl Iterator<Item = (&str, &Goal)> {
    doc.runs
        .iter()
        .flat_map(|(run, a)| a.goals.iter().map(|g| (run.experiment.as_str(), g)))
}

/// The goals that were missed, are undecided, and hold.
pub(super) fn tables(doc: &Document) -> [Option<TableView>; 3] {
    [
        ("Goals missed", GoalState::Missed),
        ("Goals undecided", GoalState::Open),
        ("Goals that hold", GoalState::Met),
    ]
    .map(|(title, state)| table(doc, title, state))
}

/// The goals that were not measured, by reason: dozens of them must not hide the others.
pub(super) fn unmeasured(doc: &Document) -> Vec<Unmeasured> {
    let mut reasons: Vec<Unmeasured> = Vec::new();
    for (experiment, g) in all(doc).filter(|(_, g)| g.state == GoalState::Skipped) {
        let line = format!(
            "{experiment}: {}{}: {}",
            g.what,
            if g.against.is_empty() {
                String::new()
            } else {
                format!(", against {}", g.against)
            },
            g.bound
        );
        match reasons.iter_mut().find(|u| u.why == g.note) {
            Some(u) => u.goals.push(line),
            None => reasons.push(Unmeasured {
                why: g.note.clone(),
                goals: vec![line],
            }),
        }
    }
    reasons
}

fn table(doc: &Document, title: &str, state: GoalState) -> Option<TableView> {
    let goals: Vec<(&str, &Goal)> = all(doc).filter(|(_, g)| g.state == state).collect();
    let heads = vec![
        Head::new("experiment", false),
        Head::new("what", false),
        Head::new("goal", false),
        Head::new("measured", true),
    ];
    let rows = goals.iter().map(|(experiment, g)| row(experiment, g));
    (!goals.is_empty()).then(|| TableView {
        title: title.to_owned(),
        heads,
        rows: rows.collect(),
        ..TableView::default()
    })
}

fn row(experiment: &str, g: &Goal) -> Vec<CellView> {
    let measured = g.measured.as_ref().map(|e| number::printed(e, &g.unit));
    let (value, interval) = measured.map_or_else(
        || ("not measured".to_owned(), String::new()),
        |p| (p.value, p.interval),
    );
    let note = match text::held(g).as_str() {
        "" => g.note.clone(),
        held if g.note.is_empty() => format!("memory held: {held}"),
        held => format!("{}; memory held: {held}", g.note),
    };
    vec![
        CellView::new(experiment, "fit"),
        CellView {
            under: note,
            ..CellView::new(&g.what, "wrap goal")
        },
        CellView {
            under: match g.against.as_str() {
                "" => String::new(),
                other => format!("against {other}"),
            },
            ..CellView::new(&g.bound, "bound")
        },
        CellView {
            interval,
            ..CellView::new(value, "num")
        },
    ]
}
