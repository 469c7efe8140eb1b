//! The page of a simulation: tables and charts by the report's machinery.

use std::path::Path;

use super::curves::{CurveRow, each_rule_once};
use super::print;
use super::work::Bend;
use crate::cli::failure::Outcome;
use crate::cli::report::write_page;
use crate::machine;
use crate::model::{
    Analysis, Axis, Block, Chart, Finding, Point, Provenance, RunRecord, Scale, Section, Series,
    Table, Value,
};
use crate::report::Document;
use crate::store;
use larder_sim::{Placed, Row, place, standing};

/// Writes the page.
pub(super) fn write(rows: &[Row], bends: &[Bend], curves: &[CurveRow], path: &Path) -> Outcome {
    let placed = place(rows);
    let mut sections = Vec::new();
    let mut traces: Vec<&str> = Vec::new();
    for name in rows
        .iter()
        .map(|r| r.trace.as_str())
        .chain(curves.iter().map(|c| c.trace.as_str()))
    {
        if !traces.contains(&name) {
            traces.push(name);
        }
    }
    for trace in traces {
        let here: Vec<&Placed> = placed.iter().filter(|p| p.row.trace == trace).collect();
        let mut blocks = Vec::new();
        if let Some(first) = here.first() {
            let c = &first.row.counts;
            blocks.push(Block::Text(format!(
                "Format {}: {} uses of {} blocks by {} requests; {} writes, {} read ahead, {} removed.",
                first.row.format, c.uses, c.blocks, c.requests, c.writes, c.readahead, c.removed
            )));
            blocks.push(Block::Table(table(&here)));
            blocks.extend(chart(&here).map(Block::Chart));
        }
        let curves: Vec<&CurveRow> = curves.iter().filter(|c| c.trace == trace).collect();
        if !curves.is_empty() {
            blocks.push(Block::Chart(curve_chart(&curves)));
            blocks.push(Block::Table(errors(&curves)));
        }
        sections.push(Section {
            title: trace.to_owned(),
            blocks,
        });
    }
    let standing = standing(&placed);
    if standing.len() > 2 {
        sections.insert(
            0,
            Section {
                title: "All traces and sizes".to_owned(),
                blocks: vec![Block::Table(means(&standing))],
            },
        );
    }
    let analysis = Analysis {
        experiment: "sim".to_owned(),
        title: "Replacement rules over traces".to_owned(),
        findings: findings(&placed, bends),
        sections,
        ..Analysis::default()
    };
    let mut run = RunRecord {
        schema: store::SCHEMA,
        experiment: "sim".to_owned(),
        started: jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        argv: std::env::args().collect(),
        depth: "full".to_owned(),
        machine: machine::capture(),
        ..RunRecord::default()
    };
    run.id = store::id_of(&run);
    write_page(
        &Document {
            runs: vec![(run, analysis)],
            submissions: Vec::new(),
        },
        path,
    )
}

/// What the page opens with.
fn findings(placed: &[Placed], bends: &[Bend]) -> Vec<Finding> {
    let question = |question: &str, answer: Vec<String>| Finding {
        question: question.to_owned(),
        answer: answer.join("\n"),
        ..Finding::default()
    };
    let mut findings = vec![
        question(
            "Which rule, at the sizes asked for?",
            print::best_rules(placed, bends),
        ),
        question(
            "Which rule, on the modelled disk?",
            print::best_on_disk(placed, bends),
        ),
        question("Which size?", print::best_sizes(bends)),
    ];
    findings.retain(|f| !f.answer.is_empty());
    findings
}

fn number(v: f64, unit: &str) -> Value {
    Value::Number(v, unit.to_owned())
}

fn table(placed: &[&Placed]) -> Table {
    let count = |n: u64| Value::Count(i64::try_from(n).unwrap_or(i64::MAX));
    let on_disk = placed.iter().any(|p| p.row.disk.is_some());
    let rows = placed.iter().map(|p| {
        let mut row = vec![
            Value::Text(p.row.policy.clone()),
            count(p.row.size as u64),
            count(p.row.tally.hits),
            count(p.row.tally.misses),
            number(p.hit_percent, ""),
        ];
        match p.row.disk {
            Some(disk) => row.extend([
                count(disk.read),
                count(disk.written),
                count(disk.commands),
                number(disk.total_s, "s"),
            ]),
            None => row.push(p.gap_closed_percent.map_or(Value::Empty, |c| number(c, ""))),
        }
        row
    });
    let mut columns = vec!["rule", "blocks", "hits", "misses", "hits %"];
    let note = if on_disk {
        columns.extend(["blocks read", "blocks written", "commands", "disk"]);
        "disk: seconds of the model."
    } else {
        columns.push("LRU to OPT %");
        "LRU to OPT: 0 is LRU's hits, 100 those of OPT, which knows the future."
    };
    Table {
        notes: vec![note.to_owned()],
        long: true,
        ..Table::new("Hits", &columns, rows)
    }
}

fn series(name: String, points: impl Iterator<Item = (usize, f64)>) -> Series {
    Series {
        name,
        points: points.map(|(x, y)| Point::bare(x as f64, y)).collect(),
        from: Provenance::Measured,
    }
}

fn hits_by_size(title: &str, series: Vec<Series>) -> Chart {
    Chart {
        title: title.to_owned(),
        x: Axis::new("blocks of the cache", Scale::Log),
        y: Axis::new("hits, % of the uses", Scale::Linear),
        series,
        marks: Vec::new(),
        categories: Vec::new(),
    }
}

/// Most lines that a chart can show apart.
const LINES: usize = 8;

/// Hits by size; nothing for a single size. With many rules: LRU, OPT and the best others.
fn chart(placed: &[&Placed]) -> Option<Chart> {
    let mut lines: Vec<Series> = Vec::new();
    for p in placed {
        if !lines.iter().any(|s| s.name == p.row.policy) {
            let mut points: Vec<(usize, f64)> = placed
                .iter()
                .filter(|o| o.row.policy == p.row.policy)
                .map(|o| (o.row.size, o.hit_percent))
                .collect();
            points.sort_unstable_by_key(|(size, _)| *size);
            points.dedup_by_key(|(size, _)| *size);
            lines.push(series(p.row.policy.clone(), points.into_iter()));
        }
    }
    if lines.first()?.points.len() < 2 {
        return None;
    }
    let mean =
        |s: &Series| s.points.iter().map(|p| p.y).sum::<f64>() / s.points.len().max(1) as f64;
    let rank = |s: &Series| matches!(s.name.as_str(), "lru" | "opt");
    lines.sort_by(|a, b| rank(b).cmp(&rank(a)).then(mean(b).total_cmp(&mean(a))));
    lines.truncate(LINES);
    Some(hits_by_size("Hits by size", lines))
}

fn curve_chart(curves: &[&CurveRow]) -> Chart {
    let shown = each_rule_once(curves);
    let lines = shown.into_iter().take(LINES).map(|c| {
        let points = c.sizes.iter().copied().zip(c.hit_percent.iter().copied());
        series(format!("{}, {}", c.policy, c.method), points)
    });
    hits_by_size("Curves", lines.collect())
}

fn errors(curves: &[&CurveRow]) -> Table {
    let rows = curves.iter().map(|c| {
        let error = c.error_points.as_ref();
        vec![
            Value::Text(c.policy.clone()),
            Value::Text(c.method.clone()),
            number(c.rate * 100.0, ""),
            error.map_or(Value::Empty, |e| number(e.mean, "")),
            error.map_or(Value::Empty, |e| number(e.most, "")),
        ]
    });
    Table::new(
        "How far samples are off, in points of hit percent",
        &["rule", "method", "blocks looked at %", "mean", "most"],
        rows,
    )
}

fn means(standing: &[(String, f64, f64, usize)]) -> Table {
    let rows = standing.iter().map(|(policy, mean, least, cells)| {
        vec![
            Value::Text(policy.clone()),
            number(*mean, ""),
            number(*least, ""),
            Value::Count(*cells as i64),
        ]
    });
    Table::new(
        "Share of the way from LRU to OPT, %",
        &["rule", "mean", "least", "cells"],
        rows,
    )
}
