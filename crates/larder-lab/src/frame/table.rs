//! Tables: a grid of two factors, or a list of cells.

use super::results::{At, family};
use crate::measure::Comparison;
use crate::model::{Block, Section, Table, TableRow, Value};

/// A text as a value of a table.
pub fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// A number without a unit and without an interval, where there is one.
pub fn number(number: Option<f64>) -> Value {
    number.map_or(Value::Empty, |n| Value::Number(n, String::new()))
}

/// A heading with what stands below it.
pub fn section(title: &str, blocks: impl IntoIterator<Item = Block>) -> Section {
    Section {
        title: title.to_owned(),
        blocks: blocks.into_iter().collect(),
    }
}

impl Table {
    /// The table with one more footnote.
    pub fn noted(mut self, note: &str) -> Self {
        self.notes.push(note.to_owned());
        self
    }

    /// The table, shown on the page only because of its size.
    pub fn folded(mut self) -> Self {
        self.long = true;
        self
    }
}

/// A table of rows by columns, for instance a factor by contestant. Rows and columns without any value are left out.
pub fn grid<R, C>(
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

/// A table of ratios with verdicts. Its cells answer one question: the verdicts hold together, as
/// [`RunView::family`](crate::measure::RunView::family) makes them.
pub fn ratios<'r, 'a: 'r, R, C>(
    title: impl Into<String>,
    corner: &str,
    rows: impl IntoIterator<Item = (R, Value)>,
    columns: impl IntoIterator<Item = (C, String)>,
    metric: &str,
    pair: impl Fn(&R, &C) -> Option<(At<'r, 'a>, At<'r, 'a>)>,
) -> Table {
    let rows: Vec<(R, Value)> = rows.into_iter().collect();
    let columns: Vec<(C, String)> = columns.into_iter().collect();
    let every = rows.iter().flat_map(|(row, _)| {
        let pair = &pair;
        columns.iter().map(move |(column, _)| pair(row, column))
    });
    let values = in_family(every.collect(), metric);
    let width = columns.len();
    let rows = rows.into_iter().enumerate();
    let columns = columns.into_iter().enumerate();
    grid(
        title,
        corner,
        rows.map(|(r, (_, name))| (r, name)),
        columns.map(|(c, (_, name))| (c, name)),
        |r, c| values[r * width + c].clone(),
    )
}

/// The ratio of each pair with its verdict, judged together.
fn in_family(pairs: Vec<Option<(At<'_, '_>, At<'_, '_>)>>, metric: &str) -> Vec<Value> {
    let known: Vec<(At<'_, '_>, At<'_, '_>)> = pairs.iter().copied().flatten().collect();
    let mut judged = family(&known, metric).into_iter();
    let value = |c: Comparison| {
        let ratio = |r| Value::Ratio(r, c.verdict);
        c.ratio.map_or(Value::Empty, ratio)
    };
    let of = |pair: Option<_>| pair.and_then(|_| judged.next()).map_or(Value::Empty, value);
    pairs.into_iter().map(of).collect()
}

/// The cell that a cell is compared with, if any.
type Other<'t> = Box<dyn Fn(&At<'_, '_>) -> Option<At<'t, 't>> + 't>;

/// The content of a column in a list of cells.
enum Of<'t> {
    Cell(Box<dyn Fn(&At<'_, '_>) -> Value + 't>),
    Against(Other<'t>, &'t str),
}

/// A column of a list of cells.
pub struct Column<'t> {
    heading: String,
    value: Of<'t>,
}

impl<'t> Column<'t> {
    /// The result of a function for each cell.
    pub fn by(heading: &str, value: impl Fn(&At<'_, '_>) -> Value + 't) -> Self {
        Self {
            heading: heading.to_owned(),
            value: Of::Cell(Box::new(value)),
        }
    }

    /// The contestant.
    pub fn contestant(heading: &str) -> Self {
        Self::by(heading, |at| Value::Text(at.name().to_owned()))
    }

    /// A factor.
    pub fn factor(heading: &str, name: &'t str) -> Self {
        Self::by(heading, move |at| at.factor(name))
    }

    /// A metric, with its interval where there is one.
    pub fn metric(heading: &str, metric: &'t str) -> Self {
        Self::by(heading, move |at| at.value(metric))
    }

    /// The median of a metric alone, for counts.
    pub fn middle(heading: &str, metric: &'t str) -> Self {
        Self::by(heading, move |at| {
            match (at.middle(metric), at.value(metric)) {
                (Some(v), Value::Number(_, unit) | Value::Estimate(_, unit)) => {
                    Value::Number(v, unit)
                }
                _ => Value::Empty,
            }
        })
    }

    /// The ratio to another cell, which a function finds for each; without a verdict.
    pub fn over<'o, 'a: 'o>(
        heading: &str,
        metric: &'t str,
        other: impl Fn(&At<'_, '_>) -> Option<At<'o, 'a>> + 't,
    ) -> Self {
        Self::by(heading, move |at| {
            let ratio = other(at).and_then(|other| at.ratio(&other, metric));
            ratio.map_or(Value::Empty, |r| Value::Estimate(r, "x".to_owned()))
        })
    }

    /// The ratio to one and the same cell, with its verdict; empty for that cell itself. The column is one question: its
    /// verdicts hold together.
    pub fn against(heading: &str, other: Option<At<'t, 't>>, metric: &'t str) -> Self {
        Self::against_each(heading, move |_| other, metric)
    }

    /// The same, where each cell has its own other one.
    pub fn against_each(
        heading: &str,
        other: impl Fn(&At<'_, '_>) -> Option<At<'t, 't>> + 't,
        metric: &'t str,
    ) -> Self {
        Self {
            heading: heading.to_owned(),
            value: Of::Against(Box::new(other), metric),
        }
    }

    fn values(&self, cells: &[At<'_, '_>]) -> Vec<Value> {
        match &self.value {
            Of::Cell(of) => cells.iter().map(of).collect(),
            Of::Against(other, metric) => {
                let pairs = cells.iter().copied().map(|at| {
                    let other = other(&at).filter(|other| other.cell != at.cell);
                    other.map(|other| (at, other))
                });
                in_family(pairs.collect(), metric)
            }
        }
    }
}

/// A row for each cell. Columns without any value are left out.
pub fn listing<'r, 'a: 'r>(
    title: impl Into<String>,
    cells: impl IntoIterator<Item = At<'r, 'a>>,
    columns: Vec<Column<'_>>,
) -> Table {
    let cells: Vec<At<'_, '_>> = cells.into_iter().collect();
    let mut columns = columns
        .into_iter()
        .map(|column| (column.values(&cells), column.heading));
    let Some((names, corner)) = columns.next() else {
        return Table::default();
    };
    grid(
        title,
        &corner,
        names.into_iter().enumerate(),
        columns,
        |row, values| values[*row].clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Results;
    use crate::model::{Cell, Measures, Metric, Params, RunRecord, Sample};
    use crate::stats::Verdict;

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

    /// Seven rounds of one group: `base` takes 10, the others what they are called.
    fn run(names: &[&str]) -> RunRecord {
        let sample = |round: u32, name: &str| Sample {
            group: "g".to_owned(),
            cell: Cell::new(name, Params::new()),
            round,
            slot: 0,
            at_us: 0,
            measures: Measures::new().with(
                "ns",
                name.parse().unwrap_or(10.0)
                    * (1.0 + 0.002 * f64::from((round * 3 + name.len() as u32 * 5) % 7)),
            ),
        };
        let twin = |round| {
            let mut twin = sample(round, "base");
            twin.cell = twin.cell.as_twin();
            twin
        };
        let rounds = (0..7).flat_map(|round| {
            let all = names.iter().map(move |name| sample(round, name));
            all.chain([twin(round)])
        });
        RunRecord {
            samples: rounds.collect(),
            ..RunRecord::default()
        }
    }

    const METRICS: &[Metric] = &[Metric::cost("ns", "ns", "")];

    #[test]
    fn ratios_stand_in_their_cells() {
        let run = run(&["base", "5", "20"]);
        let results = Results::new(&run, METRICS);
        let pair = |over: &&str, under: &&str| {
            let find = |name| results.find("g", name, &[]);
            (over != under).then(|| find(over).zip(find(under)))?
        };
        let names = ["5", "base", "20"];
        let columns = names.map(|n| (n, n.to_owned()));
        let rows = names.map(|n| (n, Value::Text(n.to_owned())));
        let table = ratios("t", "of", rows, columns, "ns", pair);
        let shown: Vec<Vec<f64>> = table
            .rows
            .iter()
            .map(|row| row[1..].iter().map(rounded).collect())
            .collect();
        assert_eq!(shown, [[0.0, 0.5, 0.25], [2.0, 0.0, 0.5], [4.0, 2.0, 0.0]]);
        let base = results.find("g", "base", &[]);
        let columns = vec![Column::contestant("a"), Column::against("b", base, "ns")];
        let table = listing("t", results.all("g"), columns);
        let shown: Vec<f64> = table.rows.iter().map(|row| rounded(&row[1])).collect();
        assert_eq!(shown, [2.0, 0.5], "base says nothing of itself");
    }

    fn rounded(value: &Value) -> f64 {
        match value {
            Value::Ratio(ratio, _) => (ratio.value * 20.0).round() / 20.0,
            _ => 0.0,
        }
    }

    #[test]
    fn a_table_whose_mean_says_nothing_calls_no_cell_faster() {
        let names = [
            "5", "20", "5.0", "20.0", "5.00", "20.00", "5.000", "20.000", "5.0000", "20.0000",
        ];
        let verdicts = |shown: usize| {
            let of: Vec<&str> = ["base"]
                .into_iter()
                .chain(names[..shown].iter().copied())
                .collect();
            let run = run(&of);
            let results = Results::new(&run, METRICS);
            let base = results.find("g", "base", &[]);
            let columns = vec![Column::contestant("a"), Column::against("b", base, "ns")];
            let table = listing("t", results.all("g"), columns);
            let ratios = table.rows.into_iter().filter_map(|mut row| row.pop());
            let sure =
                |value: &Value| matches!(value, Value::Ratio(_, Verdict::Faster | Verdict::Slower));
            ratios.filter(sure).count()
        };
        assert_eq!((verdicts(2), verdicts(10)), (2, 0));
    }
}
