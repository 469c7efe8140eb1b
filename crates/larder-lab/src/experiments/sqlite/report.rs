//! Goals, tables and sentences.

use super::{
    DEFAULT, GIVEN, HITS, LOCKED, LOOKUPS, MEMORY, MISSES, MIXED, MS, NS, OWN, PAGES, THREADS,
    TRANSACTION, loads,
};
use crate::frame::words::{Bound, exact, short};
use crate::frame::{
    At, Column, Results, cost, each, finding, goal, grid, listing, not_measured, number, ratios,
    section, text, versus_called,
};
use crate::model::{Analysis, Block, Cost, Finding, Goal, Table};

/// What larder's is called in a sentence.
const CALLED: &str = "larder's page cache";
/// And the other one.
const OTHER: &str = "SQLite's own";

/// A cell of the lookups.
type Where = (&'static str, i64);

fn everywhere() -> impl Iterator<Item = Where> {
    LOOKUPS
        .into_iter()
        .flat_map(|(lookups, sizes)| sizes.iter().map(move |mb| (lookups, *mb)))
}

fn hit<'r, 'a>(results: &'r Results<'a>, name: &str, threads: i64) -> Option<At<'r, 'a>> {
    results.find(HITS, name, &[("threads", threads)])
}

/// Pages that a rule missed over those that SQLite's own cache did.
fn share(results: &Results<'_>, name: &str, (lookups, mb): Where) -> Option<f64> {
    let of = |name: &str| {
        let mut cells = results.all(MISSES).filter(|at| at.name() == name);
        cells
            .find(|at| at.text("lookups") == Some(lookups) && at.int("mb") == Some(mb))?
            .middle(PAGES)
    };
    Some(of(name)? / of(OWN)?)
}

/// Geometric mean and largest of these shares; none unless all were measured.
fn shares(results: &Results<'_>, name: &str) -> Option<(f64, f64)> {
    let all: Option<Vec<f64>> = everywhere().map(|at| share(results, name, at)).collect();
    let all = all?;
    let mean = all.iter().map(|share| share.ln()).sum::<f64>() / all.len() as f64;
    Some((mean.exp(), all.into_iter().fold(0.0, f64::max)))
}

/// Whether the rows are as many as the goals speak of.
fn is_whole(results: &Results<'_>, group: &str) -> bool {
    results
        .all(group)
        .next()
        .is_some_and(|at| at.int("scale") == Some(1))
}

/// What a run says.
pub(super) fn of(results: &Results<'_>) -> Analysis {
    let tables = |tables: Vec<Table>| tables.into_iter().map(Block::Table);
    Analysis {
        findings: findings(results),
        goals: goals(results),
        costs: costs(results),
        sections: vec![
            section(
                "Time",
                tables(vec![hits(results), mixed(results), transaction(results)]),
            ),
            section("Pages read", tables(vec![misses(results), means(results)])),
            section("Memory", tables(vec![memory(results)])),
        ],
        ..Analysis::default()
    }
}

fn costs(results: &Results<'_>) -> Vec<Cost> {
    let [ours, own] = [DEFAULT, OWN].map(|name| hit(results, name, 1));
    Vec::from_iter(cost("SQLite lookup, cached", "ns", NS, ours, own, None))
}

/// Every goal, met or not.
fn goals(results: &Results<'_>) -> Vec<Goal> {
    let locked = hit(results, OWN, 1).and_then(|at| at.middle(LOCKED)) == Some(1.0);
    let threads = |bound, number, what: &str| {
        let [ours, own] = [DEFAULT, OWN].map(|name| hit(results, name, number));
        goal(bound, what, ours, own, OTHER, NS)
    };
    let (one, two) = (
        "one thread looks up what is there",
        "two threads look up what is there",
    );
    let mut all = match locked {
        true => vec![
            threads(Bound::AtMost(0.85), 1, one),
            threads(Bound::AtMost(0.25), 2, two),
        ],
        false => {
            let why = "this SQLite has no lock there; to measure it, build this program with \
                LIBSQLITE3_FLAGS=-DSQLITE_ENABLE_MEMORY_MANAGEMENT cargo build --release";
            let lock = format!("{two}, where SQLite's own takes a lock");
            vec![
                threads(Bound::AtMost(0.97), 1, one),
                threads(Bound::AtMost(1.0), 2, two),
                not_measured(Bound::AtMost(0.25), lock, OTHER, why),
            ]
        }
    };
    let what = "statements of all kinds in a cache of the default size";
    let [ours, own] = [DEFAULT, OWN].map(|name| results.find(MIXED, name, &[]));
    let bound = Bound::AtMost(1.01);
    all.push(goal(bound, format!("{what}: time"), ours, own, OTHER, MS));
    let pages = ours
        .zip(own)
        .and_then(|(a, b)| Some(a.middle(PAGES)? / b.middle(PAGES)?));
    all.push(counted(bound, &format!("{what}: pages read"), pages, MIXED));

    let whole = |group: &str| is_whole(results, group);
    let bound = Bound::AtMost(1.0);
    let what = "one big transaction, with every rule that ran";
    let own = results.find(TRANSACTION, OWN, &[]);
    let rules = results.all(TRANSACTION).filter(|at| at.name() != OWN);
    let rules = rules.map(|at| {
        (
            at.name().to_owned(),
            goal(bound, what, Some(at), own, OTHER, MS),
        )
    });
    let did_not_run = || goal(bound, what, None, own, OTHER, MS);
    all.push(each(bound, rules).unwrap_or_else(did_not_run));

    let (what, mean) = (
        "pages read by lookups, mean of 16 cells",
        Bound::AtMost(0.84),
    );
    let worst = "pages read by lookups, worst of 16 cells";
    let loops = "pages read where a table of 21 MB is scanned in 25 MB";
    let half = Bound::AtMost(0.5);
    if whole(MISSES) {
        let shares = shares(results, DEFAULT);
        all.push(counted(mean, what, shares.map(|(mean, _)| mean), MISSES));
        all.push(counted(
            bound,
            worst,
            shares.map(|(_, worst)| worst),
            MISSES,
        ));
        all.push(counted(
            half,
            loops,
            share(results, DEFAULT, (loads::SMALL, 25)),
            MISSES,
        ));
    } else {
        for (bound, what) in [(mean, what), (bound, worst), (half, loops)] {
            all.push(bound.needs(what, OTHER, "all rows", "sqlite --full --group misses"));
        }
    }

    let own = results.find(MEMORY, DEFAULT, &[]);
    let why = if own.is_some() {
        String::new()
    } else {
        format!("group {MEMORY} did not run")
    };
    let given = own.and_then(|at| at.estimate(GIVEN));
    let what = "of the memory of 16 caches, what goes back when 15 are released";
    all.push(
        Bound::AtLeast(80.0)
            .goal(what, "", given, None, why)
            .in_unit("%"),
    );
    all
}

/// A goal on a ratio of counts, which have no interval.
fn counted(bound: Bound, what: &str, ratio: Option<f64>, group: &str) -> Goal {
    match ratio {
        Some(ratio) => bound.goal(what, OTHER, Some(exact(ratio)), None, "a count"),
        None => not_measured(bound, what, OTHER, format!("group {group} did not run")),
    }
}

fn hits(results: &Results<'_>) -> Table {
    let names = results.ranked(HITS, NS);
    let rows = names
        .iter()
        .filter(|at| at.int("threads") == Some(1) && at.name() != OWN);
    let columns = THREADS.map(|n| {
        (
            n,
            if n == 1 {
                "1 thread".to_owned()
            } else {
                format!("{n} threads")
            },
        )
    });
    ratios(
        "A lookup whose pages are in the cache, over SQLite's own cache",
        "rule",
        rows.map(|at| (at.name(), text(at.name()))),
        columns,
        NS,
        |name, threads| Some((hit(results, name, *threads)?, hit(results, OWN, *threads)?)),
    )
}

fn mixed(results: &Results<'_>) -> Table {
    timed(
        results,
        MIXED,
        "Statements of all kinds, in a cache of SQLite's default size",
    )
}

fn transaction(results: &Results<'_>) -> Table {
    timed(
        results,
        TRANSACTION,
        "One transaction whose dirty pages fill the cache",
    )
}

fn timed(results: &Results<'_>, group: &str, title: &str) -> Table {
    let columns = vec![
        Column::contestant("cache"),
        Column::metric("CPU time", MS),
        Column::against("of SQLite's own", results.find(group, OWN, &[]), MS),
        Column::middle("pages read", PAGES),
    ];
    listing(title, results.ranked(group, MS), columns)
}

/// Rules that looked rows up, the best one first.
fn readers<'a>(results: &Results<'a>) -> Vec<&'a str> {
    let mut all: Vec<&str> = results
        .all(MISSES)
        .map(|at| at.name())
        .filter(|name| *name != OWN)
        .collect();
    all.sort_unstable();
    all.dedup();
    all.sort_by(|a, b| {
        let of = |name: &str| shares(results, name).map_or(f64::MAX, |(mean, _)| mean);
        of(a).total_cmp(&of(b))
    });
    all
}

fn misses(results: &Results<'_>) -> Table {
    grid(
        "Pages read, over those with SQLite's own cache",
        "lookups, MB of cache",
        everywhere().map(|at| (at, text(format!("{}, {}", at.0, at.1)))),
        readers(results).into_iter().map(|name| (name, name.to_owned())),
        |at, name| number(share(results, name, *at)),
    )
    .noted("Of a database of 480 MB; the quick form has a 16th of its rows, of the lookups and of the cache.")
}

fn means(results: &Results<'_>) -> Table {
    let columns = [(true, "geometric mean"), (false, "worst")];
    grid(
        "All 16 cells",
        "rule",
        readers(results)
            .into_iter()
            .map(|name| (shares(results, name), text(name))),
        columns.map(|(is_mean, name)| (is_mean, name.to_owned())),
        |shares, is_mean| number(shares.map(|(mean, worst)| if *is_mean { mean } else { worst })),
    )
}

fn memory(results: &Results<'_>) -> Table {
    let columns = vec![
        Column::contestant("cache"),
        Column::metric("given back", GIVEN),
    ];
    listing(
        "Of the memory of 16 filled caches, what goes back when 15 are released",
        results.ranked(MEMORY, GIVEN),
        columns,
    )
}

/// The sentences.
fn findings(results: &Results<'_>) -> Vec<Finding> {
    let called = (CALLED, OTHER);
    let lookup = |threads: i64, question: &str| {
        let (ours, own) = (hit(results, DEFAULT, threads)?, hit(results, OWN, threads)?);
        versus_called(question, called, &ours, &own, NS, "ns")
    };
    let load = |group: &str, question: &str| {
        let (ours, own) = (
            results.find(group, DEFAULT, &[])?,
            results.find(group, OWN, &[])?,
        );
        versus_called(question, called, &ours, &own, MS, "ms")
    };
    let pages = shares(results, DEFAULT).map(|(mean, worst)| {
        let answer = format!(
            "{CALLED} reads {} of the pages that {OTHER} reads, in the geometric mean of 16 cells; {} in the worst.",
            short(mean),
            short(worst)
        );
        finding("Are fewer pages read?", "larder", answer)
    });
    let memory = || {
        let of = |name: &str| results.find(MEMORY, name, &[])?.middle(GIVEN);
        let (ours, own) = (of(DEFAULT)?, of(OWN)?);
        let answer = format!(
            "{CALLED}: {} %; {OTHER}: {} %, when 15 of 16 connections release their caches.",
            short(ours),
            short(own)
        );
        Some(finding(
            "Does memory go back to the system?",
            "larder",
            answer,
        ))
    };
    [
        lookup(1, "What does a lookup cost whose pages are in the cache?"),
        lookup(2, "What does it cost each of two threads?"),
        load(MIXED, "What do statements of all kinds cost?"),
        load(
            TRANSACTION,
            "What does a transaction cost that fills the cache with dirty pages?",
        ),
        pages,
        memory(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
