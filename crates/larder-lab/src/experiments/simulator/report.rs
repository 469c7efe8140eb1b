//! Goals, tables and sentences.

use crate::frame::words::{Bound, ratio, short};
use crate::measure::RunView;
use crate::model::{Block, Cell, Finding, Goal, Section, Table, Value};

use super::plan::{DECODED, OURS, PEER, RULES, SWEEP, SWEPT, THREADS, ZST};
use super::{HITS, SPEED};

/// Times libCacheSim's speed, and requests of all caches by second in a sweep.
const DECODED_GOAL: f64 = 10.0;
const ZST_GOAL: f64 = 3.0;
const SWEEP_GOAL: f64 = 100.0;

fn find<'a>(
    view: &RunView<'a>,
    group: &str,
    contestant: &str,
    rule: &str,
    threads: Option<i64>,
) -> Option<&'a Cell> {
    view.cells(group).into_iter().find(|cell| {
        cell.contestant == contestant
            && !cell.twin
            && cell.params.text("rule").is_ok_and(|name| name == rule)
            && threads.is_none_or(|n| cell.params.int("threads").is_ok_and(|m| m == n))
    })
}

fn pair<'a>(view: &RunView<'a>, group: &str, rule: &str) -> Option<(&'a Cell, &'a Cell)> {
    let of = |name| find(view, group, name, rule, None);
    Some((of(OURS)?, of(PEER)?))
}

/// Every goal, met or not.
pub(super) fn goals(view: &RunView<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (group, bound, what) in [
        (DECODED, DECODED_GOAL, "requests decoded before, one thread"),
        (ZST, ZST_GOAL, "from a compressed oracleGeneral file"),
    ] {
        for rule in RULES {
            let pair = pair(view, group, rule);
            let note = match pair {
                Some(_) => "",
                None => "libcachesim did not run; pip install libcachesim",
            };
            goals.push(Bound::AtLeast(bound).goal(
                format!("speed under {rule}, {what}"),
                "libCacheSim",
                pair.and_then(|(ours, theirs)| view.ratio(group, ours, theirs, SPEED)),
                None,
                note,
            ));
        }
    }
    for rule in SWEPT {
        let most = THREADS.into_iter().next_back();
        let cell = find(view, SWEEP, OURS, rule, most);
        goals.push(
            Bound::AtLeast(SWEEP_GOAL)
                .goal(
                    format!("requests times sizes by second, 16 sizes under {rule}, 2 threads"),
                    "",
                    cell.and_then(|cell| view.estimate(SWEEP, cell, SPEED)),
                    None,
                    "",
                )
                .in_unit("M/s"),
        );
    }
    goals
}

fn number(view: &RunView<'_>, group: &str, cell: Option<&Cell>, metric: &str, unit: &str) -> Value {
    cell.and_then(|cell| view.middle(group, cell, metric))
        .map_or(Value::Empty, |value| Value::Number(value, unit.to_owned()))
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn compared(view: &RunView<'_>, group: &str, title: &str) -> Table {
    let mut rules: Vec<&str> = RULES.to_vec();
    rules.extend(
        view.cells(group)
            .into_iter()
            .filter_map(|cell| cell.params.text("rule").ok())
            .filter(|rule| !RULES.contains(rule))
            .take(1),
    );
    let rows = rules
        .into_iter()
        .filter_map(|rule| {
            let ours = find(view, group, OURS, rule, None)?;
            let theirs = find(view, group, PEER, rule, None);
            Some(vec![
                Value::Text(rule.to_owned()),
                number(view, group, Some(ours), SPEED, "M/s"),
                number(view, group, theirs, SPEED, "M/s"),
                theirs
                    .and_then(|theirs| view.ratio(group, ours, theirs, SPEED))
                    .map_or(Value::Empty, |r| Value::Estimate(r, "x".to_owned())),
                number(view, group, Some(ours), HITS, "%"),
                number(view, group, theirs, HITS, "%"),
            ])
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns: headings(&["rule", OURS, PEER, "times", "hits", "hits there"]),
        rows,
        notes: vec![
            "Requests of Zipf's law for 100,000 blocks, a cache of 10,000; CPU time.".to_owned(),
            "libCacheSim's S3-FIFO and ARC are variants; LRU and OPT must agree to the last hit."
                .to_owned(),
        ],
        long: false,
    }
}

fn swept(view: &RunView<'_>) -> Table {
    let rows = SWEPT
        .iter()
        .filter_map(|rule| {
            let mut row = vec![Value::Text((*rule).to_owned())];
            for threads in THREADS {
                let cell = find(view, SWEEP, OURS, rule, Some(threads))?;
                row.push(number(view, SWEEP, Some(cell), SPEED, "M/s"));
            }
            Some(row)
        })
        .collect();
    Table {
        title: "Sixteen sizes over one trace in memory, requests of all of them".to_owned(),
        columns: headings(&["rule", "1 thread", "2 threads"]),
        rows,
        notes: Vec::new(),
        long: false,
    }
}

/// Every section, in reading order.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    let tables = [
        compared(view, DECODED, "The trace is in memory, its blocks numbered"),
        compared(
            view,
            ZST,
            "The trace is read, decompressed and its blocks are numbered",
        ),
        swept(view),
    ];
    let blocks: Vec<Block> = tables
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .map(Block::Table)
        .collect();
    if blocks.is_empty() {
        return Vec::new();
    }
    vec![Section {
        title: "Requests by second".to_owned(),
        blocks,
    }]
}

/// The sentences.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    for (group, what) in [(DECODED, "in memory"), (ZST, "from a compressed file")] {
        let parts: Vec<String> = RULES
            .iter()
            .filter_map(|rule| {
                let (ours, theirs) = pair(view, group, rule)?;
                let times = view.ratio(group, ours, theirs, SPEED)?;
                let speed = short(view.middle(group, ours, SPEED)?);
                Some(format!("{rule} {} ({speed} M/s)", ratio(&times)))
            })
            .collect();
        if !parts.is_empty() {
            all.push(Finding {
                question: format!("How much faster than libCacheSim is a simulation {what}?"),
                asked_by: "larder".to_owned(),
                answer: format!("Times its speed: {}.", parts.join(", ")),
                verdict: None,
                ..Finding::default()
            });
        }
    }
    all.extend(agreement(view));
    all
}

/// Do both count the same hits where the rule leaves no choice?
fn agreement(view: &RunView<'_>) -> Option<Finding> {
    let apart: Vec<(&str, f64)> = ["lru", "opt"]
        .into_iter()
        .filter_map(|rule| {
            let (ours, theirs) = pair(view, DECODED, rule)?;
            let hits = |cell| view.middle(DECODED, cell, HITS);
            Some((rule, (hits(ours)? - hits(theirs)?).abs()))
        })
        .collect();
    if apart.is_empty() {
        return None;
    }
    // Shares that were printed and read again may differ in the last digits.
    let wrong: Vec<String> = apart
        .iter()
        .filter(|(_, points)| *points > 1e-6)
        .map(|(rule, points)| format!("{rule} by {} points", short(*points)))
        .collect();
    Some(Finding {
        question: "Do both simulators count the same hits?".to_owned(),
        asked_by: "larder".to_owned(),
        answer: if wrong.is_empty() {
            "Yes, to the last one, under LRU and OPT, whose definitions leave no choice.".to_owned()
        } else {
            format!("No: they differ under {}.", wrong.join(" and "))
        },
        verdict: None,
        ..Finding::default()
    })
}
