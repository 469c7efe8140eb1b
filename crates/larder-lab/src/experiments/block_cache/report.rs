//! Tables and sentences.

use crate::frame::words::{ratio, short, word};
use crate::measure::RunView;
use crate::model::{Better, Block, Cell, Finding, Section, Table, Value};

use super::goals::{best, find, instructions, scaling};
use super::plan::{MEMORY, MISS, OURS, PEERS, SIZES, THREADED, THREADS, hit_group};

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

/// Every section, in reading order.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    let mut costs: Vec<Table> = SIZES
        .iter()
        .map(|blocks| {
            let title = format!("A get of one of {blocks} blocks that are in memory");
            by_cost(view, &hit_group(*blocks), "ns_per_hit", "ns", &title)
        })
        .collect();
    costs.push(by_cost(
        view,
        MISS,
        "ns_per_miss",
        "ns",
        "A block comes and another one leaves; no byte is moved",
    ));
    let memory = by_cost(
        view,
        MEMORY,
        "bytes_per_block",
        "B",
        "Memory for each block that is in, without its page",
    );
    let section = |title: &str, tables: Vec<Table>| Section {
        title: title.to_owned(),
        blocks: tables
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .map(Block::Table)
            .collect(),
    };
    [
        section("One thread", costs),
        section("Several threads", vec![threads(view)]),
        section("Memory and instructions", vec![memory, counts(view)]),
    ]
    .into_iter()
    .filter(|section| !section.blocks.is_empty())
    .collect()
}

fn by_cost(view: &RunView<'_>, group: &str, metric: &str, unit: &str, title: &str) -> Table {
    let peer = best(view, group, metric);
    let mut cells: Vec<(&Cell, f64)> = view
        .cells(group)
        .into_iter()
        .filter(|cell| !cell.twin)
        .filter_map(|cell| Some((cell, view.middle(group, cell, metric)?)))
        .collect();
    cells.sort_by(|a, b| a.1.total_cmp(&b.1));
    let rows = cells
        .into_iter()
        .map(|(cell, _)| {
            let against = match peer {
                Some(peer) if peer != cell => {
                    let c = view.compare(group, cell, peer, metric, Better::Lower);
                    c.ratio.map_or(Value::Empty, |r| Value::Ratio(r, c.verdict))
                }
                _ => Value::Empty,
            };
            vec![
                Value::Text(cell.contestant.clone()),
                estimate(view, group, cell, metric, unit),
                against,
            ]
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns: headings(&["cache", unit, "of the best peer"]),
        rows,
        notes: peer
            .map(|peer| format!("The best peer is {}.", peer.contestant))
            .into_iter()
            .collect(),
        long: false,
    }
}

fn threads(view: &RunView<'_>) -> Table {
    let rows = [OURS]
        .iter()
        .chain(&PEERS)
        .filter_map(|name| {
            let mut row = vec![Value::Text((*name).to_owned())];
            for threads in THREADS {
                let cell = find(view, THREADED, name, Some(threads))?;
                row.push(estimate(view, THREADED, cell, "mops_per_s", "Mop/s"));
            }
            row.push(
                scaling(view, name).map_or(Value::Empty, |e| Value::Estimate(e, "x".to_owned())),
            );
            Some(row)
        })
        .collect();
    Table {
        title: "Gets of 32,768 resident blocks by all threads together".to_owned(),
        columns: headings(&["cache", "1 thread", "2 threads", "over one"]),
        rows,
        notes: Vec::new(),
        long: false,
    }
}

fn counts(view: &RunView<'_>) -> Table {
    let rows = [OURS]
        .iter()
        .chain(&PEERS)
        .chain(&["loop"])
        .filter_map(|name| {
            let count = instructions(view, name)?;
            Some(vec![
                Value::Text((*name).to_owned()),
                Value::Number(count, String::new()),
            ])
        })
        .collect();
    Table {
        title: "Instructions of one hit, with the loop around it".to_owned(),
        columns: headings(&["cache", "instructions"]),
        rows,
        notes: vec!["Difference of two runs under callgrind, among 32,768 blocks.".to_owned()],
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
    let mut groups: Vec<(String, &str, &str, String)> = SIZES
        .iter()
        .map(|blocks| {
            let question = format!("What does a hit among {blocks} blocks cost?");
            (hit_group(*blocks), "ns_per_hit", "ns", question)
        })
        .collect();
    let question = "What does it cost to bring a block for which another one leaves?".to_owned();
    groups.push((MISS.to_owned(), "ns_per_miss", "ns", question));
    let question = "How much memory does a cached page take beside its bytes?".to_owned();
    groups.push((MEMORY.to_owned(), "bytes_per_block", "bytes", question));
    for (group, metric, unit, question) in groups {
        let (Some(ours), Some(peer)) = (find(view, &group, OURS, None), best(view, &group, metric))
        else {
            continue;
        };
        let c = view.compare(&group, ours, peer, metric, Better::Lower);
        let (Some(r), Some(mine), Some(theirs)) = (
            c.ratio,
            view.middle(&group, ours, metric),
            view.middle(&group, peer, metric),
        ) else {
            continue;
        };
        let answer = format!(
            "{} {unit}, {} of the best peer ({}, {} {unit}): {}.",
            short(mine),
            ratio(&r),
            peer.contestant,
            short(theirs),
            match metric {
                "bytes_per_block" => word(c.verdict)
                    .replace("faster", "less")
                    .replace("slower", "more"),
                _ => word(c.verdict),
            }
        );
        // The word stands in the sentence; of bytes it is not faster or slower.
        let verdict = (metric != "bytes_per_block").then_some(c.verdict);
        all.push(finding(&question, answer, verdict));
    }
    if let Some(ours) = scaling(view, OURS) {
        let others: Vec<String> = PEERS
            .iter()
            .filter_map(|name| Some(format!("{name} {}", ratio(&scaling(view, name)?))))
            .collect();
        let answer = format!(
            "Two threads make {} times the gets of one; peers: {}.",
            ratio(&ours),
            if others.is_empty() {
                "none ran".to_owned()
            } else {
                others.join(", ")
            }
        );
        all.push(finding("Does a second thread help?", answer, None));
    }
    all
}
