//! His two tables again, and the others.

use crate::measure::RunView;
use crate::model::{Block, Cell, Section, Table, Value};
use crate::published;

use super::counted::{self, replayed};
use super::curve::{at, cells};
use super::elsewhere::ALGORITHMS;
use super::findings::COST;
use super::plan::{
    CROSSING, DESCRIPTORS, FRESH, KEEPING, LARGE, LAST, NEAR, PACKED, PASSES, PEERS, PORTS,
    PROCESSES, REUSE, REUSE_AT, SCATTERED,
};
use super::reasons::reuse_cell;
use super::reuse::RULES;

/// Every section, in reading order.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    vec![
        Section {
            title: "The tables of 2002, again".to_owned(),
            blocks: vec![Block::Table(first(view)), Block::Table(second(view))],
        },
        counted::section(view),
        Section {
            title: "All algorithms".to_owned(),
            blocks: vec![
                Block::Table(algorithms(view)),
                Block::Table(elsewhere(
                    view,
                    SCATTERED,
                    "The same where tasks are scattered over memory",
                )),
                Block::Table(elsewhere(
                    view,
                    PACKED,
                    "The same with tasks of 28 bytes, as in his harness",
                )),
                Block::Table(group_table(
                    view,
                    FRESH,
                    "From a fresh start: nothing was freed before",
                )),
                Block::Table(group_table(
                    view,
                    PEERS,
                    "Crates of others, aged start, tasks near each other",
                )),
                Block::Table(group_table(view, LAST, "The last id: A = 32767")),
                Block::Table(pass_table(view)),
            ],
        },
        Section {
            title: "What comes back when, and spaces of more bits".to_owned(),
            blocks: vec![Block::Table(reuse(view)), Block::Table(large(view))],
        },
        Section {
            title: "The kernel".to_owned(),
            blocks: vec![Block::Table(kernel(view))],
        },
    ]
}

fn estimate(view: &RunView<'_>, group: &str, cell: &Cell, metric: &str, unit: &str) -> Value {
    match view.estimate(group, cell, metric) {
        Some(estimate) => Value::Estimate(estimate, unit.to_owned()),
        None => view
            .middle(group, cell, metric)
            .map_or(Value::Empty, |value| Value::Number(value, unit.to_owned())),
    }
}

fn cost_at(view: &RunView<'_>, name: &str, tasks: i64) -> Value {
    cost_in(view, NEAR, name, tasks)
}

fn cost_in(view: &RunView<'_>, group: &str, name: &str, tasks: i64) -> Value {
    at(view, group, name, tasks).map_or(Value::Empty, |cell| {
        estimate(view, group, &cell, COST, "us")
    })
}

fn searched(view: &RunView<'_>, series: &str, tasks: u32) -> Value {
    replayed(view, series, tasks).map_or(Value::Empty, |s| Value::Number(s, String::new()))
}

fn his(value: f64, unit: &str) -> Value {
    Value::Published(value, unit.to_owned())
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const NOTES: [&str; 2] = [
    "His columns as he laid them out, ours after each. S is played with his random numbers. G of ours is of this machine, with tasks of 1.7 KB near each other; his is of another machine and a shape.",
    "A quick run times a dozen of his A with fewer allocations; --full times all of them with his.",
];

/// `A D T | S0 G0 | S1 G1 | S2 G2`.
fn first(view: &RunView<'_>) -> Table {
    let rows = published::franke_getpid()
        .iter()
        .map(|row| {
            let tasks = i64::from(row.tasks);
            let mut cells = vec![
                Value::Count(tasks),
                Value::Count(i64::from(row.deletes)),
                Value::Count(i64::from(row.allocations)),
            ];
            for (series, timed, s, g) in [
                ("algo-0", "algo-0", row.searches_algo0, row.us_algo0),
                ("algo-1", "algo-1-post", row.searches_algo1, row.us_algo1),
                ("algo-2", "algo-2-post", row.searches_algo2, row.us_algo2),
            ] {
                cells.extend([
                    his(f64::from(s), ""),
                    searched(view, series, row.tasks),
                    his(g, "us"),
                    cost_at(view, timed, tasks),
                ]);
            }
            cells
        })
        .collect();
    Table {
        title: "Table 1: searches and microseconds per allocation of algo-0, algo-1 and algo-2"
            .to_owned(),
        columns: headings(&[
            "A",
            "D",
            "T",
            "S0 (2002)",
            "S0 here",
            "G0 (2002)",
            "G0 here",
            "S1 (2002)",
            "S1 here",
            "G1 (2002)",
            "G1 here",
            "S2 (2002)",
            "S2 here",
            "G2 (2002)",
            "G2 here",
        ]),
        rows,
        notes: NOTES.map(str::to_owned).to_vec(),
        long: true,
    }
}

/// `A D T | S2 G2 | S2-256 G2-256`.
fn second(view: &RunView<'_>) -> Table {
    let rows = published::franke_limit256()
        .iter()
        .map(|row| {
            let tasks = i64::from(row.tasks);
            let mut cells = vec![
                Value::Count(tasks),
                Value::Count(i64::from(row.deletes)),
                Value::Count(i64::from(row.allocations)),
            ];
            for (series, timed, s, g) in [
                ("algo-2", "algo-2-post", row.searches_algo2, row.us_algo2),
                (
                    "algo-2-256",
                    "algo-2-256-post",
                    row.searches_algo2_256,
                    row.us_algo2_256,
                ),
            ] {
                cells.extend([
                    his(f64::from(s), ""),
                    searched(view, series, row.tasks),
                    his(g, "us"),
                    cost_at(view, timed, tasks),
                ]);
            }
            cells.push(cost_at(view, "algo-2-256", tasks));
            cells
        })
        .collect();
    Table {
        title: "Table 2: algo-2 without and with intervals of at most 256".to_owned(),
        columns: headings(&[
            "A",
            "D",
            "T",
            "S2 (2002)",
            "S2 here",
            "G2 (2002)",
            "G2 here",
            "S2-256 (2002)",
            "S2-256 here",
            "G2-256 (2002)",
            "G2-256 here",
            "G2-256 as meant, here",
        ]),
        rows,
        notes: NOTES.map(str::to_owned).to_vec(),
        long: true,
    }
}

/// Every algorithm at every A that was timed.
fn algorithms(view: &RunView<'_>) -> Table {
    let mut names: Vec<&str> = CROSSING.to_vec();
    names.extend([
        "algo-1-post",
        "algo-2-post",
        "algo-2-256",
        "algo-2-256-post",
        "adaptive",
        "andrea",
    ]);
    names.extend(KEEPING);
    let capped = names.iter().any(|name| {
        cells(view, NEAR, name)
            .iter()
            .any(|(_, cell)| view.middle(NEAR, cell, "capped").is_some_and(|c| c > 0.0))
    });
    let mut notes = vec![
        "Each allocation adds its task to the list, as in his harness, and pays for it.".to_owned(),
    ];
    if capped {
        notes.push("Near a full space algo-0 was stopped after ten seconds a cell; its mean is of the allocations until then.".to_owned());
    }
    let title = "G, microseconds per allocation, aged start, tasks near each other";
    by_tasks(view, NEAR, title, &names, notes)
}

/// Those that run where tasks lie elsewhere.
fn elsewhere(view: &RunView<'_>, group: &str, title: &str) -> Table {
    let counted: Vec<String> = cells(view, group, "algo-0")
        .into_iter()
        .filter_map(|(tasks, cell)| {
            let made = view.middle(group, &cell, "allocations")?;
            Some(format!("{made:.0} at {tasks}"))
        })
        .collect();
    let notes = match counted.as_slice() {
        [] => Vec::new(),
        some => vec![format!(
            "Allocations, of every algorithm the same number: {}. The fewer are deleted at a time, the fewer ids are free meanwhile, and the more passes algo-0 needs for a search.",
            some.join(", ")
        )],
    };
    by_tasks(view, group, title, &ALGORITHMS, notes)
}

/// A row per A that was timed in the group, a column per algorithm.
fn by_tasks(
    view: &RunView<'_>,
    group: &str,
    title: &str,
    names: &[&str],
    notes: Vec<String>,
) -> Table {
    let mut tasks: Vec<i64> = names
        .iter()
        .flat_map(|name| cells(view, group, name).into_iter().map(|(a, _)| a))
        .collect();
    tasks.sort_unstable();
    tasks.dedup();
    let mut columns = vec!["A".to_owned()];
    columns.extend(names.iter().map(|name| (*name).to_owned()));
    Table {
        title: title.to_owned(),
        columns,
        rows: tasks
            .into_iter()
            .map(|a| {
                let mut row = vec![Value::Count(a)];
                row.extend(names.iter().map(|name| cost_in(view, group, name, a)));
                row
            })
            .collect(),
        notes,
        long: true,
    }
}

fn group_table(view: &RunView<'_>, group: &str, title: &str) -> Table {
    let rows = view
        .cells(group)
        .into_iter()
        .filter(|cell| !cell.twin)
        .map(|cell| {
            vec![
                Value::Text(cell.contestant.clone()),
                cell.params.int("tasks").map_or(Value::Empty, Value::Count),
                estimate(view, group, cell, COST, "us"),
                view.middle(group, cell, "searches")
                    .map_or(Value::Empty, |s| Value::Number(s, String::new())),
                view.middle(group, cell, "allocations")
                    .map_or(Value::Empty, |s| Value::Number(s, String::new())),
            ]
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns: headings(&["algorithm", "A", "G", "S", "T"]),
        rows,
        notes: Vec::new(),
        long: false,
    }
}

fn pass_table(view: &RunView<'_>) -> Table {
    let rows = view
        .cells(PASSES)
        .into_iter()
        .filter(|cell| !cell.twin)
        .map(|cell| {
            vec![
                Value::Text(cell.contestant.clone()),
                cell.params
                    .text("memory")
                    .map_or(Value::Empty, |m| Value::Text(m.to_owned())),
                cell.params.int("tasks").map_or(Value::Empty, Value::Count),
                estimate(view, PASSES, cell, "ns_per_task", "ns"),
            ]
        })
        .collect();
    Table {
        title: "One pass over the list, per task".to_owned(),
        columns: headings(&["pass", "memory", "A", "per task"]),
        rows,
        notes: Vec::new(),
        long: true,
    }
}

fn reuse(view: &RunView<'_>) -> Table {
    let mut rows = Vec::new();
    for (rule, promise, _) in RULES {
        for live in REUSE_AT {
            let Some(cell) = reuse_cell(view, rule, live) else {
                continue;
            };
            let of = |metric: &str| {
                view.middle(REUSE, cell, metric)
                    .map_or(Value::Empty, |v| Value::Number(v, String::new()))
            };
            rows.push(vec![
                Value::Text(rule.to_owned()),
                Value::Count(live),
                of("least"),
                of("p1"),
                of("median"),
                of("most"),
                Value::Text(promise.to_owned()),
            ]);
        }
    }
    Table {
        title: "Reuse distance, 32767 ids: allocations between an id's end and its return".to_owned(),
        columns: headings(&["rule", "live", "least", "1 in 100", "median", "most", "promises"]),
        rows,
        notes: vec!["100000 times one task ends and one begins, after as many that are not looked at. Interval algorithms are looked at with few tasks only, as each search walks the list.".to_owned()],
        long: false,
    }
}

fn large(view: &RunView<'_>) -> Table {
    let rows = view
        .cells(LARGE)
        .into_iter()
        .filter(|cell| !cell.twin)
        .map(|cell| {
            vec![
                Value::Text(cell.contestant.clone()),
                cell.params.int("bits").map_or(Value::Empty, Value::Count),
                cell.params.int("used").map_or(Value::Empty, |u| {
                    Value::Number(u as f64 / 100.0, "%".to_owned())
                }),
                estimate(view, LARGE, cell, "ns_per_alloc", "ns"),
                estimate(view, LARGE, cell, "ns_per_free", "ns"),
                view.middle(LARGE, cell, "bits_per_id")
                    .map_or(Value::Empty, |v| Value::Number(v, String::new())),
            ]
        })
        .collect();
    Table {
        title: "Large spaces, batches of 256".to_owned(),
        columns: headings(&["space", "bits", "in use", "alloc", "free", "bits per id"]),
        rows,
        notes: super::large::LEFT_OUT
            .map(|(what, why)| format!("{what}: {why}"))
            .into(),
        long: false,
    }
}

fn kernel(view: &RunView<'_>) -> Table {
    let mut rows = Vec::new();
    for (group, factor) in [(PROCESSES, "used"), (DESCRIPTORS, "open"), (PORTS, "used")] {
        for cell in view.cells(group).into_iter().filter(|cell| !cell.twin) {
            rows.push(vec![
                Value::Text(group.to_owned()),
                cell.params.int(factor).map_or(Value::Empty, |n| {
                    if factor == "open" {
                        Value::Text(format!("{n} open"))
                    } else {
                        Value::Text(format!("{} % in use", n as f64 / 100.0))
                    }
                }),
                estimate(view, group, cell, COST, "us"),
            ]);
        }
    }
    for skipped in &view.run().skipped {
        if [PROCESSES, DESCRIPTORS, PORTS].contains(&skipped.what.as_str()) {
            rows.push(vec![
                Value::Text(skipped.what.clone()),
                Value::Text(skipped.why.clone()),
                Value::Empty,
            ]);
        }
    }
    Table {
        title: "The same on this kernel, system calls included".to_owned(),
        columns: headings(&["what", "state", "one"]),
        rows,
        notes: Vec::new(),
        long: false,
    }
}
