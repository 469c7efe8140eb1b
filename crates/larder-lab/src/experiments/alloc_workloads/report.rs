//! Tables and sentences.

use crate::contestants::heaps::PRELOADED;
use crate::frame::words::short;
use crate::measure::RunView;
use crate::model::{Block, Finding, Section, Table, Value};

use super::plan::{INTERPRETERS, OURS, PEERS, WHOLE};
use super::rows::{COST, HELD, PATH, PEAK, Place, best, find, middle, places};
use super::work::ALL;

/// Rows from which the terminal leaves a table to the page.
const LONG: usize = 24;

/// The contestants that say by restartable sequences in their name, and count them.
const BY_RSEQ: &str = "classes";
/// Share below which a cell is warned of.
const LEAST_SHARE: f64 = 0.5;

/// Allocators that the run has, ours first.
fn allocators(view: &RunView<'_>, places: &[Place<'_>]) -> Vec<&'static str> {
    OURS.into_iter()
        .chain(PEERS)
        .chain([PRELOADED])
        .filter(|name| places.iter().any(|place| find(view, place, name).is_some()))
        .collect()
}

/// Every section, in reading order.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    let places = places(view);
    let names = allocators(view, &places);
    let table = |metric: &str, unit: &str, title: &str, note: &str| {
        Block::Table(by_place(view, &places, &names, metric, unit, title, note))
    };
    let mut sections = vec![
        Section {
            title: "Time".to_owned(),
            blocks: vec![table(
                COST,
                "ns",
                "Wall time of an operation, all threads together",
                "An operation is a block there and back. With more threads than CPUs it does not fall further.",
            )],
        },
        Section {
            title: "Memory".to_owned(),
            blocks: vec![
                table(
                    PEAK,
                    "B",
                    "Growth of resident memory at its highest",
                    "The workload's own tables are in it, the same for every allocator.",
                ),
                table(
                    HELD,
                    "B",
                    "Growth of resident memory when every block is back and every thread has ended",
                    "",
                ),
            ],
        },
        Section {
            title: "Interpreters".to_owned(),
            blocks: vec![Block::Table(interpreters(view, &places, &names))],
        },
        Section {
            title: "The path".to_owned(),
            blocks: vec![Block::Table(path(view, &places))],
        },
        Section {
            title: "The workloads".to_owned(),
            blocks: vec![Block::Table(what_they_do())],
        },
    ];
    sections.retain(|s| {
        s.blocks
            .iter()
            .any(|b| matches!(b, Block::Table(t) if !t.rows.is_empty()))
    });
    sections
}

fn by_place(
    view: &RunView<'_>,
    places: &[Place<'_>],
    names: &[&str],
    metric: &str,
    unit: &str,
    title: &str,
    note: &str,
) -> Table {
    let mut columns: Vec<String> = ["workload", "threads"].map(str::to_owned).to_vec();
    columns.extend(names.iter().map(|name| (*name).to_owned()));
    columns.push("best peer".to_owned());
    let rows: Vec<_> = places
        .iter()
        .map(|place| {
            let mut row = vec![
                Value::Text(place.workload.to_owned()),
                Value::Count(place.threads),
            ];
            row.extend(
                names
                    .iter()
                    .map(|name| value(view, place, name, metric, unit)),
            );
            row.push(
                best(view, place, metric).map_or(Value::Empty, |peer| Value::Text(peer.to_owned())),
            );
            row
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns,
        long: rows.len() > LONG,
        rows,
        notes: [note]
            .into_iter()
            .filter(|n| !n.is_empty())
            .map(str::to_owned)
            .collect(),
    }
}

fn value(view: &RunView<'_>, place: &Place<'_>, name: &str, metric: &str, unit: &str) -> Value {
    let Some(cell) = find(view, place, name) else {
        return Value::Empty;
    };
    match view.estimate(place.workload, cell, metric) {
        Some(estimate) => Value::Estimate(estimate, unit.to_owned()),
        None => view
            .middle(place.workload, cell, metric)
            .map_or(Value::Empty, |v| Value::Number(v, unit.to_owned())),
    }
}

/// Whether the blocks of the contestant that is named for the CPUs' magazines came from there.
fn path(view: &RunView<'_>, places: &[Place<'_>]) -> Table {
    let shares: Vec<(&Place<'_>, f64)> = places
        .iter()
        .filter_map(|place| {
            let cell = find(view, place, BY_RSEQ)?;
            // Not `middle`: a share of zero is what this table is for.
            Some((place, view.middle(place.workload, cell, PATH)?))
        })
        .collect();
    let low: Vec<String> = shares
        .iter()
        .filter(|(_, share)| *share < LEAST_SHARE)
        .map(|(place, _)| format!("{} with {} threads", place.workload, place.threads))
        .collect();
    let mut notes = vec![
        "A get that finds its CPU's magazines empty takes another way. Blocks that are too large for magazines do not \
         count; a cell of which no block came this way has failed."
            .to_owned(),
    ];
    if !low.is_empty() {
        notes.push(format!(
            "Warning: fewer than half came this way in {}: these cells are not what their contestant is named for.",
            low.join(", ")
        ));
    }
    Table {
        title: format!(
            "Blocks of {BY_RSEQ} that came from their CPU's magazines by a restartable sequence"
        ),
        columns: ["workload", "threads", "share"].map(str::to_owned).to_vec(),
        long: shares.len() > LONG,
        rows: shares
            .into_iter()
            .map(|(place, share)| {
                vec![
                    Value::Text(place.workload.to_owned()),
                    Value::Count(place.threads),
                    Value::Number(share, String::new()),
                ]
            })
            .collect(),
        notes,
    }
}

/// Heaps that die whole beside those that free each object.
fn interpreters(view: &RunView<'_>, places: &[Place<'_>], names: &[&str]) -> Table {
    let mut rows = Vec::new();
    for place in places.iter().filter(|p| p.workload == INTERPRETERS) {
        for name in names.iter().chain(&WHOLE) {
            if find(view, place, name).is_some() {
                rows.push(vec![
                    Value::Count(place.threads),
                    Value::Text((*name).to_owned()),
                    Value::Text(
                        if WHOLE.contains(name) {
                            "whole"
                        } else {
                            "one by one"
                        }
                        .to_owned(),
                    ),
                    value(view, place, name, COST, "ns"),
                    value(view, place, name, PEAK, "B"),
                ]);
            }
        }
    }
    Table {
        title: "Interpreters of 300 objects in 30 sizes: made, used, destroyed; per object"
            .to_owned(),
        columns: ["threads", "allocator", "destroyed", "time", "peak"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes: Vec::new(),
        long: false,
    }
}

fn what_they_do() -> Table {
    Table {
        title: "What they do".to_owned(),
        columns: ["workload", "what"].map(str::to_owned).to_vec(),
        rows: ALL
            .iter()
            .map(|w| {
                vec![
                    Value::Text(w.name.to_owned()),
                    Value::Text(w.about.to_owned()),
                ]
            })
            .collect(),
        notes: Vec::new(),
        long: true,
    }
}

/// The sentences.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    let places = places(view);
    let names = allocators(view, &places);
    [
        (COST, "Which allocator is fastest over the workloads of the field?", "time"),
        (PEAK, "Which allocator needs least memory over them?", "memory at its peak"),
    ]
    .into_iter()
    .filter_map(|(metric, question, what)| {
        let list = over_all(view, &places, &names, metric);
        (!list.is_empty()).then(|| {
            let parts: Vec<String> = list
                .iter()
                .map(|mean| format!("{} {} ({} of {} cells)", mean.name, short(mean.ratio), mean.wins, mean.cells))
                .collect();
            Finding {
                question: question.to_owned(),
                asked_by: "larder".to_owned(),
                answer: format!(
                    "Geometric mean of the {what} over the least of each cell, and how often it is the least: {}.",
                    parts.join(", ")
                ),
                verdict: None, ..Finding::default() }
        })
    })
    .collect()
}

/// How an allocator stands over all places.
#[derive(Debug, Clone, PartialEq)]
struct Standing {
    name: &'static str,
    ratio: f64,
    wins: usize,
    cells: usize,
}

/// By ascending mean; only the places in which all of them ran count.
fn over_all(
    view: &RunView<'_>,
    places: &[Place<'_>],
    names: &[&'static str],
    metric: &str,
) -> Vec<Standing> {
    let complete: Vec<Vec<f64>> = places
        .iter()
        .filter_map(|place| {
            names
                .iter()
                .map(|name| middle(view, place, name, metric))
                .collect()
        })
        .collect();
    if complete.is_empty() {
        return Vec::new();
    }
    let mut list: Vec<Standing> = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let logs = complete.iter().map(|row| {
                let least = row.iter().copied().fold(f64::INFINITY, f64::min);
                row[i].ln() - least.ln()
            });
            let wins = logs.clone().filter(|log| *log <= 0.0).count();
            Standing {
                name,
                ratio: (logs.sum::<f64>() / complete.len() as f64)
                    .exp()
                    .min(f64::MAX),
                wins,
                cells: complete.len(),
            }
        })
        .collect();
    list.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    list
}
