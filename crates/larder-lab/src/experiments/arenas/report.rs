//! Goals, tables and sentences.

use crate::experiments::page_buffers::words::{Bound, ratio, short};
use crate::measure::RunView;
use crate::model::{Block, Cell, Finding, Goal, Section, Table, Value};
use crate::stats::Estimate;

use super::plan::{OURS, PEERS, SHAPES};

/// CPU time of a range, there and back.
pub(super) const COST: &str = "ns_per_range";

/// From the fewest to the most ranges a cost may grow by so much and be called constant: caches get cold.
pub(super) const FLAT: f64 = 1.5;

/// Ranges between which the cost must be constant at least: those of the quick form.
const FEW: i64 = 100;
const MANY: i64 = 100_000;

/// Those that promise constant time.
const CONSTANT: [&str; 3] = ["quantum", "handle", "instant"];

fn live_of(cell: &Cell) -> Option<i64> {
    cell.params.int("live").ok()
}

/// The cells of a contestant by ranges that are out.
fn cells<'a>(view: &RunView<'a>, shape: &str, contestant: &str) -> Vec<(i64, &'a Cell)> {
    let mut cells: Vec<_> = view
        .cells(shape)
        .into_iter()
        .filter(|cell| cell.contestant == contestant && !cell.twin)
        .filter_map(|cell| Some((live_of(cell)?, cell)))
        .collect();
    cells.sort_by_key(|(live, _)| *live);
    cells
}

/// The cost at the most ranges over that at the fewest.
fn growth(view: &RunView<'_>, shape: &str, contestant: &str) -> Option<(i64, i64, Estimate)> {
    let cells = cells(view, shape, contestant);
    let (first, last) = (cells.first()?, cells.last()?);
    if first.0 == last.0 {
        return None;
    }
    Some((first.0, last.0, view.ratio(shape, last.1, first.1, COST)?))
}

/// Constant time is measured where nothing but the arena is touched: in pairs.
pub(super) fn goals(view: &RunView<'_>) -> Vec<Goal> {
    ["quantum", "handle"]
        .map(|name| {
            let bound = Bound::AtMost(FLAT);
            let what = format!("{name}: cost of a range when most are out");

            let cells = cells(view, "pair", name);
            match (cells.first(), cells.last()) {
                (Some((few, first)), Some((many, last))) if *few <= FEW && *many >= MANY => bound
                    .goal(
                        format!("{what} ({many})"),
                        format!("{few} ranges"),
                        view.ratio("pair", last, first, COST),
                        None,
                        "",
                    ),
                _ => bound.needs(
                    format!("{what} ({MANY} or more)"),
                    format!("{FEW} ranges"),
                    &format!("{FEW} and {MANY} ranges"),
                    &format!("arenas --group pair --contestant {name}"),
                ),
            }
        })
        .to_vec()
}

/// The sentences.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for shape in SHAPES {
        let parts: Vec<String> = OURS
            .iter()
            .chain(&PEERS)
            .filter_map(|name| {
                let (few, many, r) = growth(view, shape, name)?;
                let word = if r.hi <= FLAT {
                    "constant"
                } else if r.lo > FLAT {
                    "grows"
                } else {
                    "cannot be told"
                };
                let promised = if CONSTANT.contains(name) {
                    ""
                } else {
                    ", not promised"
                };
                Some(format!(
                    "{name} {} from {few} to {many} ({word}{promised})",
                    ratio(&r)
                ))
            })
            .collect();
        if !parts.is_empty() {
            findings.push(Finding {
                question: match shape {
                    "pair" => "Does a range that is taken and given back at once cost the same, however many are out?",
                    _ => "And where random ranges are given back, so that free ones lie everywhere?",
                }
                .to_owned(),
                asked_by: "larder".to_owned(),
                answer: format!("Cost at the most ranges over that at the fewest: {}.", parts.join("; ")),
                verdict: None, ..Finding::default() });
        }
        findings.extend(against_peer(view, shape));
    }
    findings
}

/// Ours against the peer, at the most ranges that it has.
fn against_peer(view: &RunView<'_>, shape: &str) -> Option<Finding> {
    let parts: Vec<String> = PEERS
        .iter()
        .filter_map(|peer| {
            let (live, theirs) = cells(view, shape, peer).into_iter().next_back()?;
            let ours: Vec<String> = OURS
                .iter()
                .filter_map(|name| {
                    let (_, own) = cells(view, shape, name)
                        .into_iter()
                        .find(|(n, _)| *n == live)?;
                    Some(format!(
                        "{name} {}",
                        ratio(&view.ratio(shape, own, theirs, COST)?)
                    ))
                })
                .collect();
            let ns = short(view.middle(shape, theirs, COST)?);
            (!ours.is_empty())
                .then(|| format!("{peer} {ns} ns at {live}; of that {}", ours.join(", ")))
        })
        .collect();
    (!parts.is_empty()).then(|| Finding {
        question: format!("What do arenas cost beside today's crates ({shape})?"),
        asked_by: "larder".to_owned(),
        answer: format!("{}.", parts.join(". ")),
        verdict: None,
        ..Finding::default()
    })
}

/// The tables.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    let titles = [
        (
            "pair",
            "A range of 1 to 4 units, taken and given back at once",
        ),
        (
            "churn",
            "A random range given back, and one of another size taken",
        ),
    ];
    titles
        .into_iter()
        .flat_map(|(shape, title)| {
            [
                table(view, shape, title, COST, "ns"),
                table(
                    view,
                    shape,
                    &format!("{title}: memory of the bookkeeping"),
                    "bookkeeping_bytes",
                    "B",
                ),
            ]
            .map(|table| (shape, table))
        })
        .filter(|(_, table)| !table.rows.is_empty())
        .map(|(shape, table)| Section {
            title: match shape {
                "pair" => "Pairs",
                _ => "Churn",
            }
            .to_owned(),
            blocks: vec![Block::Table(table)],
        })
        .collect()
}

fn table(view: &RunView<'_>, shape: &str, title: &str, metric: &str, unit: &str) -> Table {
    let names: Vec<&str> = OURS
        .into_iter()
        .chain(PEERS)
        .filter(|name| !cells(view, shape, name).is_empty())
        .collect();
    let mut counts: Vec<i64> = view.cells(shape).into_iter().filter_map(live_of).collect();
    counts.sort_unstable();
    counts.dedup();
    let rows = counts
        .into_iter()
        .map(|count| {
            let mut row = vec![Value::Count(count)];
            row.extend(names.iter().map(|name| {
                let cell = cells(view, shape, name)
                    .into_iter()
                    .find(|(n, _)| *n == count);
                let Some((_, cell)) = cell else {
                    return Value::Empty;
                };
                match view.estimate(shape, cell, metric) {
                    Some(estimate) => Value::Estimate(estimate, unit.to_owned()),
                    None => view
                        .middle(shape, cell, metric)
                        .map_or(Value::Empty, |v| Value::Number(v, unit.to_owned())),
                }
            }));
            row
        })
        .collect();
    let mut columns = vec!["ranges out".to_owned()];
    columns.extend(names.iter().map(|name| (*name).to_owned()));
    Table {
        title: title.to_owned(),
        columns,
        rows,
        notes: Vec::new(),
        long: false,
    }
}
