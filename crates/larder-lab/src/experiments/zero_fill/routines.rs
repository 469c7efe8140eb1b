//! Which zeroing routine is best, for warm pages and for cold ones.

use super::cells::{CPU, ZERO_COLD, ZERO_WARM};
use super::look::Look;
use super::timings::section;
use super::words::{self, finding, text, value};
use crate::model::{Analysis, Better, Block, Cell, Finding, Recommendation, Table, Value};
use crate::stats::sweep::OptimumSet;

/// Routines by what they cost beside their time: a portable one nothing, wide stores may lower the clock of the
/// whole core.
const BY_BURDEN: [&str; 5] = ["portable", "sse2", "stosb", "avx2", "avx512"];

fn cells<'a>(look: &Look<'a>, group: &str) -> Vec<(f64, &'a Cell)> {
    BY_BURDEN
        .iter()
        .enumerate()
        .filter_map(|(i, routine)| {
            let cell = look.cell(group, "zero-in-place", &[("routine", routine)])?;
            Some((i as f64, cell))
        })
        .collect()
}

/// The routine of a cell.
fn routine(cell: &Cell) -> &str {
    cell.params.text("routine").unwrap_or("unknown")
}

/// The routines not distinguishable from the best, and the cheapest of them.
struct Best {
    set: OptimumSet,
    names: Vec<String>,
}

impl Best {
    fn of(look: &Look<'_>, group: &str) -> Option<Self> {
        let settings: Vec<(f64, Cell)> = cells(look, group)
            .into_iter()
            .map(|(burden, cell)| (burden, cell.clone()))
            .collect();
        let sweep = look.view.sweep(group, &settings, CPU, Better::Lower)?;
        let set = sweep.optimum(|burden, _| burden)?;
        let names = sweep.cells.iter().map(|c| routine(c).to_owned()).collect();
        Some(Self { set, names })
    }

    fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("unknown", String::as_str)
    }

    fn ties(&self) -> Vec<String> {
        self.set
            .members
            .iter()
            .map(|&i| self.name(i).to_owned())
            .collect()
    }
}

pub(super) fn part(look: &Look<'_>) -> Analysis {
    let mut blocks = Vec::new();
    blocks.extend(table(look).map(Block::Table));
    Analysis {
        findings: sentence(look).into_iter().collect(),
        sections: section("Zeroing routines", blocks),
        recommendations: recommend(look).into_iter().collect(),
        ..Analysis::default()
    }
}

fn table(look: &Look<'_>) -> Option<Table> {
    let rows: Vec<Vec<Value>> = BY_BURDEN
        .iter()
        .filter_map(|routine| {
            let get = |group| {
                let cell = look.cell(group, "zero-in-place", &[("routine", routine)])?;
                look.estimate(group, cell, CPU)
            };
            let (warm, cold) = (get(ZERO_WARM), get(ZERO_COLD));
            if warm.is_none() && cold.is_none() {
                return None;
            }
            let rate = warm.map_or(Value::Empty, |w| {
                let bytes = rustix::param::page_size() as f64;
                Value::Number(bytes / w.value * 1e9, "bytes/s".to_owned())
            });
            Some(vec![
                text(routine),
                value(warm, "ns"),
                rate,
                value(cold, "ns"),
            ])
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        title: "Zeroing one page in place".to_owned(),
        columns: [
            "routine",
            "warm (256 KiB)",
            "warm, rate",
            "cold (64 MiB or more)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        notes: vec![
            "The pages are dirty before each pass: zero over zero is cheaper on some CPUs."
                .to_owned(),
        ],
        long: false,
    })
}

fn sentence(look: &Look<'_>) -> Option<Finding> {
    let warm = Best::of(look, ZERO_WARM)?;
    let mut answer = told("Warm pages", &warm, look, ZERO_WARM);
    if let Some(cold) = Best::of(look, ZERO_COLD) {
        answer += " ";
        answer += &told("Cold pages", &cold, look, ZERO_COLD);
    }
    Some(finding(
        "With what should a page be zeroed?",
        "",
        answer,
        None,
    ))
}

fn told(what: &str, best: &Best, look: &Look<'_>, group: &str) -> String {
    let name = best.name(best.set.best);
    let time = look
        .cell(group, "zero-in-place", &[("routine", name)])
        .and_then(|cell| look.estimate(group, cell, CPU))
        .map_or_else(String::new, |e| format!(" ({})", words::ns(&e)));
    let ties = best.ties();
    if ties.len() > 1 {
        format!(
            "{what}: {name}{time} is fastest, not distinguishable from it: {}.",
            words::list(&ties.into_iter().filter(|t| t != name).collect::<Vec<_>>())
        )
    } else {
        format!("{what}: {name}{time} is fastest, and alone.")
    }
}

fn recommend(look: &Look<'_>) -> Option<Recommendation> {
    let best = Best::of(look, ZERO_WARM)?;
    let name = best.name(best.set.recommended);
    let ratio = best.set.ratios.get(best.set.recommended).copied();
    Some(Recommendation {
        key: "pages.zeroing".to_owned(),
        value: format!("\"{name}\""),
        because: format!(
            "As fast as the fastest; asks least of the CPU. Equal for a warm page: {}.",
            words::list(&best.ties())
        ),
        evidence: ratio,
    })
}
