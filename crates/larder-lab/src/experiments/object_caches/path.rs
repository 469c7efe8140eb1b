//! Whether the per-CPU contestants took the path that they are named for.

use crate::measure::RunView;
use crate::model::{Section, Table, Value};

/// The contestants whose blocks come from a CPU's magazines by a restartable sequence.
const BY_RSEQ: [&str; 2] = ["object-cache", "classes"];
/// Share of the gets that took it.
const SHARE: &str = "path_share";
/// Share below which a cell is warned of.
const LEAST_SHARE: f64 = 0.5;

/// The table, if anything was counted: the least share of a contestant's cells in each group.
pub(super) fn section(view: &RunView<'_>) -> Option<Section> {
    let mut rows = Vec::new();
    let mut low = Vec::new();
    for group in view.groups() {
        for name in BY_RSEQ {
            let shares = view
                .cells(group)
                .into_iter()
                .filter(|cell| cell.contestant == name)
                .filter_map(|cell| view.middle(group, cell, SHARE));
            let Some(least) = shares.min_by(f64::total_cmp) else {
                continue;
            };
            if least < LEAST_SHARE {
                low.push(format!("{name} in {group}"));
            }
            rows.push(vec![
                Value::Text(group.to_owned()),
                Value::Text(name.to_owned()),
                Value::Number(least, String::new()),
            ]);
        }
    }
    let mut notes = vec![
        "The least of a group's cells. A get that finds its CPU's magazines empty takes another way; a cell of which no block \
         came this way has failed."
            .to_owned(),
    ];
    if !low.is_empty() {
        notes.push(format!(
            "Warning: fewer than half came this way: {}. What was measured there is not what the name says.",
            low.join(", ")
        ));
    }
    let table = Table {
        title: "Blocks that came from their CPU's magazines by a restartable sequence".to_owned(),
        columns: ["group", "contestant", "share"].map(str::to_owned).to_vec(),
        long: false,
        rows,
        notes,
    };
    (!table.rows.is_empty()).then(|| Section {
        title: "The path".to_owned(),
        blocks: vec![crate::model::Block::Table(table)],
    })
}
