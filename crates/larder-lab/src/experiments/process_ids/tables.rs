//! The tables and charts.

use super::counted::{Printed, of_2002, printed, replayed};
use super::plan::{
    ALGORITHMS, COST, KERNEL, LARGE, LAST, NEAR, PACKED, PASSES, REUSE, SCATTERED, TASKS,
};
use super::reuse::{BUCKETS, Promise, RULES, bucket_floor, bucket_name};
use crate::contestants::getpid::harness::POSTED;
use crate::frame::words::exact;
use crate::frame::{At, Column, Results, grid, line, lines, listing, number, over, text};
use crate::model::{Block, Chart, Scale, Section, Table, Value};

/// Every section, in reading order.
pub(super) fn sections(results: &Results<'_>) -> Vec<Section> {
    let first = [(0, "algo-0"), (1, "algo-1-post"), (2, "algo-2-post")];
    let second = [(2, "algo-2-post"), (3, "algo-2-256-post")];
    let meant = [("algo-2-256", "G2-256 as meant, here")];
    let again = |title, columns, more| Block::Table(again(results, title, columns, more));
    let by_tasks = |group, title| Block::Table(by_tasks(results, group, title));
    let listed = |group, title| Block::Table(listed(results, group, title));
    let section = |title: &str, blocks| Section {
        title: title.to_owned(),
        blocks,
    };
    vec![
        section(
            "The tables of 2002, again",
            vec![
                again("Table 1: algo-0, algo-1 and algo-2", &first, &[]),
                again(
                    "Table 2: algo-2 without and with intervals of at most 256",
                    &second,
                    &meant,
                ),
                Block::Chart(published()),
            ],
        ),
        section(
            "All algorithms",
            vec![
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
        ),
        section(
            "What comes back when",
            vec![
                Block::Table(reuse(results)),
                Block::Chart(distances(results)),
            ],
        ),
        section("The kernel", vec![Block::Table(kernel(results))]),
    ]
}

/// What a contestant among tasks near each other costs.
fn near(results: &Results<'_>, group: &str, name: &str, tasks: i64) -> Value {
    results.value(group, name, &[("tasks", tasks)], COST)
}

/// A table of 2002 as it was laid out, with what was counted and timed here after each column. `columns` are indices of
/// [`POSTED`] with the contestant that is timed; of the contestants `more` only the cost is shown.
fn again(
    results: &Results<'_>,
    title: &str,
    columns: &[(usize, &str)],
    more: &[(&str, &str)],
) -> Table {
    type Of<'t> = Box<dyn Fn(&Printed) -> Value + 't>;
    let published = |value, unit: &str| Value::Published(value, unit.to_owned());
    let timed =
        |name| -> Of<'_> { Box::new(move |row| near(results, NEAR, name, row.tasks.into())) };
    let mut all: Vec<(Of<'_>, String)> = vec![
        (
            Box::new(|row| Value::Count(row.deletes.into())),
            "D".to_owned(),
        ),
        (
            Box::new(|row| Value::Count(row.allocations.into())),
            "T".to_owned(),
        ),
    ];
    for &(i, name) in columns {
        let tag = POSTED[i].0.trim_start_matches("algo-");
        let here = move |row: &Printed| number(replayed(results, i, row.tasks));
        let of_2002: [Of<'_>; 2] = [
            Box::new(move |row| published(row.searches[i], "")),
            Box::new(move |row| published(row.us[i], "us")),
        ];
        let here: [Of<'_>; 2] = [Box::new(here), timed(name)];
        for ((of_2002, here), letter) in of_2002.into_iter().zip(here).zip(["S", "G"]) {
            all.push((of_2002, format!("{letter}{tag} (2002)")));
            all.push((here, format!("{letter}{tag} here")));
        }
    }
    all.extend(
        more.iter()
            .map(|(name, heading)| (timed(name), (*heading).to_owned())),
    );
    let rows = printed().into_iter();
    let rows = rows.map(|row| (Value::Count(row.tasks.into()), row));
    grid(title, "A", rows.map(|(name, row)| (row, name)), all, |row, of| of(row))
        .folded()
        .noted("A live ids, D deletions a round, T allocations, S searches, G microseconds an allocation. S is played with the random numbers of 2002. G of 2002 is of another machine: a shape. A quick run times a few A with fewer allocations; --full times all.")
}

/// A row per number of live ids, a column per algorithm.
fn by_tasks(results: &Results<'_>, group: &str, title: &str) -> Table {
    let tasks = results.values(group, "tasks").into_iter();
    let table = grid(
        title,
        "live ids",
        tasks.map(|a| (a, Value::Count(a))),
        ALGORITHMS.map(|name| (name, name.to_owned())),
        |a, name| near(results, group, name, *a),
    );
    let mut table = table.folded().noted(
        "Each allocation adds its task to the list, as in the harness of 2002, and pays for it.",
    );
    let capped = |at: At<'_, '_>| at.middle("capped").is_some_and(|c| c > 0.0);
    if results.all(group).any(capped) {
        table = table.noted("Near a full space algo-0 was stopped after ten seconds; its mean is of the allocations until then.");
    }
    let made = results.of(group, "algo-0").filter_map(|at| {
        let (made, tasks) = (at.middle("allocations")?, at.int("tasks")?);
        Some(format!("{made:.0} at {tasks}"))
    });
    let made: Vec<String> = made.collect();
    if group != NEAR && !made.is_empty() {
        table = table.noted(&format!(
            "Allocations of every algorithm: {}. The fewer are deleted at a time, the fewer ids are free meanwhile, and the more passes algo-0 needs.",
            made.join(", ")
        ));
    }
    table
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
    let title = "One pass over the list, per task";
    listing(title, results.all(PASSES), columns).folded()
}

/// Spaces of 22 and 32 bits.
pub(super) fn large(results: &Results<'_>) -> Table {
    let pidmap = |at: &At<'_, '_>| {
        let factors = [("bits", at.int("bits")?), ("used", at.int("used")?)];
        results.find(LARGE, "large-pidmap", &factors)
    };
    let columns = vec![
        Column::contestant("space"),
        Column::factor("bits", "bits"),
        Column::by("in use", |at| percent(at.int("used"))),
        Column::metric("an allocation", "ns_per_alloc"),
        Column::metric("a free", "ns_per_free"),
        Column::middle("bits per id", "bits_per_id"),
        Column::against_each("allocation of pidmap's", pidmap, "ns_per_alloc"),
    ];
    listing("Large spaces, batches of 256", results.all(LARGE), columns)
}

/// Hundredths of a percent.
fn percent(used: Option<i64>) -> Value {
    let percent = |used| Value::Number(used as f64 / 100.0, "%".to_owned());
    used.map_or(Value::Empty, percent)
}

fn reuse(results: &Results<'_>) -> Table {
    let kept = |at: &At<'_, '_>| kept(at).map_or("", |kept| if kept { "yes" } else { "no" });
    let columns = vec![
        Column::factor("rule", "rule"),
        Column::factor("live", "live"),
        Column::middle("least", "least"),
        Column::middle("1 in 100", "p1"),
        Column::middle("median", "median"),
        Column::middle("most", "most"),
        Column::by("promises", |at| {
            rule_of(at).map_or(Value::Empty, |rule| text(rule.1))
        }),
        Column::by("kept", move |at| text(kept(at))),
    ];
    let title = "Reuse distance, 32767 ids: allocations between an id's end and its return";
    listing(title, results.all(REUSE), columns).noted("100000 times one task ends and one begins, after as many that are not looked at. Algorithms that walk the list are looked at with few tasks only.")
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
        Column::by("in use", |at| {
            at.int("open")
                .map_or_else(|| percent(at.int("used")), Value::Count)
        }),
        Column::metric("one", COST),
    ];
    listing("The kernel of today, system calls included", all, columns)
}

/// The cost of an allocation by live ids.
pub(super) fn costs(results: &Results<'_>, group: &str, place: &str) -> Chart {
    let posted = |name: &&str| !name.ends_with("-post");
    let series = ALGORITHMS.into_iter().filter(posted);
    let series = series.map(|name| over(name, results.of(group, name), "tasks", COST));
    by_live_ids(format!("Microseconds per allocation here, {place}"), series)
}

/// The same as published.
fn published() -> Chart {
    let series = (0..3).map(|i| {
        let points = printed().into_iter();
        of_2002(
            POSTED[i].0,
            points.map(move |row| (f64::from(row.tasks), row.us[i])),
        )
    });
    let title = "Microseconds per allocation in 2002: a shape, on another machine";
    by_live_ids(title.to_owned(), series)
}

fn by_live_ids(title: String, series: impl Iterator<Item = crate::model::Series>) -> Chart {
    let (x, y) = (("live ids", Scale::Linear), ("us", Scale::Log));
    Chart {
        marks: vec![(TASKS as f64, format!("2002: {TASKS}"))],
        ..lines(title, x, y, series)
    }
}

/// Shares of reuse distances in powers of two.
fn distances(results: &Results<'_>) -> Chart {
    let cells = results
        .all(REUSE)
        .filter(|at| at.int("live") == Some(22_000));
    let series = cells.map(|at| {
        // A distance of 0 has no place on a logarithmic axis, so each stands one to the right.
        let point = |b| Some((bucket_floor(b) + 1.0, exact(at.middle(&bucket_name(b))?)));
        line(
            at.text("rule").unwrap_or_default(),
            (0..BUCKETS).filter_map(point),
        )
    });
    lines(
        "Share of ids that come back after so many allocations, 22000 live ids, in powers of two",
        ("allocations between end and return, plus 1", Scale::Log),
        ("share", Scale::Linear),
        series,
    )
}
