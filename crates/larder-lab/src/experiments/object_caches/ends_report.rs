//! Goals, tables and sentences about preloaded mallocs, the end of a heap and the end of a burst.

use std::path::Path;

use crate::experiments::programs::{contestant_of, peers};
use crate::frame::words::{Bound, ratio, short, with_absent, word};
use crate::measure::RunView;
use crate::model::{Better, Block, Cell, Finding, Goal, Section, Table, Value};

use super::ends::{
    BURST, DESTROY, ENDS, HANDLES, HELD, INTERVAL, LARDER_PRELOADED, MILLION, preloaded_group,
};
use super::plan::SIZES;
use super::rows::{PAIR, find};
use crate::contestants::heaps::PRELOADED;

const ENDED: &str = "destroy_ns";
const RETURNED: &str = "returned_share";

/// A cell of the tear-downs.
fn ended<'a>(
    view: &RunView<'a>,
    contestant: &str,
    (classes, objects): (i64, i64),
) -> Option<&'a Cell> {
    let is = |cell: &Cell, name, n| cell.params.int(name).is_ok_and(|v| v == n);
    view.cells(DESTROY).into_iter().find(|cell| {
        cell.contestant == contestant
            && !cell.twin
            && is(cell, "classes", classes)
            && is(cell, "objects", objects)
    })
}

/// A cell of the bursts.
fn burst<'a>(view: &RunView<'a>, contestant: &str, calls: &str) -> Option<&'a Cell> {
    view.cells(HELD).into_iter().find(|cell| {
        cell.contestant == contestant
            && !cell.twin
            && cell.params.text("calls").is_ok_and(|c| c == calls)
    })
}

/// The fastest of the mallocs that were preloaded, and of the C library's own.
fn best_preloaded<'a>(view: &RunView<'a>, group: &str) -> Option<&'a Cell> {
    view.cells(group)
        .into_iter()
        .filter(|cell| !cell.twin && ["malloc", PRELOADED].contains(&cell.contestant.as_str()))
        .filter_map(|cell| Some((cell, view.middle(group, cell, PAIR)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(cell, _)| cell)
}

/// A malloc in a sentence.
fn name(cell: &Cell) -> String {
    match cell.params.text("library") {
        Ok(library) => library.rsplit('/').next().unwrap_or(library).to_owned(),
        Err(_) => "the C library's malloc".to_owned(),
    }
}

/// Every goal, met or not.
pub(super) fn goals(view: &RunView<'_>) -> Vec<Goal> {
    let mut goals: Vec<Goal> = SIZES
        .iter()
        .map(|bytes| preloaded_goal(view, *bytes))
        .collect();
    let (classes, objects) = MILLION;
    let what = format!("a private heap of {objects} objects in {classes} classes: destroyed whole");
    let against = "freed one by one";
    let cells = ended(view, "private-heap", MILLION).zip(ended(view, "private-freed", MILLION));
    let bound = Bound::AtMost(0.02);
    goals.push(match cells {
        Some((whole, freed)) => bound.goal(
            what,
            against,
            view.ratio(DESTROY, whole, freed, ENDED),
            None,
            "",
        ),
        None => bound.goal(
            what,
            against,
            None,
            None,
            "the private heaps did not run in group destroy",
        ),
    });
    for (calls, how) in [
        ("no", "no calls are made, the thread is on"),
        ("yes", "calls are made, no thread"),
    ] {
        for ours in ["heap", "global"] {
            let seconds = INTERVAL * i64::from(super::held::INTERVALS) / 1000;
            let what = format!(
                "memory of a burst of {BURST} MiB that is returned after {seconds} s: {ours}, {how}"
            );
            let whole = |cell: &&Cell| {
                let is = |name, value| cell.params.int(name).is_ok_and(|own| own == value);
                is("mb", BURST) && is("interval_ms", INTERVAL)
            };
            let bound = Bound::AtLeast(0.8);
            let goal = match burst(view, ours, calls).filter(whole) {
                Some(cell) => {
                    let measured = view.estimate(HELD, cell, RETURNED);
                    bound.goal(what, "the burst", measured, None, "")
                }
                None => bound.needs(
                    what,
                    "the burst",
                    &format!("{BURST} MiB and {seconds} s"),
                    "object-caches --full --group held",
                ),
            };
            goals.push(goal.in_unit(""));
        }
    }
    goals
}

fn preloaded_goal(view: &RunView<'_>, bytes: i64) -> Goal {
    let group = preloaded_group(bytes);
    let bound = Bound::AtMost(0.95);
    let what = format!("a block of {bytes} bytes, there and back: malloc, preloaded");
    let Some(own) = find(view, &group, LARDER_PRELOADED) else {
        let why = "liblarder_malloc.so did not run; build it with `cargo build --release -p larder-malloc`";
        return bound.goal(what, "best preloaded peer", None, None, why);
    };
    let Some(peer) = best_preloaded(view, &group) else {
        return bound.goal(
            what,
            "best preloaded peer",
            None,
            None,
            "no other malloc ran",
        );
    };
    let held = |cell| view.middle(&group, cell, "held_bytes");
    let both = held(own).zip(held(peer));
    let ratio = view.ratio(&group, own, peer, PAIR);
    let ran = preloaded_peers(view, &group);
    with_absent(
        bound.goal(what, name(peer), ratio, both, ""),
        &peers(),
        |peer| ran.contains(&peer),
    )
}

/// Whose mallocs were preloaded, by the names of their files.
fn preloaded_peers(view: &RunView<'_>, group: &str) -> Vec<&'static str> {
    view.cells(group)
        .into_iter()
        .filter(|cell| cell.contestant == PRELOADED)
        .filter_map(|cell| cell.params.text("library").ok())
        .map(|library| contestant_of(Path::new(library)))
        .collect()
}

fn finding(question: &str, asked_by: &str, answer: String) -> Finding {
    Finding {
        question: question.to_owned(),
        asked_by: asked_by.to_owned(),
        answer,
        verdict: None,
        ..Finding::default()
    }
}

/// Every sentence.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(murder(view));
    all.extend(bursts(view));
    all.extend(preloaded(view));
    all
}

/// Nanoseconds as a person says them.
fn time(ns: f64) -> String {
    match ns {
        _ if ns >= 1e6 => format!("{} ms", short(ns / 1e6)),
        _ if ns >= 1e3 => format!("{} us", short(ns / 1e3)),
        _ => format!("{} ns", short(ns)),
    }
}

/// "The parrot-interpreter-intialization shouldn't be that bad, but a parrot-interpreter-destruction could be murder."
fn murder(view: &RunView<'_>) -> Option<Finding> {
    let (whole, freed) = (
        ended(view, "private-heap", MILLION)?,
        ended(view, "private-freed", MILLION)?,
    );
    let r = view.ratio(DESTROY, whole, freed, ENDED)?;
    let middle = |cell, metric| view.middle(DESTROY, cell, metric).map(time);
    let verdict = if r.hi < 0.5 {
        "It is not, where objects die with their heap."
    } else if r.lo > 0.9 {
        "It is: dying whole saves nothing."
    } else {
        "It is less so, where objects die with their heap."
    };
    let caches: Vec<String> = HANDLES
        .iter()
        .filter_map(|&n| {
            let cell = ended(view, "cache-handles", (n, n))?;
            Some(format!("{n} in {}", middle(cell, ENDED)?))
        })
        .collect();
    let classes: Vec<String> = [(1, 1), (30, 30), (40, 40)]
        .into_iter()
        .filter_map(|shape| {
            let cell = ended(view, "heap", shape)?;
            Some(format!("{} in {}", shape.0, middle(cell, "drop_ns")?))
        })
        .collect();
    let mut answer = format!(
        "{verdict} A private heap with {} objects in {} classes is gone in {}, {} of what freeing them one by one takes ({}).",
        MILLION.1,
        MILLION.0,
        middle(whole, ENDED)?,
        ratio(&r),
        middle(freed, ENDED)?
    );
    for (what, list) in [
        (
            "A shared heap gives back the magazines of its used classes",
            classes,
        ),
        ("An interpreter drops its handles of object caches", caches),
    ] {
        if !list.is_empty() {
            answer.push_str(&format!(" {what}: {}.", list.join(", ")));
        }
    }
    Some(finding(
        "Can tearing down an interpreter with 30 caches be cheap, or is destruction murder?",
        "the mail on magazines for Parrot",
        answer,
    ))
}

fn bursts(view: &RunView<'_>) -> Option<Finding> {
    let mut parts = Vec::new();
    let mut waited = None;
    for cell in view.cells(HELD).into_iter().filter(|cell| !cell.twin) {
        let Some(share) = view.middle(HELD, cell, RETURNED) else {
            continue;
        };
        waited = waited.or(cell.params.int("interval_ms").ok());
        let calls = if cell.params.text("calls").is_ok_and(|c| c == "yes") {
            "with calls"
        } else {
            "without calls"
        };
        parts.push(format!(
            "{} {calls} {} %",
            cell.contestant,
            short(100.0 * share)
        ));
    }
    let seconds = waited? as f64 * f64::from(super::held::INTERVALS) / 1000.0;
    (!parts.is_empty() && seconds > 0.0).then(|| {
        finding(
            "How much of a burst's memory is back with the system some time after it was freed?",
            "larder",
            format!("After {} s: {}.", short(seconds), parts.join(", ")),
        )
    })
}

fn preloaded(view: &RunView<'_>) -> Option<Finding> {
    let parts: Vec<String> = SIZES
        .iter()
        .filter_map(|&bytes| {
            let group = preloaded_group(bytes);
            let (own, peer) = (
                find(view, &group, LARDER_PRELOADED)?,
                best_preloaded(view, &group)?,
            );
            let c = view.compare(&group, own, peer, PAIR, Better::Lower);
            Some(format!(
                "{bytes} bytes: {} ns, {} of {} ({})",
                short(view.middle(&group, own, PAIR)?),
                ratio(&c.ratio?),
                name(peer),
                word(c.verdict)
            ))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        finding(
            "What does a block cost, there and back, from larder's malloc in a program that knows nothing of it?",
            "larder",
            format!("{}.", parts.join("; ")),
        )
    })
}

/// The tables.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    [
        ("Preloaded", preloaded_tables(view)),
        ("The end of a heap", vec![ends_table(view)]),
        ("The end of a burst", vec![bursts_table(view)]),
    ]
    .into_iter()
    .map(|(title, tables)| Section {
        title: title.to_owned(),
        blocks: tables
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .map(Block::Table)
            .collect(),
    })
    .filter(|section| !section.blocks.is_empty())
    .collect()
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn value(view: &RunView<'_>, group: &str, cell: Option<&Cell>, metric: &str, unit: &str) -> Value {
    let Some(cell) = cell else {
        return Value::Empty;
    };
    match view.estimate(group, cell, metric) {
        Some(estimate) => Value::Estimate(estimate, unit.to_owned()),
        None => view
            .middle(group, cell, metric)
            .map_or(Value::Empty, |v| Value::Number(v, unit.to_owned())),
    }
}

fn preloaded_tables(view: &RunView<'_>) -> Vec<Table> {
    SIZES
        .iter()
        .map(|&bytes| {
            let title = format!("{bytes} bytes: malloc, write one int, free");
            super::tables::by_cost_against(
                view,
                &preloaded_group(bytes),
                PAIR,
                &title,
                best_preloaded(view, &preloaded_group(bytes)),
            )
        })
        .collect()
}

fn ends_table(view: &RunView<'_>) -> Table {
    let mut shapes: Vec<(i64, i64)> = view
        .cells(DESTROY)
        .into_iter()
        .filter_map(|cell| {
            Some((
                cell.params.int("objects").ok()?,
                cell.params.int("classes").ok()?,
            ))
        })
        .collect();
    shapes.sort_unstable();
    shapes.dedup();
    let rows = shapes
        .into_iter()
        .map(|(objects, classes)| {
            let cell = |name| ended(view, name, (classes, objects));
            let mut row = vec![Value::Count(objects), Value::Count(classes)];
            row.extend(
                ENDS.iter()
                    .map(|name| value(view, DESTROY, cell(name), ENDED, "ns")),
            );
            row.push(value(view, DESTROY, cell("heap"), "drop_ns", "ns"));
            row.push(value(view, DESTROY, cell("cache-handles"), ENDED, "ns"));
            let whole = cell("private-heap").zip(cell("private-freed"));
            row.push(
                whole
                    .and_then(|(whole, freed)| {
                        let c = view.compare(DESTROY, whole, freed, ENDED, Better::Lower);
                        c.ratio.map(|r| Value::Ratio(r, c.verdict))
                    })
                    .unwrap_or(Value::Empty),
            );
            row
        })
        .collect();
    Table {
        title: "The end of one heap".to_owned(),
        columns: headings(&[
            "live objects",
            "classes",
            "private, whole",
            "private, one by one",
            "shared, one by one",
            "mimalloc's, whole",
            "malloc, one by one",
            "shared, drop alone",
            "handles of caches",
            "whole over one by one",
        ]),
        rows,
        notes: vec![
            "larder has 40 size classes; an interpreter with 300 caches is one with a handle of each of 300 object caches."
                .to_owned(),
            "Objects are freed in the order in which they were taken. Each class has one, the eight smallest have the rest."
                .to_owned(),
        ],
        long: false,
    }
}

fn bursts_table(view: &RunView<'_>) -> Table {
    let mut cells: Vec<(&Cell, f64)> = view
        .cells(HELD)
        .into_iter()
        .filter(|cell| !cell.twin)
        .filter_map(|cell| Some((cell, view.middle(HELD, cell, RETURNED)?)))
        .collect();
    cells.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rows = cells
        .into_iter()
        .map(|(cell, _)| {
            let wait = cell.params.int("interval_ms").unwrap_or(0) as f64
                * f64::from(super::held::INTERVALS);
            vec![
                Value::Text(cell.contestant.clone()),
                Value::Text(cell.params.text("calls").unwrap_or("").to_owned()),
                Value::Number(wait / 1000.0, "s".to_owned()),
                value(view, HELD, Some(cell), RETURNED, ""),
                value(view, HELD, Some(cell), "returned_at_once", ""),
                value(view, HELD, Some(cell), "held_bytes", "B"),
            ]
        })
        .collect();
    Table {
        title: "What is back with the system after a burst was freed".to_owned(),
        columns: headings(&[
            "allocator",
            "calls meanwhile",
            "waited",
            "share returned",
            "at once",
            "held",
        ]),
        rows,
        notes: vec![
            "heap and global without calls have their thread on, with calls they have none."
                .to_owned(),
        ],
        long: false,
    }
}
