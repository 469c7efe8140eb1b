//! Tables, the chart of threads, and the sentences.

use crate::frame::words::{ratio, short, word};
use crate::measure::RunView;
use crate::model::{
    Axis, Better, Block, Cell, Chart, Finding, Point, Provenance, Scale, Section, Series, Table,
    Value,
};

use super::plan::{
    DEEP, GROWTH, HANDOVER, INSTRUCTIONS, OURS, PAIR, PEERS, THREADED, THREADS, ZEROED_DEPTHS,
    zeroed_group,
};
use super::ring::SLOTS;
use super::rows::{COST, RATE, best, find, held_per_thread, median_of, scaling};

/// Every section, in reading order.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    let mut one = vec![
        (PAIR.to_owned(), "One page: get, write 8 bytes, put"),
        (DEEP.to_owned(), "256 pages out at a time, per page"),
    ];
    for depth in ZEROED_DEPTHS {
        one.push((
            zeroed_group(depth),
            "Pages of zeros, written and put back, per page",
        ));
    }
    let blocks = one
        .into_iter()
        .map(|(group, title)| Block::Table(costs(view, &group, &format!("{title} ({group})"))))
        .collect();
    vec![
        Section {
            title: "One thread".to_owned(),
            blocks,
        },
        Section {
            title: "From thread to thread".to_owned(),
            blocks: vec![Block::Table(handover(view))],
        },
        Section {
            title: "Many threads".to_owned(),
            blocks: vec![
                Block::Table(threads(view)),
                Block::Chart(scaling_chart(view)),
            ],
        },
        Section {
            title: "Instructions".to_owned(),
            blocks: vec![Block::Table(instructions(view))],
        },
    ]
}

fn text(cell: &Cell) -> Value {
    Value::Text(cell.contestant.clone())
}

fn estimate(view: &RunView<'_>, group: &str, cell: &Cell, metric: &str, unit: &str) -> Value {
    match view.estimate(group, cell, metric) {
        Some(estimate) => Value::Estimate(estimate, unit.to_owned()),
        None => view
            .middle(group, cell, metric)
            .map_or(Value::Empty, |value| Value::Number(value, unit.to_owned())),
    }
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The contestants of a group by ascending cost.
fn by_cost<'a>(view: &RunView<'a>, group: &str) -> Vec<&'a Cell> {
    let mut cells: Vec<(&Cell, f64)> = view
        .cells(group)
        .into_iter()
        .filter(|cell| !cell.twin)
        .filter_map(|cell| Some((cell, view.middle(group, cell, COST)?)))
        .collect();
    cells.sort_by(|a, b| a.1.total_cmp(&b.1));
    cells.into_iter().map(|(cell, _)| cell).collect()
}

fn costs(view: &RunView<'_>, group: &str, title: &str) -> Table {
    let peer = best(view, group, &PEERS, None, COST, false);
    let rows = by_cost(view, group)
        .into_iter()
        .map(|cell| {
            vec![
                text(cell),
                estimate(view, group, cell, COST, "ns"),
                to_peer(view, group, cell, peer, COST, Better::Lower),
                estimate(view, group, cell, "held_bytes", "B"),
            ]
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns: headings(&["supplier", "CPU time", "of the best peer", "held"]),
        rows,
        notes: peer
            .map(|peer| format!("The best peer is {}.", peer.contestant))
            .into_iter()
            .collect(),
        long: false,
    }
}

fn to_peer(
    view: &RunView<'_>,
    group: &str,
    cell: &Cell,
    peer: Option<&Cell>,
    metric: &str,
    better: Better,
) -> Value {
    match peer {
        Some(peer) if peer != cell => {
            let c = view.compare(group, cell, peer, metric, better);
            c.ratio.map_or(Value::Empty, |r| Value::Ratio(r, c.verdict))
        }
        _ => Value::Empty,
    }
}

fn handover(view: &RunView<'_>) -> Table {
    let peer = best(view, HANDOVER, &PEERS, None, COST, false);
    let mut rows: Vec<_> = by_cost(view, HANDOVER)
        .into_iter()
        .map(|cell| {
            vec![
                text(cell),
                estimate(view, HANDOVER, cell, COST, "ns"),
                to_peer(view, HANDOVER, cell, peer, COST, Better::Lower),
                estimate(view, HANDOVER, cell, "held_bytes", "B"),
                estimate(view, HANDOVER, cell, "growth_bytes", "B"),
            ]
        })
        .collect();
    for cell in by_cost(view, GROWTH) {
        rows.push(vec![
            Value::Text(format!("{} (long run)", cell.contestant)),
            estimate(view, GROWTH, cell, COST, "ns"),
            Value::Empty,
            estimate(view, GROWTH, cell, "held_bytes", "B"),
            estimate(view, GROWTH, cell, "growth_bytes", "B"),
        ]);
    }
    Table {
        title: "One thread takes and writes, another reads and puts back".to_owned(),
        columns: headings(&[
            "supplier",
            "wall time per page",
            "of the best peer",
            "held",
            "gained after the first fifth",
        ]),
        rows,
        notes: vec![format!(
            "The same ring of {SLOTS} pages lies between the two for every supplier."
        )],
        long: false,
    }
}

fn threads(view: &RunView<'_>) -> Table {
    let mut rows = Vec::new();
    for n in THREADS {
        let peer = best(view, THREADED, &PEERS, Some(n), RATE, true);
        for name in OURS.iter().chain(&PEERS) {
            let Some(cell) = find(view, THREADED, name, Some(n)) else {
                continue;
            };
            let scale = scaling(view, name, n);
            rows.push(vec![
                Value::Count(n),
                text(cell),
                estimate(view, THREADED, cell, RATE, "Mop/s"),
                to_peer(view, THREADED, cell, peer, RATE, Better::Higher),
                median_of(&scale).map_or(Value::Empty, |e| Value::Estimate(e, String::new())),
                estimate(view, THREADED, cell, "held_bytes", "B"),
            ]);
        }
    }
    Table {
        title: "Pairs per second of all threads together".to_owned(),
        columns: headings(&[
            "threads",
            "supplier",
            "rate",
            "of the best peer",
            "of one thread",
            "held by idle threads",
        ]),
        rows,
        notes: vec![
            "Held is read while all threads live and have no page in hand, without their stacks."
                .to_owned(),
        ],
        long: false,
    }
}

fn scaling_chart(view: &RunView<'_>) -> Chart {
    let series = OURS
        .iter()
        .chain(&PEERS)
        .map(|name| Series {
            name: (*name).to_owned(),
            points: THREADS
                .iter()
                .filter_map(|n| {
                    let cell = find(view, THREADED, name, Some(*n))?;
                    let e = view.estimate(THREADED, cell, RATE)?;
                    Some(Point {
                        x: *n as f64,
                        y: e.value,
                        lo: e.lo,
                        hi: e.hi,
                    })
                })
                .collect(),
            from: Provenance::Measured,
        })
        .filter(|series: &Series| !series.points.is_empty())
        .collect();
    Chart {
        title: "Pairs per second by number of threads".to_owned(),
        x: Axis {
            label: "threads".to_owned(),
            scale: Scale::Log,
        },
        y: Axis {
            label: "million pairs per second".to_owned(),
            scale: Scale::Log,
        },
        series,
        marks: Vec::new(),
        categories: Vec::new(),
    }
}

fn instructions(view: &RunView<'_>) -> Table {
    let rows = view
        .cells(INSTRUCTIONS)
        .into_iter()
        .filter(|cell| !cell.twin)
        .filter_map(|cell| {
            let count = view.middle(INSTRUCTIONS, cell, "instructions")?;
            Some(vec![
                Value::Text(cell.params.text("supplier").unwrap_or("unknown").to_owned()),
                Value::Number(count, String::new()),
            ])
        })
        .collect();
    Table {
        title: "Instructions of one warm get, write and put".to_owned(),
        columns: headings(&["supplier", "instructions"]),
        rows,
        notes: vec!["Difference of two runs under callgrind, the loop included. Under valgrind the per-CPU path runs as its locked fallback.".to_owned()],
        long: false,
    }
}

fn finding(question: &str, answer: String, verdict: Option<crate::stats::Verdict>) -> Finding {
    Finding {
        question: question.to_owned(),
        asked_by: "larder".to_owned(),
        answer,
        verdict,
        ..Finding::default()
    }
}

/// The sentences.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    let groups = [
        (
            PAIR.to_owned(),
            "What does a warm page cost, there and back?",
        ),
        (DEEP.to_owned(), "What does a page cost when 256 are out?"),
        (zeroed_group(64), "What does a page of zeros cost?"),
        (
            HANDOVER.to_owned(),
            "What does a page cost that another thread puts back?",
        ),
    ];
    for (group, question) in groups {
        let Some(peer) = best(view, &group, &PEERS, None, COST, false) else {
            continue;
        };
        for ours in OURS {
            let Some(cell) = find(view, &group, ours, None) else {
                continue;
            };
            let c = view.compare(&group, cell, peer, COST, Better::Lower);
            let (Some(r), Some(mine), Some(theirs)) = (
                c.ratio,
                view.middle(&group, cell, COST),
                view.middle(&group, peer, COST),
            ) else {
                continue;
            };
            all.push(finding(
                question,
                format!(
                    "{ours}: {} ns a page, {} of the best peer ({}, {} ns): {}.",
                    short(mine),
                    ratio(&r),
                    peer.contestant,
                    short(theirs),
                    word(c.verdict)
                ),
                Some(c.verdict),
            ));
        }
    }
    all.extend(memory(view));
    all
}

/// Who pays memory per thread.
fn memory(view: &RunView<'_>) -> Option<Finding> {
    let parts: Vec<String> = OURS
        .iter()
        .chain(&PEERS)
        .filter_map(|name| {
            let e = median_of(&held_per_thread(view, name))?;
            Some(format!("{name} {:.0} [{:.0}, {:.0}]", e.value, e.lo, e.hi))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        finding(
            "Does memory follow the CPUs or the threads?",
            format!(
                "Bytes that each thread from the 9th to the 64th adds to what is held: {}.",
                parts.join(", ")
            ),
            None,
        )
    })
}
