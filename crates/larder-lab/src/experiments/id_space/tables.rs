//! The tables.

use crate::measure::RunView;
use crate::model::{Cell, Table, Value};

use super::goals::share;
use super::plan::{BITS, CREATE, HUGE, SHARED, SMALL, SPARSE, THREAD_LIVES, THREADED};
use super::promise;
use super::rows::{COST, Clock, RATE, find, median_of, of_yardstick, scaling};

pub(super) fn estimate(
    view: &RunView<'_>,
    group: &str,
    cell: &Cell,
    metric: &str,
    unit: &str,
) -> Value {
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

/// The contestants of a group in the order of their names, each once, ours first.
pub(super) fn names<'a>(view: &RunView<'a>, group: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = view
        .cells(group)
        .into_iter()
        .map(|cell| cell.contestant.as_str())
        .collect();
    names.dedup();
    names.sort_by_key(|name| *name != "ids");
    names
}

/// A pair by contestant and occupancy.
pub(super) fn costs(
    view: &RunView<'_>,
    group: &str,
    title: &str,
    count: i64,
    lives: &[i64],
) -> Table {
    let mut columns = vec!["source".to_owned()];
    columns.extend(lives.iter().map(|live| share(*live, count)));
    columns.push("held".to_owned());
    let rows = names(view, group)
        .into_iter()
        .map(|name| {
            let cells: Vec<Option<&Cell>> = lives
                .iter()
                .map(|live| find(view, group, name, &[("live", *live)]))
                .collect();
            let mut row = vec![Value::Text(name.to_owned())];
            row.extend(cells.iter().map(|cell| {
                cell.map_or(Value::Empty, |cell| estimate(view, group, cell, COST, "ns"))
            }));
            // At the occupancy at which it holds most.
            let held = cells
                .iter()
                .flatten()
                .filter_map(|cell| view.middle(group, cell, "held_bytes"))
                .reduce(f64::max);
            row.push(held.map_or(Value::Empty, |held| Value::Number(held, "B".to_owned())));
            row
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns,
        rows,
        notes: vec![
            "One free and one allocation in batches of 256 each, wall time without the slowest hundredth of the batches; held at the occupancy that needs most.".to_owned(),
        ],
        long: false,
    }
}

/// Free and allocation apart, and the slow batches.
pub(super) fn parts(
    view: &RunView<'_>,
    group: &str,
    title: &str,
    count: i64,
    lives: &[i64],
) -> Table {
    let mut rows = Vec::new();
    for live in lives {
        for name in names(view, group) {
            let Some(cell) = find(view, group, name, &[("live", *live)]) else {
                continue;
            };
            let mut row = vec![
                Value::Text(share(*live, count)),
                Value::Text(name.to_owned()),
            ];
            row.extend(
                [
                    ("ns_per_free", "ns"),
                    ("ns_per_alloc", "ns"),
                    ("p99_ns_per_pair", "ns"),
                    ("held_bytes", "B"),
                    ("bits_per_id", ""),
                ]
                .map(|(metric, unit)| estimate(view, group, cell, metric, unit)),
            );
            rows.push(row);
        }
    }
    Table {
        title: title.to_owned(),
        columns: headings(&[
            "taken",
            "source",
            "free",
            "allocation",
            "pair of a slow batch",
            "held",
            "bits an identifier",
        ]),
        rows,
        notes: vec!["A slow batch is the one that one in a hundred exceeds.".to_owned()],
        long: true,
    }
}

pub(super) fn sparse(view: &RunView<'_>) -> Table {
    let rows = view
        .cells(SPARSE)
        .into_iter()
        .filter(|cell| !cell.twin)
        .map(|cell| {
            let live = cell.params.int("live").unwrap_or(0);
            let mut row = vec![
                Value::Text(share(live, HUGE)),
                Value::Text(cell.contestant.clone()),
            ];
            row.extend(
                [
                    ("ns_per_free", "ns"),
                    ("ns_per_alloc", "ns"),
                    (COST, "ns"),
                    ("held_bytes", "B"),
                ]
                .map(|(metric, unit)| estimate(view, SPARSE, cell, metric, unit)),
            );
            row
        })
        .collect();
    Table {
        title: "2^32 identifiers, 430 thousand of them taken, or free".to_owned(),
        columns: headings(&["taken", "source", "free", "allocation", "pair", "held"]),
        rows,
        notes: vec!["The caches are swept with 48 MB before each batch.".to_owned()],
        long: false,
    }
}

pub(super) fn bits(view: &RunView<'_>) -> Table {
    let mut rows = Vec::new();
    for cell in view.cells(BITS).into_iter().filter(|cell| !cell.twin) {
        let count = cell.params.int("count").unwrap_or(0);
        rows.push(vec![
            Value::Text(cell.contestant.clone()),
            Value::Text(cell.params.text("rule").unwrap_or("unknown").to_owned()),
            Value::Count(count),
            view.middle(BITS, cell, "bits_per_id")
                .map_or(Value::Empty, |bits| Value::Number(bits, String::new())),
        ]);
    }
    Table {
        title: "Bits held for an identifier, half of them taken".to_owned(),
        columns: headings(&["source", "rule", "identifiers", "bits each"]),
        rows,
        notes: vec![
            "By each source's own account of its arrays; by the C library's heap where a crate gives none."
                .to_owned(),
        ],
        long: false,
    }
}

pub(super) fn threads(view: &RunView<'_>) -> Table {
    let scale =
        |by_round| median_of(&by_round).map_or(Value::Empty, |e| Value::Estimate(e, String::new()));
    let mut rows = Vec::new();
    for live in THREAD_LIVES {
        for name in SHARED {
            let cell = |n| find(view, THREADED, name, &[("threads", n), ("live", live)]);
            let (Some(one), Some(two)) = (cell(1), cell(2)) else {
                continue;
            };
            rows.push(vec![
                Value::Text(share(live, SMALL)),
                Value::Text(name.to_owned()),
                estimate(view, THREADED, one, RATE, "Mop/s"),
                estimate(view, THREADED, two, RATE, "Mop/s"),
                scale(scaling(view, name, live, Clock::Wall)),
                scale(scaling(view, name, live, Clock::Cpu)),
                scale(of_yardstick(view, name, live, Clock::Cpu)),
                estimate(view, THREADED, two, COST, "ns"),
                estimate(view, THREADED, two, "cpu_ns_per_pair", "ns"),
                estimate(view, THREADED, two, "false_full", ""),
                estimate(view, THREADED, two, "lost_ids", ""),
            ]);
        }
    }
    Table {
        title: "Each thread frees one of its own and takes another".to_owned(),
        columns: headings(&[
            "taken",
            "source",
            "one thread",
            "two threads",
            "two over one",
            "the same by CPU time",
            "of the empty loop's",
            "a pair of each of two",
            "its CPU time",
            "'full' too early",
            "lost",
        ]),
        rows,
        notes: vec![
            "The loop is in all of them; the empty loop shows how far the machine itself scales, and a bare array for each thread what nothing shared can reach.".to_owned(),
            "By CPU time: twice the pairs of two threads for each CPU second that they used, over those of one. What other programs take of the CPUs does not count there, and neither does sleeping on a lock.".to_owned(),
        ],
        long: false,
    }
}

pub(super) fn create(view: &RunView<'_>) -> Table {
    let ns = |name: &str, first: i64| find(view, CREATE, name, &[("first", first)]);
    let mut names = names(view, CREATE);
    names.sort_unstable();
    names.dedup();
    let mut sorted: Vec<(f64, &str)> = names
        .into_iter()
        .filter_map(|name| Some((view.middle(CREATE, ns(name, 1)?, "ns_per_space")?, name)))
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let value = |name: &str, first: i64| {
        ns(name, first).map_or(Value::Empty, |cell| {
            estimate(view, CREATE, cell, "ns_per_space", "ns")
        })
    };
    Table {
        title: "Making a space of 2^20 identifiers".to_owned(),
        columns: headings(&["source", "alone", "and its first identifier"]),
        rows: sorted
            .into_iter()
            .map(|(_, name)| vec![Value::Text(name.to_owned()), value(name, 0), value(name, 1)])
            .collect(),
        notes: Vec::new(),
        long: false,
    }
}

pub(super) fn distances(view: &RunView<'_>) -> Table {
    let number = |value: Option<f64>| {
        value.map_or(Value::Empty, |value| Value::Number(value, String::new()))
    };
    let mut rows = Vec::new();
    for rule in promise::rules() {
        for looked in promise::cells(view, rule) {
            rows.push(vec![
                Value::Text(looked.of(rule)),
                Value::Text(share(looked.live, SMALL)),
                Value::Text(looked.called()),
                looked.least.map_or_else(
                    || Value::Text("nothing".to_owned()),
                    |least| Value::Number(least, String::new()),
                ),
                number(looked.min),
                number(looked.p1),
                number(looked.median),
                Value::Text(if looked.is_broken() { "DEFECT" } else { "" }.to_owned()),
            ]);
        }
    }
    Table {
        title: "Allocations between a free and the same identifier's return".to_owned(),
        columns: headings(&[
            "rule", "taken", "frees", "promised", "fewest", "p1", "median", "",
        ]),
        rows,
        notes: vec![
            "Freed at random. What is promised follows the number of free identifiers before each batch, and in a shared space the number of CPUs, for each of which some lie ready.".to_owned(),
            "Allocations; 'rested 100 calls' in readings of a clock that goes on whenever it is read, 'rested 100 us' in nanoseconds. A promise that was not kept is a DEFECT.".to_owned(),
        ],
        long: false,
    }
}
