//! A table as the page shows it.

use askama::Template;

use crate::model::{Chart, Table, Value};
use crate::report::{number, text, value};
use crate::stats::Estimate;

/// A heading.
pub(super) struct Head {
    pub(super) text: String,
    pub(super) numeric: bool,
}

impl Head {
    pub(super) fn new(text: &str, numeric: bool) -> Self {
        Self {
            text: text.to_owned(),
            numeric,
        }
    }
}

/// A cell, taken apart for its styles.
#[derive(Default)]
pub(super) struct CellView {
    pub(super) text: String,
    pub(super) interval: String,
    /// A remark below the text.
    pub(super) under: String,
    pub(super) chip: String,
    pub(super) chip_class: &'static str,
    pub(super) class: &'static str,
}

impl CellView {
    pub(super) fn new(text: impl Into<String>, class: &'static str) -> Self {
        Self {
            text: text.into(),
            class,
            ..Self::default()
        }
    }

    /// An estimate in its two parts.
    fn estimate(e: &Estimate, unit: &str) -> Self {
        let p = number::printed(e, unit);
        Self {
            interval: p.interval,
            ..Self::new(p.value, "num")
        }
    }
}

/// A table ready for its template; `{{ table|safe }}` draws it.
#[derive(Template, Default)]
#[template(path = "table.html")]
pub(super) struct TableView {
    pub(super) title: String,
    /// False where the title already stands above.
    pub(super) show_title: bool,
    pub(super) heads: Vec<Head>,
    pub(super) rows: Vec<Vec<CellView>>,
    pub(super) notes: Vec<String>,
    pub(super) published: bool,
    /// Whether the page folds it away at first.
    pub(super) folded: bool,
}

/// Rows from which a table starts folded.
const FOLD_FROM: usize = 40;

fn cell(v: &Value, numeric_column: bool) -> CellView {
    let num = "num";
    match v {
        Value::Empty => CellView::default(),
        Value::Text(t) => {
            let class = match t.chars().count() {
                41.. => "wrap",
                _ if numeric_column => num,
                ..=24 => "fit",
                _ => "",
            };
            CellView::new(t, class)
        }
        Value::Count(n) => CellView::new(number::count(*n), num),
        Value::Number(x, unit) => CellView::new(number::number(*x, unit), num),
        Value::Estimate(e, unit) => CellView::estimate(e, unit),
        Value::Ratio(e, v) => CellView {
            chip: number::verdict(v),
            chip_class: text::verdict_class(v),
            ..CellView::estimate(e, "x")
        },
        Value::Published(x, unit) => CellView::new(number::published(*x, unit), "num published"),
    }
}

/// A number of a chart: three digits are all that the picture shows.
fn charted(v: &Value) -> CellView {
    let (x, unit, class) = match v {
        Value::Estimate(e, unit) => (e.value, unit, "num"),
        Value::Number(x, unit) => (*x, unit, "num"),
        Value::Published(x, unit) => (*x, unit, "num published"),
        other => return cell(other, true),
    };
    let text = number::number(x, unit);
    let interval = match v {
        Value::Estimate(e, _) if e.value.is_finite() && e.lo.is_finite() && e.hi.is_finite() => {
            // The unit stands once where all three have the same.
            let bare = |v: f64| {
                let end = number::number(v, unit);
                let split = |t: &str| t.rfind(|c: char| c.is_ascii_digit()).map_or(0, |i| i + 1);
                let (own, whole) = (&end[split(&end)..], &text[split(&text)..]);
                if own == whole {
                    end[..split(&end)].to_owned()
                } else {
                    end.clone()
                }
            };
            format!("[{}, {}]", bare(e.lo), bare(e.hi))
        }
        _ => String::new(),
    };
    CellView {
        interval,
        ..CellView::new(text, class)
    }
}

impl TableView {
    /// The numbers of a chart, for the fold beneath it.
    pub(super) fn of_chart(c: &Chart) -> Self {
        let table = value::chart_table(c);
        let mut view = Self::new(&table, false);
        for (shown, row) in view.rows.iter_mut().zip(&table.rows) {
            for (cell, v) in shown.iter_mut().zip(row).skip(1) {
                *cell = charted(v);
            }
        }
        view
    }

    fn published_note(&self) -> &'static str {
        value::PUBLISHED_NOTE
    }

    /// Prepares a table; `show_title` is false where its title already stands above it.
    pub(super) fn new(t: &Table, show_title: bool) -> Self {
        let numeric: Vec<bool> = (0..t.columns.len())
            .map(|i| t.rows.iter().filter_map(|r| r.get(i)).any(text::is_number))
            .collect();
        let folded = t.long || t.rows.len() > FOLD_FROM;
        Self {
            title: t.title.clone(),
            show_title: show_title && !folded && !t.title.is_empty(),
            heads: (t.columns.iter().zip(&numeric))
                .map(|(text, numeric)| Head::new(text, *numeric))
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
            folded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charts_numbers_have_three_digits() {
        let published = charted(&Value::Published(2.007_751_937_984_496, String::new()));
        assert_eq!(
            (published.text.as_str(), published.class),
            ("2.01", "num published")
        );
        let e = Estimate {
            value: 1234.567,
            lo: 999.4,
            hi: 1235.2,
            n: 9,
            level: 0.95,
        };
        let measured = charted(&Value::Estimate(e, "ns".into()));
        assert_eq!(measured.text, "1.23 \u{b5}s");
        assert_eq!(measured.interval, "[999 ns, 1.24]");
        assert_eq!(charted(&Value::Empty).text, "");
    }
}
