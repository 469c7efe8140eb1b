//! The tables and charts.

use super::counted::{again, of_2002, printed};
use super::plan::{ALGORITHMS, COST, KERNEL, LAST, NEAR, PACKED, PASSES, REUSE, SCATTERED};
use super::reuse::{BUCKETS, Promise, RULES, bucket_floor, bucket_name};
use crate::frame::words::exact;
use crate::frame::{At, Column, Results, grid, line, lines, listing, over};
use crate::model::{Block, Chart, Scale, Section, Table, Value};

/// Every section, in reading order.
pub(super) fn sections(results: &Results<'_>) -> Vec<Section> {
    let cost = |name: &str, tasks: u32| {
        let at = results.find(NEAR, name, &[("tasks", i64::from(tasks))]);
        at.map_or(Value::Empty, |at| at.value(COST))
    };
    let first = [(0, "algo-0"), (1, "algo-1-post"), (2, "algo-2-post")];
    let second = [(2, "algo-2-post"), (3, "algo-2-256-post")];
    let meant = [("algo-2-256", "G2-256 as meant, here")];
    let by_tasks = |group, title| Block::Table(by_tasks(results, group, title));
    let listed = |group, title| Block::Table(listed(results, group, title));
    vec![
        Section {
            title: "The tables of 2002, again".to_owned(),
            blocks: vec![
                Block::Table(again(
                    results,
                    "Table 1: algo-0, algo-1 and algo-2",
                    &first,
                    &[],
                    cost,
                )),
                Block::Table(again(
                    results,
                    "Table 2: algo-2 without and with intervals of at most 256",
                    &second,
                    &meant,
                    cost,
                )),
                Block::Chart(published()),
            ],
        },
        Section {
            title: "All algorithms".to_owned(),
            blocks: vec![
                by_tasks(
                    NEAR,
                    "Cost of an allocation by live ids, tasks near each other",
                ),
                by_tasks(SCATTERED, "The same where tasks are scattered over memory"),
                Block::Chart(costs(results, SCATTERED, "tasks scattered over memory")),
                by_tasks(
                    PACKED,
                    "The same with tasks of 28 bytes, as in the harness of 2002",
                ),
                Block::Chart(costs(results, PACKED, "tasks of 28 bytes")),
                listed("fresh", "From a fresh start: nothing was freed before"),
                listed("peers", "Crates of others"),
                listed(LAST, "The last id: A = 32767"),
                Block::Table(passes(results)),
            ],
        },
        Section {
            title: "What comes back when".to_owned(),
            blocks: vec![
                Block::Table(reuse(results)),
                Block::Chart(distances(results)),
            ],
        },
        Section {
            title: "The kernel".to_owned(),
            blocks: vec![Block::Table(kernel(results))],
        },
    ]
}

/// A row per number of live ids, a column per algorithm.
fn by_tasks(results: &Results<'_>, group: &str, title: &str) -> Table {
    let tasks = results.values(group, "tasks").into_iter();
    let table = grid(
        title,
        "live ids",
        tasks.map(|a| (a, Value::Count(a))),
        ALGORITHMS.map(|name| (name, name.to_owned())),
        |a, name| {
            let at = results.find(group, name, &[("tasks", *a)]);
            at.map_or(Value::Empty, |at| at.value(COST))
        },
    );
    let mut notes = vec![
        "Each allocation adds its task to the list, as in the harness of 2002, and pays for it."
            .to_owned(),
    ];
    if results
        .all(group)
        .any(|at| at.middle("capped").is_some_and(|c| c > 0.0))
    {
        notes.push("Near a full space algo-0 was stopped after ten seconds; its mean is of the allocations until then.".to_owned());
    }
    let of_list = results.of(group, "algo-0");
    let made = of_list.filter_map(|at| {
        Some(format!(
            "{:.0} at {}",
            at.middle("allocations")?,
            at.int("tasks")?
        ))
    });
    let made: Vec<String> = made.collect();
    if group != NEAR && !made.is_empty() {
        notes.push(format!(
            "Allocations of every algorithm: {}. The fewer are deleted at a time, the fewer ids are free meanwhile, and the more passes algo-0 needs.",
            made.join(", ")
        ));
    }
    Table {
        notes,
        long: true,
        ..table
    }
}

fn listed(results: &Results<'_>, group: &str, title: &str) -> Table {
    let columns = vec![
        Column::contestant("algorithm"),
        Column::factor("live ids", "tasks"),
        Column::metric("an allocation", COST),
        Column::middle("searches", "searches"),
        Column::middle("allocations", "allocations"),
    ];
    listing(title, results.all(group), columns)
}

fn passes(results: &Results<'_>) -> Table {
    let columns = vec![
        Column::contestant("pass"),
        Column::factor("tasks lie", "memory"),
        Column::factor("live ids", "tasks"),
        Column::metric("per task", "ns_per_task"),
    ];
    let table = listing(
        "One pass over the list, per task",
        results.all(PASSES),
        columns,
    );
    Table {
        long: true,
        ..table
    }
}

fn reuse(results: &Results<'_>) -> Table {
    let columns = vec![
        Column::factor("rule", "rule"),
        Column::factor("live", "live"),
        Column::middle("least", "least"),
        Column::middle("1 in 100", "p1"),
        Column::middle("median", "median"),
        Column::middle("most", "most"),
        Column::by("promises", |at| {
            rule_of(at).map_or(Value::Empty, |(_, promise, _)| {
                Value::Text((*promise).to_owned())
            })
        }),
        Column::by("kept", |at| {
            Value::Text(
                kept(at)
                    .map_or("", |k| if k { "yes" } else { "no" })
                    .to_owned(),
            )
        }),
    ];
    let title = "Reuse distance, 32767 ids: allocations between an id's end and its return";
    let table = listing(title, results.all(REUSE), columns);
    Table {
        notes: vec!["100000 times one task ends and one begins, after as many that are not looked at. Algorithms that walk the list are looked at with few tasks only.".to_owned()],
        ..table
    }
}

fn rule_of(at: &At<'_, '_>) -> Option<&'static (&'static str, &'static str, Promise)> {
    RULES
        .iter()
        .find(|(rule, ..)| at.text("rule") == Some(rule))
}

/// Whether the least distance is as promised, where one is.
fn kept(at: &At<'_, '_>) -> Option<bool> {
    let (_, _, promise) = rule_of(at)?;
    Some(at.middle("least")? >= promise(32_767.0 - at.int("live")? as f64)?)
}

fn kernel(results: &Results<'_>) -> Table {
    let all = KERNEL.iter().flat_map(|group| results.all(group));
    let columns = vec![
        Column::contestant("ids"),
        Column::by("in use", |at| match (at.int("open"), at.int("used")) {
            (Some(open), _) => Value::Count(open),
            (_, Some(used)) => Value::Number(used as f64 / 100.0, "%".to_owned()),
            _ => Value::Empty,
        }),
        Column::metric("one", COST),
    ];
    listing("The kernel of today, system calls included", all, columns)
}

/// The cost of an allocation by live ids.
pub(super) fn costs(results: &Results<'_>, group: &str, place: &str) -> Chart {
    let posted = |name: &&str| !name.ends_with("-post");
    let series = ALGORITHMS.into_iter().filter(posted);
    let chart = lines(
        format!("Microseconds per allocation here, {place}"),
        ("live ids", Scale::Linear),
        ("us", Scale::Log),
        series.map(|name| over(name, results.of(group, name), "tasks", COST)),
    );
    marked(chart)
}

fn marked(chart: Chart) -> Chart {
    Chart {
        marks: vec![(22_000.0, "2002: 22000".to_owned())],
        ..chart
    }
}

/// The same as published.
fn published() -> Chart {
    let of = |(i, name): (usize, &str)| {
        of_2002(
            name,
            printed()
                .into_iter()
                .map(move |row| (f64::from(row.tasks), row.us[i])),
        )
    };
    marked(lines(
        "Microseconds per allocation in 2002: a shape, on another machine",
        ("live ids", Scale::Linear),
        ("us", Scale::Log),
        ["algo-0", "algo-1", "algo-2"]
            .into_iter()
            .enumerate()
            .map(of),
    ))
}

/// Shares of reuse distances in powers of two.
fn distances(results: &Results<'_>) -> Chart {
    let cells = results
        .all(REUSE)
        .filter(|at| at.int("live") == Some(22_000));
    let series = cells.map(|at| {
        // A distance of 0 has no place on a logarithmic axis, so each stands one to the right.
        let points = (0..BUCKETS)
            .filter_map(|b| Some((bucket_floor(b) + 1.0, exact(at.middle(&bucket_name(b))?))));
        line(at.text("rule").unwrap_or_default(), points)
    });
    lines(
        "Share of ids that come back after so many allocations, 22000 live ids, in powers of two",
        ("allocations between end and return, plus 1", Scale::Log),
        ("share", Scale::Linear),
        series,
    )
}
