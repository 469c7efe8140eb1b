//! His tables in his layout, with his numbers beside as shapes.

use crate::contestants::heaps::PRELOADED;
use crate::measure::RunView;
use crate::model::{Better, Block, Cell, Section, Table, TableRow, Value};
use crate::published;

use super::plan::{
    CONSTRUCTED, HIS, LAYOUTS, OURS, PEERS, SECOND, SIZES, STACKS, THREADS, asked, pair_group,
};
use super::rows::{
    OBJECT, PAIR, RATE, SECONDS, best, by_threads, counts_of_threads, over_one, second,
    second_over_one,
};

/// His name of a variant in the published table.
fn his_name(contestant: &str) -> &'static str {
    match contestant {
        "hashed-16" => "padded16",
        "hashed-2" => "padded2",
        "hashed-mutex" => "mutex_padded16",
        "explicit-handle" => "explicit_handle",
        "unlocked-stack" => "unlocked_stack",
        "locked-stack" => "mutex_stack",
        "malloc" => "glibc_or_perl5_with_pthreads",
        _ => "",
    }
}

fn his_row(contestant: &str, threads: i64) -> Option<&'static published::MagazineThreads> {
    published::magazine_threads()
        .iter()
        .find(|row| row.variant == his_name(contestant) && i64::from(row.threads) == threads)
}

fn his_seconds(contestant: &str, threads: i64) -> Value {
    his_row(contestant, threads).map_or(Value::Empty, |row| {
        Value::Published(row.elapsed_s, "s".to_owned())
    })
}

fn his_over_one(contestant: &str, threads: i64) -> Value {
    match (his_row(contestant, threads), his_row(contestant, 1)) {
        (Some(many), Some(one)) if one.elapsed_s > 0.0 => {
            // As exact as his numbers are.
            let ratio = (100.0 * many.elapsed_s / one.elapsed_s).round() / 100.0;
            Value::Published(ratio, "x".to_owned())
        }
        _ => Value::Empty,
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn estimate(
    view: &RunView<'_>,
    group: &str,
    cell: Option<&Cell>,
    metric: &str,
    unit: &str,
) -> Value {
    let Some(cell) = cell else {
        return Value::Empty;
    };
    match view.estimate(group, cell, metric) {
        Some(estimate) => Value::Estimate(estimate, unit.to_owned()),
        None => view
            .middle(group, cell, metric)
            .map_or(Value::Empty, |value| Value::Number(value, unit.to_owned())),
    }
}

fn seconds(view: &RunView<'_>, contestant: &str, threads: i64) -> Value {
    estimate(
        view,
        THREADS,
        by_threads(view, contestant, threads),
        SECONDS,
        "s",
    )
}

/// Every section, in reading order.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    let section = |title: &str, tables: Vec<Table>| Section {
        title: title.to_owned(),
        blocks: tables
            .into_iter()
            .filter(|t| !t.rows.is_empty())
            .map(Block::Table)
            .collect(),
    };
    let mut pairs: Vec<Table> = SIZES
        .iter()
        .map(|bytes| {
            let title = format!("{bytes} bytes: allocate, write one int, free");
            by_cost(view, &pair_group(*bytes), PAIR, &title)
        })
        .collect();
    pairs.push(by_cost(
        view,
        CONSTRUCTED,
        OBJECT,
        "An object of 256 bytes with a constructor of some 100 ns",
    ));
    let sections = vec![
        section(
            "His tables",
            vec![multipliers(view), handle(view), single(view), shapes(view)],
        ),
        section("The second thread", vec![second_thread(view)]),
        section("Today's allocators in his loop", vec![peers(view)]),
        section("One thread, one size", pairs),
    ];
    sections
        .into_iter()
        .filter(|s| !s.blocks.is_empty())
        .collect()
}

/// A row for each number of threads that has anything measured.
fn rows(view: &RunView<'_>, row: impl Fn(i64) -> TableRow) -> Vec<TableRow> {
    counts_of_threads(view)
        .into_iter()
        .map(row)
        .filter(|row| {
            row.iter()
                .any(|v| matches!(v, Value::Estimate(..) | Value::Number(..)))
        })
        .collect()
}

fn multipliers(view: &RunView<'_>) -> Table {
    let rows = rows(view, |n| {
        let mut row = vec![Value::Count(n)];
        for name in ["hashed-16", "hashed-2", "hashed-mutex"] {
            row.push(seconds(view, name, n));
            row.push(his_seconds(name, n));
        }
        row
    });
    Table {
        title: "Run time for ten million cycles of each thread: arrays indexed by thread"
            .to_owned(),
        columns: headings(&[
            "threads",
            "multiplier 16 (pad)",
            "his",
            "multiplier 2",
            "his",
            "mutexes, multiplier 16",
            "his",
        ]),
        rows,
        notes: vec![
            "His: two Celerons of 466 MHz, Linux of 2001. Compare shapes, not times.".to_owned(),
            "Blocks are the 4 bytes of his text, side by side in the slab.".to_owned(),
        ],
        long: false,
    }
}

fn handle(view: &RunView<'_>) -> Table {
    let rows = rows(view, |n| {
        let name = "explicit-handle";
        let rate = his_row(name, n)
            .and_then(|row| row.mcycles_s)
            .map_or(Value::Empty, |rate| {
                Value::Published(rate, "Mc/s".to_owned())
            });
        vec![
            Value::Count(n),
            seconds(view, name, n),
            estimate(view, THREADS, by_threads(view, name, n), RATE, "Mc/s"),
            his_seconds(name, n),
            rate,
            seconds(view, "global-locked", n),
        ]
    });
    Table {
        title: "Run time for ten million cycles of each thread: the attached program".to_owned(),
        columns: headings(&[
            "threads",
            "explicit handle",
            "rate",
            "his",
            "his rate",
            "MyGlobalAlloc",
        ]),
        rows,
        notes: vec!["Blocks are the 100 bytes of the attached program.".to_owned()],
        long: false,
    }
}

fn single(view: &RunView<'_>) -> Table {
    let rows = STACKS
        .into_iter()
        .chain(["malloc"])
        .filter_map(|name| {
            let cell = by_threads(view, name, 1)?;
            let his = published::magazine_single()
                .iter()
                .find(|row| row.variant == his_name(name))
                .map_or(Value::Empty, |row| {
                    Value::Published(row.mcycles_s, "Mc/s".to_owned())
                });
            Some(vec![
                text(name),
                estimate(view, THREADS, Some(cell), RATE, "Mc/s"),
                his,
            ])
        })
        .collect();
    Table {
        title: "One thread: million cycles per second".to_owned(),
        columns: headings(&["allocator", "rate", "his"]),
        rows,
        notes: vec![
            "His malloc was glibc's of 2001, linked with -lpthread. All threads here are beside the main thread, so \
             that glibc takes its locks as it does in a program with threads."
                .to_owned(),
        ],
        long: false,
    }
}

fn shapes(view: &RunView<'_>) -> Table {
    let names = ["hashed-16", "hashed-2", "hashed-mutex", "explicit-handle"];
    let rows = rows(view, |n| {
        let mut row = vec![Value::Count(n)];
        for name in names {
            row.push(
                over_one(view, name, n)
                    .map_or(Value::Empty, |r| Value::Estimate(r, "x".to_owned())),
            );
            row.push(his_over_one(name, n));
        }
        row
    });
    Table {
        title: "The same as ratios: time of n threads over the time of one".to_owned(),
        columns: headings(&[
            "threads",
            "multiplier 16",
            "his",
            "multiplier 2",
            "his",
            "mutexes",
            "his",
            "explicit handle",
            "his",
        ]),
        rows,
        notes: vec!["On two CPUs n/2 is perfect.".to_owned()],
        long: false,
    }
}

fn second_thread(view: &RunView<'_>) -> Table {
    let mut rows = Vec::new();
    for name in asked() {
        for layout in LAYOUTS {
            let Some(two) = second(view, name, 2, layout) else {
                continue;
            };
            let count = |metric: &str| {
                view.middle(SECOND, two, metric)
                    .map_or(Value::Empty, |v| Value::Number(v, String::new()))
            };
            let rate = |n| estimate(view, SECOND, second(view, name, n, layout), RATE, "Mc/s");
            rows.push(vec![
                text(name),
                text(layout.0),
                text(if HIS.contains(&name) { layout.1 } else { "" }),
                second_over_one(view, name, layout)
                    .map_or(Value::Empty, |r| Value::Estimate(r, "x".to_owned())),
                rate(1),
                rate(2),
                rate(3),
                count("sleeps_per_million"),
                count("preemptions_per_million"),
            ]);
        }
    }
    Table {
        title:
            "Two threads, pinned to two CPUs or to one, with the slab as his and with lines apart"
                .to_owned(),
        columns: headings(&[
            "allocator",
            "CPUs",
            "slab",
            "time over one thread",
            "1 thread",
            "2 threads",
            "3 threads",
            "sleeps per million",
            "preemptions per million",
        ]),
        rows,
        notes: vec!["On two CPUs 1 is perfect, on one CPU 2.".to_owned()],
        long: false,
    }
}

fn peers(view: &RunView<'_>) -> Table {
    let names: Vec<&str> = OURS
        .into_iter()
        .chain(PEERS)
        .chain([PRELOADED])
        .filter(|name| by_threads(view, name, 1).is_some())
        .collect();
    let rows = rows(view, |n| {
        let mut row = vec![Value::Count(n)];
        row.extend(
            names
                .iter()
                .map(|name| estimate(view, THREADS, by_threads(view, name, n), RATE, "Mc/s")),
        );
        row
    });
    let mut columns = headings(&["threads"]);
    columns.extend(names.iter().map(|name| (*name).to_owned()));
    Table {
        title: "Million cycles per second of all threads".to_owned(),
        columns,
        rows: if names.is_empty() { Vec::new() } else { rows },
        notes: Vec::new(),
        long: false,
    }
}

/// The contestants of a group by ascending cost, against the best peer.
fn by_cost(view: &RunView<'_>, group: &str, metric: &str, title: &str) -> Table {
    by_cost_against(
        view,
        group,
        metric,
        title,
        best(view, group, &PEERS, metric),
    )
}

/// The same against a peer that was found otherwise.
pub(super) fn by_cost_against(
    view: &RunView<'_>,
    group: &str,
    metric: &str,
    title: &str,
    peer: Option<&Cell>,
) -> Table {
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
            let name = match cell.params.text("library") {
                Ok(library) => format!("{} {library}", cell.contestant),
                Err(_) => cell.contestant.clone(),
            };
            vec![
                Value::Text(name),
                estimate(view, group, Some(cell), metric, "ns"),
                against,
                estimate(view, group, Some(cell), "held_bytes", "B"),
            ]
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns: headings(&["allocator", "CPU time", "of the best peer", "held"]),
        rows,
        notes: peer
            .map(|peer| format!("The best peer is {}.", peer.contestant))
            .into_iter()
            .collect(),
        long: false,
    }
}
