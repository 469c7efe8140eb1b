//! Tables and sentences.

use crate::frame::words::{ratio, short, word};
use crate::measure::RunView;
use crate::model::{Better, Block, Finding, Section, Table, Value};

use super::LARDER;
use super::goals::MOST;
use super::rows::{
    CPU, FAULTS, PEAK, Row, SECONDS, beyond_chance, find, mallocs, name, rows, says_the_same,
};
use super::work::ALL;

/// The tables.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    let rows = rows(view);
    if rows.is_empty() {
        return Vec::new();
    }
    let names = mallocs(&rows);
    let table = |metric, unit, title: &str, note: &str| {
        Block::Table(by_program(view, &rows, &names, metric, unit, title, note))
    };
    vec![
        Section {
            title: "Time".to_owned(),
            blocks: vec![
                table(
                    SECONDS,
                    "s",
                    "Wall time with the system's malloc, and with the others as shares of it",
                    "A share below 1 is faster. Paired by round; in brackets 95 %.",
                ),
                table(
                    CPU,
                    "s",
                    "User and system time, the program and what it started",
                    "",
                ),
            ],
        },
        Section {
            title: "Memory".to_owned(),
            blocks: vec![
                table(
                    PEAK,
                    "B",
                    "Largest resident set of any process",
                    "At least that of the lab's own process, some ten megabytes: small programs look alike.",
                ),
                table(FAULTS, "", "Page faults", ""),
            ],
        },
        Section {
            title: "The programs".to_owned(),
            blocks: vec![Block::Table(what_they_do(&rows))],
        },
    ]
}

fn by_program(
    view: &RunView<'_>,
    rows: &[Row<'_>],
    names: &[String],
    metric: &str,
    unit: &str,
    title: &str,
    note: &str,
) -> Table {
    let mut columns = vec!["program".to_owned(), "system".to_owned()];
    columns.extend(names.iter().cloned());
    let rows = rows
        .iter()
        .map(|row| {
            let mut values = vec![Value::Text(row.program.to_owned())];
            values.push(match view.estimate(row.program, row.system, metric) {
                Some(estimate) => Value::Estimate(estimate, unit.to_owned()),
                None => view
                    .middle(row.program, row.system, metric)
                    .map_or(Value::Empty, |v| Value::Number(v, unit.to_owned())),
            });
            values.extend(names.iter().map(|malloc| share(view, row, malloc, metric)));
            values
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns,
        rows,
        notes: [note]
            .into_iter()
            .filter(|n| !n.is_empty())
            .map(str::to_owned)
            .collect(),
        long: false,
    }
}

fn share(view: &RunView<'_>, row: &Row<'_>, malloc: &str, metric: &str) -> Value {
    if let Some(cell) = find(view, row, malloc) {
        let c = view.compare(row.program, cell, row.system, metric, Better::Lower);
        return c.ratio.map_or(Value::Empty, |r| Value::Ratio(r, c.verdict));
    }
    let ran = row.others.iter().any(|cell| name(cell) == malloc);
    if ran {
        Value::Text("another output".to_owned())
    } else {
        Value::Empty
    }
}

fn what_they_do(rows: &[Row<'_>]) -> Table {
    Table {
        title: "What they do".to_owned(),
        columns: ["program", "what"].map(str::to_owned).to_vec(),
        rows: ALL
            .iter()
            .filter(|program| rows.iter().any(|row| row.program == program.name))
            .map(|program| {
                vec![
                    Value::Text(program.name.to_owned()),
                    Value::Text(program.about.to_owned()),
                ]
            })
            .collect(),
        notes: Vec::new(),
        long: true,
    }
}

/// The sentences.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    let rows = rows(view);
    let mut findings = Vec::new();
    findings.extend(slower(view, &rows));
    findings.extend(over_all(view, &rows));
    findings
}

fn finding(question: &str, answer: String) -> Finding {
    Finding {
        question: question.to_owned(),
        asked_by: "larder".to_owned(),
        answer,
        verdict: None,
        ..Finding::default()
    }
}

/// Which programs are surely slower, surely not, and which this run cannot tell.
fn slower(view: &RunView<'_>, rows: &[Row<'_>]) -> Option<Finding> {
    let (mut slow, mut good, mut open, mut broken) = (vec![], vec![], vec![], vec![]);
    for row in rows {
        let Some(own) = row.others.iter().copied().find(|cell| name(cell) == LARDER) else {
            continue;
        };
        if says_the_same(view, row, own) != Some(true) {
            broken.push(row.program.to_owned());
            continue;
        }
        let c = view.compare(row.program, own, row.system, SECONDS, Better::Lower);
        let Some(wall) = c.ratio else { continue };
        let cpu = view.ratio(row.program, own, row.system, CPU);
        let text = format!(
            "{} {} ({}{})",
            row.program,
            ratio(&wall),
            word(c.verdict),
            cpu.map_or_else(String::new, |cpu| format!(
                "; CPU time {}",
                short(cpu.value)
            ))
        );
        if wall.lo > MOST && beyond_chance(&c) {
            slow.push(text);
        } else if wall.hi <= MOST {
            good.push(text);
        } else {
            open.push(text);
        }
    }
    let all = slow.len() + good.len() + open.len() + broken.len();
    if all == 0 {
        return None;
    }
    let mut parts = vec![match (slow.len(), open.len(), broken.len()) {
        (0, 0, 0) => format!("None of {all} programs is slower by more than 1 %."),
        (0, open, 0) => format!(
            "None of {all} programs is surely slower by more than 1 %: {} surely not, {open} this run cannot tell.",
            good.len()
        ),
        (slow, _, 0) => format!("Slower by more than 1 %: {slow} of {all} programs."),
        (slow, _, broken) => {
            format!(
                "Slower by more than 1 %: {slow} of {all} programs; {broken} say something else."
            )
        }
    }];
    for (title, list) in [
        ("Another output than with the system's malloc", broken),
        ("Slower", slow),
        ("Not slower", good),
        ("Cannot be told", open),
    ] {
        if !list.is_empty() {
            parts.push(format!("{title}: {}.", list.join(", ")));
        }
    }
    Some(finding(
        "Is any real program slower with larder's malloc preloaded than with the system's, by more than 1 %?",
        parts.join(" "),
    ))
}

/// Geometric means over the programs that every malloc ran.
fn over_all(view: &RunView<'_>, rows: &[Row<'_>]) -> Option<Finding> {
    let names = mallocs(rows);
    let complete: Vec<&Row<'_>> = rows
        .iter()
        .filter(|row| names.iter().all(|malloc| find(view, row, malloc).is_some()))
        .collect();
    let mean = |malloc: &str, metric: &str| {
        let logs: Vec<f64> = complete
            .iter()
            .filter_map(|row| {
                let own = view.middle(row.program, find(view, row, malloc)?, metric)?;
                let system = view.middle(row.program, row.system, metric)?;
                (own > 0.0 && system > 0.0).then(|| own.ln() - system.ln())
            })
            .filter(|log| log.is_finite())
            .collect();
        (!logs.is_empty() && logs.len() == complete.len())
            .then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    };
    let parts: Vec<String> = names
        .iter()
        .filter_map(|malloc| {
            Some(format!(
                "{malloc} {} of the time and {} of the peak",
                short(mean(malloc, SECONDS)?),
                short(mean(malloc, PEAK)?)
            ))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        finding(
            "How do the preloaded mallocs fare over all programs?",
            format!(
                "Geometric means over the {} programs that all of them ran, the system's malloc is 1: {}.",
                complete.len(),
                parts.join("; ")
            ),
        )
    })
}

/// Programs whose output depends on the malloc, or on chance.
pub(super) fn warnings(view: &RunView<'_>) -> Vec<String> {
    let rows = rows(view);
    rows.iter()
        .flat_map(|row| {
            row.others
                .iter()
                .filter(|cell| says_the_same(view, row, cell) == Some(false))
                .map(move |cell| {
                    format!(
                        "{} wrote something else with {} than with the system's malloc; it is not compared",
                        row.program,
                        name(cell)
                    )
                })
        })
        .collect()
}
