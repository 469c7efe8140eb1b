//! Queries on tables that all output formats share.

use crate::model::{Chart, Provenance, Table, Value};

/// What stands under a table that shows published numbers.
pub(super) const PUBLISHED_NOTE: &str = "Published numbers have no raw data behind them and come from other machines: compare shapes, not times.";

/// Whether a table shows numbers of a published table.
#[must_use]
pub(super) fn has_published(t: &Table) -> bool {
    t.rows
        .iter()
        .flatten()
        .any(|v| matches!(v, Value::Published(..)))
}

/// The numbers of a chart as a table: one row per horizontal value, one column per series.
///
/// Values of a published series stay marked as published.
#[must_use]
pub(super) fn chart_table(c: &Chart) -> Table {
    let (_, unit) = super::number::split_label(&c.y.label);
    let mut xs: Vec<f64> = c
        .series
        .iter()
        .flat_map(|s| s.points.iter().map(|p| p.x))
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let mut columns = vec![c.x.label.clone()];
    columns.extend(c.series.iter().map(|s| s.name.clone()));
    let mut rows = Vec::new();
    for x in xs {
        // A series may have several points at one x (samples in time order): as many rows as needed.
        let at = |s: &crate::model::Series| {
            s.points
                .iter()
                .filter(|p| p.x.total_cmp(&x).is_eq())
                .copied()
                .collect::<Vec<_>>()
        };
        let cells: Vec<Vec<_>> = c.series.iter().map(at).collect();
        let deep = cells.iter().map(Vec::len).max().unwrap_or(0);
        for k in 0..deep {
            let name = (x >= 0.0 && x.fract() == 0.0)
                .then(|| c.categories.get(x as usize))
                .flatten();
            let mut row = vec![if let Some(name) = name {
                Value::Text(name.clone())
            } else if x.fract() == 0.0 && x.abs() < 1e15 {
                Value::Count(x as i64)
            } else {
                Value::Number(x, String::new())
            }];
            for (s, points) in c.series.iter().zip(&cells) {
                row.push(points.get(k).map_or(Value::Empty, |p| {
                    if s.from == Provenance::Published {
                        Value::Published(p.y, unit.clone())
                    } else if p.hi > p.lo {
                        Value::Estimate(
                            crate::stats::Estimate {
                                value: p.y,
                                lo: p.lo,
                                hi: p.hi,
                                n: 0,
                                level: 0.0,
                            },
                            unit.clone(),
                        )
                    } else {
                        Value::Number(p.y, unit.clone())
                    }
                }));
            }
            rows.push(row);
        }
    }
    Table {
        title: c.title.clone(),
        columns,
        rows,
        ..Table::default()
    }
}
