//! The table of machines: this one, submitted ones, those of 2003.

use super::document::Document;
use crate::calc::{Preset, Quantity, Source, derive};
use crate::model::{Table, Value};

/// One row per machine with its four timings and what they derive.
#[must_use]
pub(super) fn table(doc: &Document) -> Table {
    let row = |p: &Preset| {
        let costs = derive(&p.timings);
        let us = |v: Option<f64>| match (v, p.source) {
            (None, _) => Value::Empty,
            (Some(v), Source::Published) => Value::Published(v, "us".to_owned()),
            (Some(v), _) => Value::Number(v, "us".to_owned()),
        };
        let mut cells = vec![
            Value::Text(p.label.clone()),
            Value::Text(format!("{}: {}", p.source.label(), p.detail)),
        ];
        cells.extend(
            crate::calc::Field::TIMINGS
                .into_iter()
                .map(|f| us(p.timings.get(f))),
        );
        cells.push(us(costs.get(Quantity::FaultAndZeroFill, 1).map(round)));
        cells.push(us(costs.get(Quantity::ZeroFill, 1).map(round)));
        cells
    };
    let columns = [
        "machine",
        "about",
        "1p alloc",
        "1p alloc + fault",
        "2p alloc",
        "2p alloc + fault",
        "fault + zerofill",
        "zerofill",
    ];
    let title =
        "Four timings of one machine each: compare ratios along a row, not times between rows";
    let note =
        "All times are of one operation. The last two columns are derived by the formulas of 2003.";
    Table {
        notes: vec![note.to_owned()],
        ..Table::new(title, &columns, doc.presets().iter().map(row))
    }
}

/// To a hundredth of what it is near one: the table of 2003 has two decimals at most.
fn round(v: f64) -> f64 {
    if v.abs() < 1.0 {
        return v;
    }
    (v * 100.0).round() / 100.0
}
