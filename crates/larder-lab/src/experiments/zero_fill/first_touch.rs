//! The first touch of 256 MiB, on the first pass of a process and on the second.

use super::cells::{BACK, CPU, FAULTS, FIRST_TOUCH, HELD, WALL};
use super::look::{Compared, Look};
use super::timings::section;
use super::words::{self, finding, ratio, text, value};
use crate::model::{Analysis, Block, Cell, Finding, Goal, GoalState, Skipped, Table, Value};
use crate::stats::Verdict;

const PLAIN: &str = "region-touch";
const POOL: &str = "region-pool";
const AGAIN: &str = "again_cpu_ns_per_op";
const AGAIN_WALL: &str = "again_ns_per_op";

/// The goal of a first touch with huge pages allowed, as a ratio to plain mmap and touch.
const BOUND: f64 = 0.45;

const WAYS: [(&str, &str); 8] = [
    (PLAIN, "mmap and touch, smallest pages"),
    ("region-default", "mmap and touch, as the machine is set"),
    ("region-populate", "MADV_POPULATE_WRITE, smallest pages"),
    ("region-mthp", "smaller huge pages"),
    ("region-thp", "huge pages, touch"),
    ("region-thp-populate", "huge pages, MADV_POPULATE_WRITE"),
    (POOL, "PagePool, huge pages allowed"),
    ("region-pool-small", "PagePool, smallest pages"),
];

fn cell<'a>(look: &Look<'a>, name: &str) -> Option<&'a Cell> {
    look.cell(FIRST_TOUCH, name, &[])
}

fn against_plain(look: &Look<'_>, name: &str, metric: &str) -> Option<Compared> {
    let (ours, plain) = (cell(look, name)?, cell(look, PLAIN)?);
    look.compare(FIRST_TOUCH, ours, plain, metric)
}

pub(super) fn part(look: &Look<'_>) -> Analysis {
    let mut blocks = Vec::new();
    blocks.extend(table(look).map(Block::Table));
    blocks.extend(host(look).map(Block::Text));
    let mut findings = Vec::new();
    findings.extend(fastest(look));
    findings.extend(passes(look));
    Analysis {
        findings,
        goals: goals(look),
        sections: section("The first touch of 256 MiB", blocks),
        ..Analysis::default()
    }
}

fn table(look: &Look<'_>) -> Option<Table> {
    let rows: Vec<Vec<Value>> = WAYS
        .iter()
        .filter_map(|(name, words)| {
            let cell = cell(look, name)?;
            let get = |metric, unit| value(look.estimate(FIRST_TOUCH, cell, metric), unit);
            let against = |metric| {
                if *name == PLAIN {
                    Value::Empty
                } else {
                    ratio(against_plain(look, name, metric))
                }
            };
            Some(vec![
                text(words),
                get(CPU, "ns"),
                get(WALL, "ns"),
                against(CPU),
                get(AGAIN, "ns"),
                get(AGAIN_WALL, "ns"),
                against(AGAIN),
                get("chunk_p10_ns_per_op", "ns"),
                get("chunk_p90_ns_per_op", "ns"),
                get(BACK, "ns"),
                get(FAULTS, ""),
                get(HELD, "bytes"),
                get("huge_bytes", "bytes"),
            ])
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        title: "256 MiB got and touched, per 4 KiB".to_owned(),
        columns: [
            "way",
            "first pass, CPU",
            "first pass, wall",
            "against plain",
            "second pass, CPU",
            "second pass, wall",
            "against plain",
            "fast chunks",
            "slow chunks",
            "give back",
            "faults per page",
            "memory held",
            "in huge pages",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        notes: vec![
            "The second pass follows in the same process after the first region was given back. Fast and slow chunks are \
             the 10th and 90th percentile of the 2 MiB chunks of the first pass, wall time."
                .to_owned(),
        ],
        long: false,
    })
}

/// What a guest can say about its host.
fn host(look: &Look<'_>) -> Option<String> {
    let plain = cell(look, PLAIN)?;
    let fact = |name| look.view.middle(FIRST_TOUCH, plain, name);
    let guest = fact("guest")?;
    if guest == 0.0 {
        return Some(
            "This is not a virtual machine: first and second pass need not differ.".to_owned(),
        );
    }
    let mut told = vec!["This is a virtual machine".to_owned()];
    match (
        fact("balloon_inflated_pages"),
        fact("balloon_deflated_pages"),
    ) {
        (Some(took), Some(gave)) => told.push(format!(
            "since boot its balloon took {took:.0} pages and gave {gave:.0} back"
        )),
        _ => told.push("its balloon's counters cannot be read".to_owned()),
    }
    match fact("free_page_reporting_order") {
        Some(order) if order < 64.0 => told.push(format!(
            "free blocks of order {order:.0} and above may be reported to the host and then cost a second fault there"
        )),
        _ => told.push("whether free pages are reported to the host cannot be read".to_owned()),
    }
    Some(format!("{}.", told.join("; ")))
}

fn fastest(look: &Look<'_>) -> Option<Finding> {
    let mut all: Vec<(&str, Compared)> = WAYS
        .iter()
        .filter(|(name, _)| *name != PLAIN)
        .filter_map(|(name, words)| Some((*words, against_plain(look, name, AGAIN)?)))
        .collect();
    all.sort_by(|a, b| a.1.ratio.value.total_cmp(&b.1.ratio.value));
    let (best, by) = *all.first()?;
    let plain = look.estimate(FIRST_TOUCH, cell(look, PLAIN)?, AGAIN)?;
    let others: Vec<String> = all[1..]
        .iter()
        .map(|(words, c)| format!("{words} {}", words::times(&c.ratio)))
        .collect();
    let mut answer = format!(
        "On memory that the machine has had before, plain mmap and touch takes {} per 4 KiB; {best} takes {} of that.",
        words::ns(&plain),
        words::compared(&by)
    );
    if !others.is_empty() {
        answer += &format!(" Then {}.", words::list(&others));
    }
    Some(finding(
        "What is the cheapest first touch of a large region (256 MiB)?",
        "",
        answer,
        Some(by.verdict),
    ))
}

fn passes(look: &Look<'_>) -> Option<Finding> {
    let ratio_of = |name| {
        let cell = cell(look, name)?;
        look.over_rounds(FIRST_TOUCH, &[(cell, CPU), (cell, AGAIN)], |r| {
            (r[1] > 0.0).then(|| r[0] / r[1])
        })
    };
    let plain = ratio_of(PLAIN)?;
    let mut answer = format!(
        "The first pass of a fresh process over 256 MiB costs {} of its second, in small pages",
        words::times(&plain)
    );
    if let Some(huge) = ratio_of("region-thp") {
        answer += &format!("; in huge pages {}", words::times(&huge));
        if huge.lo > 1.5 {
            answer += " (why is not tested)";
        }
    }
    answer += ".";
    Some(finding(
        "Does memory that was never touched cost more than memory used before?",
        "",
        answer,
        Some(look.judge(FIRST_TOUCH, CPU, &plain)),
    ))
}

/// The state of a goal `at most bound`.
fn state(c: &Compared) -> GoalState {
    match c.verdict {
        Verdict::Refused if c.ratio.lo == c.ratio.hi => GoalState::Open,
        _ if c.ratio.hi <= BOUND => GoalState::Met,
        _ if c.ratio.lo > BOUND => GoalState::Missed,
        _ => GoalState::Open,
    }
}

fn goals(look: &Look<'_>) -> Vec<Goal> {
    // Nothing of this group was asked for: no goal to speak of.
    if cell(look, PLAIN).is_none() {
        return Vec::new();
    }
    [
        (
            AGAIN,
            "first touch of 256 MiB, huge pages allowed, memory used before",
        ),
        (
            CPU,
            "first touch of 256 MiB, huge pages allowed, first pass of a process",
        ),
    ]
    .into_iter()
    .map(|(metric, what)| goal(look, metric, what))
    .collect()
}

fn goal(look: &Look<'_>, metric: &str, what: &str) -> Goal {
    let held = |name| {
        look.estimate(FIRST_TOUCH, cell(look, name)?, HELD)
            .map(|e| e.value)
    };
    let measured = against_plain(look, POOL, metric);
    let note = match &measured {
        None => why_not(&look.view.run().skipped),
        Some(_) => against_plain(look, "region-thp", metric).map_or_else(String::new, |thp| {
            format!("Huge pages without a pool: {}.", words::times(&thp.ratio))
        }),
    };
    Goal {
        what: what.to_owned(),
        against: "plain mmap and touch".to_owned(),
        bound: format!("at most {BOUND}"),
        measured: measured.map(|c| c.ratio),
        unit: "x".to_owned(),
        held_bytes: held(POOL).zip(held(PLAIN)),
        state: measured.as_ref().map_or(GoalState::Skipped, state),
        note,
    }
}

fn why_not(skipped: &[Skipped]) -> String {
    skipped.iter().find(|s| s.what.contains(POOL)).map_or_else(
        || "The pool was not among the contestants.".to_owned(),
        |s| s.why.clone(),
    )
}
