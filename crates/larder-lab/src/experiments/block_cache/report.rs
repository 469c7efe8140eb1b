//! Goals, tables and sentences.

use super::{INSTRUCTIONS, MEMORY, MISS, OURS, PEERS, SHARED, SIZES, THREADED, THREADS, hit_group};
use crate::frame::words::{Bound, ratio};
use crate::frame::{
    At, Column, Results, cost, each, finding, goal, grid, listing, median_of, shown, text,
    together, versus,
};
use crate::model::{Analysis, Block, Cost, Finding, Goal, Section, Table};
use crate::stats::Estimate;

/// What larder's is called in a sentence.
const CALLED: &str = "larder's block cache";

/// The library's cell and that of the peer with the least of a metric.
fn both<'r, 'a>(results: &'r Results<'a>, group: &'r str, metric: &str) -> [Option<At<'r, 'a>>; 2] {
    let ours = results.find(group, OURS, &[]);
    [ours, results.best(group, &PEERS, &[], metric)]
}

/// Rate of two threads over the rate of one, the median of the rounds.
fn scaling(results: &Results<'_>, contestant: &str) -> Option<Estimate> {
    let rates = |n| Some(threaded(results, contestant, n)?.by_round("mops_per_s"));
    median_of(&together(&[rates(2)?, rates(1)?], |v| v[0] / v[1]))
}

fn threaded<'r, 'a>(results: &'r Results<'a>, name: &str, threads: i64) -> Option<At<'r, 'a>> {
    results.find(THREADED, name, &[("threads", threads)])
}

/// Instructions of a hit, loop included.
fn counted(results: &Results<'_>, cache: &str) -> Option<f64> {
    let mut cells = results.all(INSTRUCTIONS);
    let cell = cells.find(|at| at.text("cache") == Some(cache))?;
    cell.middle(INSTRUCTIONS)
}

/// What a run says.
pub(super) fn of(results: &Results<'_>) -> Analysis {
    let hits = SIZES.iter().map(|blocks| {
        let title = format!("A get of one of {blocks} blocks that are in memory");
        by_cost(results, &hit_group(*blocks), "ns_per_hit", "ns", title)
    });
    let title = "A block comes and another one leaves; no byte is moved".to_owned();
    let miss = by_cost(results, MISS, "ns_per_miss", "ns", title);
    let title = "Memory for each block that is in, without its page".to_owned();
    let memory = by_cost(results, MEMORY, "bytes_per_block", "B", title);
    let section = |title: &str, tables: Vec<Table>| Section {
        title: title.to_owned(),
        blocks: tables.into_iter().map(Block::Table).collect(),
    };
    Analysis {
        costs: costs(results),
        findings: findings(results),
        goals: goals(results),
        sections: vec![
            section("One thread", hits.chain([miss]).collect()),
            section("Several threads", vec![threads(results)]),
            section("Memory and instructions", vec![memory, counts(results)]),
        ],
        ..Analysis::default()
    }
}

/// What a cached block costs, for the summary.
fn costs(results: &Results<'_>) -> Vec<Cost> {
    let hit = hit_group(SIZES[0]);
    let rows = [
        ("cached block, found", hit.as_str(), "ns_per_hit"),
        ("cached block, missed", MISS, "ns_per_miss"),
    ];
    let row = |(what, group, metric)| {
        let [ours, peer] = both(results, group, metric);
        cost(
            what,
            "ns",
            metric,
            ours,
            peer,
            results.find(group, "loop", &[]),
        )
    };
    rows.into_iter().filter_map(row).collect()
}

/// Every goal, met or not.
fn goals(results: &Results<'_>) -> Vec<Goal> {
    let bound = Bound::AtMost(0.8);
    let what = "a block that is in memory is found: larder's block cache";
    let hit = |blocks: i64| {
        let group = hit_group(blocks);
        let [ours, peer] = both(results, &group, "ns_per_hit");
        let goal = goal(bound, what, ours, peer, "the fastest crate", "ns_per_hit");
        ours.map(|_| (format!("{blocks} blocks"), goal))
    };
    let no_hits = || goal(bound, what, None, None, "the fastest crate", "ns_per_hit");
    let hits = each(bound, SIZES.into_iter().filter_map(hit)).unwrap_or_else(no_hits);
    let ours = results.find(MISS, OURS, &[]);
    let shared = results.best(MISS, &PEERS[..SHARED], &[], "ns_per_miss");
    let what = "a block that is not in memory comes: larder's block cache";
    let peers = "the fastest crate for several threads";
    let misses = goal(Bound::AtMost(2.0), what, ours, shared, peers, "ns_per_miss");
    let ran = |is_there: bool, group: &str| match is_there {
        true => String::new(),
        false => format!("group {group} did not run"),
    };
    let threads = Bound::AtLeast(1.8).goal(
        "two threads find blocks in one cache: their rate over that of one",
        "perfect scaling is 2",
        scaling(results, OURS),
        None,
        ran(threaded(results, OURS, 2).is_some(), THREADED),
    );
    let own = results.find(MEMORY, OURS, &[]);
    let memory = Bound::AtMost(32.0).goal(
        "memory for each cached page beside its bytes, with what is remembered of pages that left",
        "",
        own.and_then(|at| at.estimate("bytes_per_block")),
        None,
        ran(own.is_some(), MEMORY),
    );
    let instructions = counted(results, OURS).map(|count| {
        let alone = counted(results, "loop").unwrap_or(0.0);
        let what = "instructions of a hit, without the loop";
        let goal = Bound::AtMost(45.0).counted(&results.view, what, "", count - alone);
        goal.in_unit("instructions")
    });
    let all = [hits, misses, threads, memory.in_unit("bytes")];
    all.into_iter().chain(instructions).collect()
}

fn by_cost(results: &Results<'_>, group: &str, metric: &str, unit: &str, title: String) -> Table {
    let [_, peer] = both(results, group, metric);
    let columns = vec![
        Column::contestant("cache"),
        Column::metric(unit, metric),
        Column::against("of the best peer", peer, metric),
    ];
    let table = listing(title, results.ranked(group, metric), columns);
    match peer {
        Some(peer) => table.noted(&format!("The best peer is {}.", peer.name())),
        None => table,
    }
}

fn threads(results: &Results<'_>) -> Table {
    let columns = THREADS.map(|n| (Some(n), format!("{n} threads")));
    let columns = columns.into_iter().chain([(None, "over one".to_owned())]);
    grid(
        "Gets of 32,768 resident blocks by all threads together",
        "cache",
        [OURS].iter().chain(&PEERS).map(|name| (*name, text(*name))),
        columns,
        |name, threads| match threads {
            Some(n) => results.value(THREADED, name, &[("threads", *n)], "mops_per_s"),
            None => shown(scaling(results, name), "x"),
        },
    )
}

fn counts(results: &Results<'_>) -> Table {
    let columns = vec![
        Column::factor("cache", "cache"),
        Column::middle("instructions", INSTRUCTIONS),
    ];
    let title = "Instructions of one hit, with the loop around it";
    listing(title, results.all(INSTRUCTIONS), columns)
        .noted("Difference of two runs under callgrind, among 32,768 blocks.")
}

/// The sentences.
fn findings(results: &Results<'_>) -> Vec<Finding> {
    let beside = |group: &str, metric, unit, question: String| {
        let [ours, peer] = both(results, group, metric);
        versus(question, CALLED, &ours?, &peer?, metric, unit)
    };
    let hits = SIZES.iter().map(|blocks| {
        let question =
            format!("What does it cost to find one of {blocks} blocks that are in memory?");
        beside(&hit_group(*blocks), "ns_per_hit", "ns", question)
    });
    let question = "What does it cost to bring a block for which another one leaves?".to_owned();
    let miss = beside(MISS, "ns_per_miss", "ns", question);
    let question = "How much memory does a cached page take beside its bytes?".to_owned();
    // Of bytes it is neither faster nor slower.
    let memory = beside(MEMORY, "bytes_per_block", "bytes", question).map(|finding| Finding {
        verdict: None,
        reading: String::new(),
        ..finding
    });
    let second = scaling(results, OURS).map(|r| {
        let answer = format!("Two threads find {} times the blocks of one.", ratio(&r));
        finding(
            "Does a second thread find more blocks in one cache?",
            "larder",
            answer,
        )
    });
    hits.chain([miss, memory, second]).flatten().collect()
}
