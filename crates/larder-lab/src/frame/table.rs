//! Tables: a grid of two factors, or a list of cells.

use super::results::At;
use crate::model::{Table, TableRow, Value};

/// A table of rows by columns, for instance a factor by contestant. Rows and columns without any value are left out.
pub(crate) fn grid<R, C>(
    title: impl Into<String>,
    corner: &str,
    rows: impl IntoIterator<Item = (R, Value)>,
    columns: impl IntoIterator<Item = (C, String)>,
    value: impl Fn(&R, &C) -> Value,
) -> Table {
    let columns: Vec<(C, String)> = columns.into_iter().collect();
    let mut filled: Vec<(Value, TableRow)> = rows
        .into_iter()
        .map(|(row, name)| (name, columns.iter().map(|(c, _)| value(&row, c)).collect()))
        .collect();
    let empty = |value: &Value| matches!(value, Value::Empty);
    filled.retain(|(_, values)| !values.iter().all(empty));
    let used: Vec<bool> = (0..columns.len())
        .map(|i| filled.iter().any(|(_, values)| !empty(&values[i])))
        .collect();
    let mut headings = vec![corner.to_owned()];
    let of_used = |(i, name): (usize, (C, String))| used[i].then_some(name.1);
    headings.extend(columns.into_iter().enumerate().filter_map(of_used));
    let rows = filled.into_iter().map(|(name, values)| {
        let values = values.into_iter().enumerate();
        let kept = values.filter(|(i, _)| used[*i]).map(|(_, value)| value);
        [name].into_iter().chain(kept).collect()
    });
    Table {
        title: title.into(),
        columns: headings,
        rows: rows.collect(),
        ..Table::default()
    }
}

type Of<'t> = Box<dyn Fn(&At<'_, '_>) -> Value + 't>;

/// A column of a list of cells.
pub(crate) struct Column<'t> {
    heading: String,
    value: Of<'t>,
}

impl<'t> Column<'t> {
    /// What a function says of each cell.
    pub(crate) fn by(heading: &str, value: impl Fn(&At<'_, '_>) -> Value + 't) -> Self {
        Self {
            heading: heading.to_owned(),
            value: Box::new(value),
        }
    }

    /// The contestant.
    pub(crate) fn contestant(heading: &str) -> Self {
        Self::by(heading, |at| Value::Text(at.name().to_owned()))
    }

    /// A factor.
    pub(crate) fn factor(heading: &str, name: &'t str) -> Self {
        Self::by(heading, move |at| at.factor(name))
    }

    /// A metric, with its interval where there is one.
    pub(crate) fn metric(heading: &str, metric: &'t str) -> Self {
        Self::by(heading, move |at| at.value(metric))
    }

    /// The median of a metric alone, for counts.
    pub(crate) fn middle(heading: &str, metric: &'t str) -> Self {
        Self::by(heading, move |at| {
            match (at.middle(metric), at.value(metric)) {
                (Some(v), Value::Number(_, unit) | Value::Estimate(_, unit)) => {
                    Value::Number(v, unit)
                }
                _ => Value::Empty,
            }
        })
    }

    /// The ratio to one and the same cell, with its verdict; empty for that cell itself.
    pub(crate) fn against<'r: 't, 'a: 't>(
        heading: &str,
        other: Option<At<'r, 'a>>,
        metric: &'t str,
    ) -> Self {
        Self::by(heading, move |at| match other {
            Some(other) if other.cell != at.cell => {
                let c = at.compare(&other, metric);
                c.ratio.map_or(Value::Empty, |r| Value::Ratio(r, c.verdict))
            }
            _ => Value::Empty,
        })
    }
}

/// A row for each cell. Columns without any value are left out.
pub(crate) fn listing<'r, 'a: 'r>(
    title: impl Into<String>,
    cells: impl IntoIterator<Item = At<'r, 'a>>,
    columns: Vec<Column<'_>>,
) -> Table {
    let mut columns = columns.into_iter();
    let Some(first) = columns.next() else {
        return Table::default();
    };
    let rows = cells.into_iter().map(|at| (at, (first.value)(&at)));
    let rest = columns.map(|column| {
        let heading = column.heading.clone();
        (column, heading)
    });
    grid(title, &first.heading, rows, rest, |at, column| {
        (column.value)(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_without_a_value_are_left_out() {
        let names = |n: [i64; 3]| n.map(|n| (n, Value::Count(n)));
        let columns = [1, 2, 3].map(|n| (n, n.to_string()));
        let table = grid("t", "n", names([1, 2, 3]), columns, |row, column| {
            if *row == 2 || *column == 3 {
                Value::Empty
            } else {
                Value::Count(row * column)
            }
        });
        assert_eq!(table.columns, ["n", "1", "2"]);
        let counts = |n: [i64; 3]| n.map(Value::Count).to_vec();
        assert_eq!(table.rows, [counts([1, 1, 2]), counts([3, 3, 6])]);
    }
}
