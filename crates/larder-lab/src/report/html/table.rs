//! A table as the page shows it.

use askama::Template;

use crate::model::{Table, Value};
use crate::report::{number, text, value};

/// A heading.
pub(super) struct Head {
    pub(super) text: String,
    pub(super) numeric: bool,
}

/// A cell, taken apart for its styles.
#[derive(Default)]
pub(super) struct CellView {
    pub(super) text: String,
    pub(super) interval: String,
    pub(super) chip: String,
    pub(super) chip_class: &'static str,
    pub(super) class: &'static str,
}

/// A table ready for its template; `{{ table|safe }}` draws it.
#[derive(Template)]
#[template(path = "table.html")]
pub(super) struct TableView {
    pub(super) title: String,
    /// False where the title already stands above.
    pub(super) show_title: bool,
    pub(super) heads: Vec<Head>,
    pub(super) rows: Vec<Vec<CellView>>,
    pub(super) notes: Vec<String>,
    pub(super) published: bool,
    pub(super) published_note: &'static str,
    /// Whether the page folds it away at first.
    pub(super) folded: bool,
}

/// Rows from which a table starts folded.
const FOLD_FROM: usize = 40;

fn cell(v: &Value, numeric_column: bool) -> CellView {
    let num = "num";
    match v {
        Value::Empty => CellView::default(),
        Value::Text(t) => CellView {
            text: t.clone(),
            class: if t.chars().count() > 40 {
                "wrap"
            } else if numeric_column {
                num
            } else if t.chars().count() <= 24 {
                "fit"
            } else {
                ""
            },
            ..CellView::default()
        },
        Value::Count(n) => CellView {
            text: number::count(*n),
            class: num,
            ..CellView::default()
        },
        Value::Number(x, unit) => CellView {
            text: number::number(*x, unit),
            class: num,
            ..CellView::default()
        },
        Value::Estimate(e, unit) => {
            let p = number::printed(e, unit);
            CellView {
                text: p.value,
                interval: p.interval,
                class: num,
                ..CellView::default()
            }
        }
        Value::Ratio(e, v) => {
            let p = number::printed(e, "x");
            CellView {
                text: p.value,
                interval: p.interval,
                chip: number::verdict(v),
                chip_class: text::verdict_class(v),
                class: num,
            }
        }
        Value::Published(x, unit) => CellView {
            text: number::published(*x, unit),
            class: "num published",
            ..CellView::default()
        },
    }
}

impl TableView {
    /// Prepares a table; `show_title` is false where its title already stands above it.
    pub(super) fn new(t: &Table, show_title: bool) -> Self {
        let numeric: Vec<bool> = (0..t.columns.len())
            .map(|i| t.rows.iter().filter_map(|r| r.get(i)).any(text::is_number))
            .collect();
        let folded = t.long || t.rows.len() > FOLD_FROM;
        Self {
            title: t.title.clone(),
            show_title: show_title && !folded && !t.title.is_empty(),
            heads: t
                .columns
                .iter()
                .zip(&numeric)
                .map(|(text, numeric)| Head {
                    text: text.clone(),
                    numeric: *numeric,
                })
                .collect(),
            rows: t
                .rows
                .iter()
                .map(|row| {
                    row.iter()
                        .enumerate()
                        .map(|(i, v)| cell(v, numeric.get(i).copied().unwrap_or(false)))
                        .collect()
                })
                .collect(),
            notes: t.notes.clone(),
            published: value::has_published(t),
            published_note: value::PUBLISHED_NOTE,
            folded,
        }
    }
}
