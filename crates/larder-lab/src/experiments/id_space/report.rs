//! Sections, the chart, and the sentences.

use super::plan::{
    BITS, CREATE, CYCLIC, DISTANCE_LIVES, FEW, HUGE, LOWEST, SHARED, SHARED_PEERS, SMALL,
    SMALL_LIVES, SPARSE, SPARSE_PEERS, SWEEPS, Sweep, THREAD_LIVES, THREADED,
};
use super::rows::{COST, Clock, Rest, of_yardstick, rests, scaling, share, spread};
use crate::frame::words::{ratio, short};
use crate::frame::{
    At, Column, Results, cost, finding, grid, lines, listing, median_of, over, ratios, versus,
};
use crate::model::{Block, Chart, Cost, Finding, Scale, Section, Table, Value};
use crate::stats::Estimate;

/// What an identifier costs two thirds full, for the summary.
pub(super) fn costs(results: &Results<'_>) -> Vec<Cost> {
    let factors = [("live", SMALL_LIVES[2])];
    let row = |sweep: &Sweep| {
        let ours = results.find(sweep.group, "ids", &factors);
        let peer = results.best(sweep.group, &sweep.peers(), &factors, COST);
        let what = format!("identifier, {}", sweep.group);
        cost(&what, "ns", COST, ours, peer, None)
    };
    SWEEPS[..2].iter().filter_map(row).collect()
}

/// Every section, in reading order.
pub(super) fn sections(results: &Results<'_>) -> Vec<Section> {
    let section = |title: &str, blocks: Vec<Block>| Section {
        title: title.to_owned(),
        blocks,
    };
    let swept = |sweeps: &'static [Sweep]| {
        let tables = sweeps.iter().flat_map(|sweep| swept(results, sweep));
        tables.map(Block::Table).collect::<Vec<Block>>()
    };
    let mut small = swept(&SWEEPS[..4]);
    small.push(Block::Chart(chart(results)));
    vec![
        section("32768 identifiers", small),
        section("4 million identifiers", swept(&SWEEPS[4..])),
        section("2^32 identifiers", vec![Block::Table(sparse(results))]),
        section("Memory", vec![Block::Table(bits(results))]),
        section("Two threads", vec![Block::Table(threads(results))]),
        section("Making a space", vec![Block::Table(create(results))]),
        section("Rest", distances(results).map(Block::Table).to_vec()),
    ]
}

/// A pair by occupancy, cyclic.
fn chart(results: &Results<'_>) -> Chart {
    let names = ["ids"].into_iter().chain(SWEEPS[0].peers());
    lines(
        "A pair by the number of identifiers that are taken, cyclic",
        ("taken of 32768", Scale::Linear),
        ("ns for a free and an allocation", Scale::Log),
        names.map(|name| over(name, results.of(CYCLIC, name), "live", COST)),
    )
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

fn estimate(of: Option<Estimate>) -> Value {
    of.map_or(Value::Empty, |e| Value::Estimate(e, String::new()))
}

/// How many are taken.
fn taken<'t>(count: i64) -> Column<'t> {
    Column::by("taken", move |at| {
        at.int("live")
            .map_or(Value::Empty, |live| text(share(live, count)))
    })
}

/// A pair by source and occupancy, its ratio to each peer, and its parts.
fn swept(results: &Results<'_>, sweep: &'static Sweep) -> [Table; 3] {
    let group = sweep.group;
    let title = format!("{} ({group})", sweep.title);
    let find = |name: &str, live: i64| results.find(group, name, &[("live", live)]);
    let lives = || {
        sweep
            .lives
            .iter()
            .map(|live| (*live, share(*live, sweep.count)))
    };
    let peers = || sweep.peers().into_iter().map(|name| (name, text(name)));
    let columns = lives().map(|(live, share)| (Some(live), share));
    let costs = grid(
        &title,
        "source",
        [("ids", text("ids"))].into_iter().chain(peers()),
        columns.chain([(None, "held".to_owned())]),
        |name, live| match live {
            Some(live) => find(name, *live).map_or(Value::Empty, |at| at.value(COST)),
            // At the occupancy at which it holds most.
            None => {
                let held = results
                    .of(group, name)
                    .filter_map(|at| at.middle("held_bytes"));
                let most = held.reduce(f64::max);
                most.map_or(Value::Empty, |held| Value::Number(held, "B".to_owned()))
            }
        },
    );
    let over = ratios(
        format!("{title}: larder's ids over each"),
        "source",
        peers(),
        lives(),
        COST,
        |peer, live| Some((find("ids", *live)?, find(peer, *live)?)),
    );
    let mut cells: Vec<At<'_, '_>> = results.all(group).collect();
    cells.sort_by_key(|at| at.int("live"));
    let parts = listing(
        format!("{title}: free and allocation apart"),
        cells,
        vec![
            taken(sweep.count),
            Column::contestant("source"),
            Column::metric("free", "ns_per_free"),
            Column::metric("allocation", "ns_per_alloc"),
            Column::metric("pair of a slow batch", "p99_ns_per_pair"),
            Column::metric("held", "held_bytes"),
            Column::metric("bits an identifier", "bits_per_id"),
        ],
    );
    [
        noted(
            costs,
            "One free and one allocation in batches of 256 each, wall time without the slowest hundredth of the batches; held at the occupancy that needs most.",
        ),
        Table { long: true, ..over },
        Table {
            long: true,
            ..noted(
                parts,
                "A slow batch is the one that one in a hundred exceeds.",
            )
        },
    ]
}

fn noted(table: Table, note: &str) -> Table {
    Table {
        notes: vec![note.to_owned()],
        ..table
    }
}

fn sparse(results: &Results<'_>) -> Table {
    let table = listing(
        "2^32 identifiers, 430 thousand of them taken, or free",
        results.all(SPARSE),
        vec![
            taken(HUGE),
            Column::contestant("source"),
            Column::metric("free", "ns_per_free"),
            Column::metric("allocation", "ns_per_alloc"),
            Column::metric("pair", COST),
            Column::metric("held", "held_bytes"),
        ],
    );
    noted(table, "The caches are swept with 48 MB before each batch.")
}

fn bits(results: &Results<'_>) -> Table {
    let table = listing(
        "Bits held for an identifier, half of them taken",
        results.all(BITS),
        vec![
            Column::contestant("source"),
            Column::factor("rule", "rule"),
            Column::factor("identifiers", "count"),
            Column::middle("bits each", "bits_per_id"),
        ],
    );
    noted(
        table,
        "By each source's own account of its arrays; by the C library's heap where a crate gives none.",
    )
}

fn threads(results: &Results<'_>) -> Table {
    let find = |name: &str, threads: i64, live: i64| {
        results.find(THREADED, name, &[("threads", threads), ("live", live)])
    };
    let cells = THREAD_LIVES.into_iter().flat_map(|live| {
        let names = SHARED.into_iter().chain(SHARED_PEERS);
        names.filter_map(move |name| find(name, 1, live).and_then(|_| find(name, 2, live)))
    });
    let by = |heading, of: fn(&Results<'_>, &str, i64) -> Value| {
        Column::by(heading, move |at: &At<'_, '_>| {
            of(results, at.name(), at.int("live").unwrap_or(0))
        })
    };
    let table = listing(
        "Each thread frees one of its own and takes another",
        cells,
        vec![
            taken(SMALL),
            Column::contestant("source"),
            Column::by("one thread", |at| {
                let one = at.int("live").and_then(|live| find(at.name(), 1, live));
                one.map_or(Value::Empty, |one| one.value("mops_per_s"))
            }),
            Column::metric("two threads", "mops_per_s"),
            by("two over one", |r, name, live| {
                estimate(median_of(&scaling(r, name, live, Clock::Wall)))
            }),
            by("by CPU time", |r, name, live| {
                estimate(median_of(&scaling(r, name, live, Clock::Cpu)))
            }),
            by("of the empty loop's", |r, name, live| {
                estimate(of_yardstick(r, name, live, Clock::Wall))
            }),
            by("of it by CPU time", |r, name, live| {
                estimate(of_yardstick(r, name, live, Clock::Cpu))
            }),
            Column::metric("CPU time of a pair", "cpu_ns_per_pair"),
            Column::metric("'full' too early", "false_full"),
            Column::metric("lost", "lost_ids"),
        ],
    );
    Table {
        notes: vec![
            "The loop is in all of them; the empty loop shows how far the machine itself scales, and a bare array for each thread what nothing shared can reach.".to_owned(),
            "By CPU time: twice the pairs of two threads for each CPU second that they used, over those of one. What other programs take of the CPUs does not count there, and neither does sleeping on a lock.".to_owned(),
        ],
        ..table
    }
}

fn create(results: &Results<'_>) -> Table {
    let ranked = results.ranked(CREATE, "ns_per_space").into_iter();
    let names = ranked
        .filter(|at| at.int("first") == Some(1))
        .map(|at| at.name());
    grid(
        "Making a space of 2^20 identifiers",
        "source",
        names.map(|name| (name, text(name))),
        [
            (0, "alone".to_owned()),
            (1, "and its first identifier".to_owned()),
        ],
        |name, first| {
            let cell = results.find(CREATE, name, &[("first", *first)]);
            cell.map_or(Value::Empty, |at| at.value("ns_per_space"))
        },
    )
}

/// The fewest of each rule by occupancy, and everything where a rule states something.
fn distances(results: &Results<'_>) -> [Table; 2] {
    let number = |of: Option<f64>| of.map_or(Value::Empty, |n| Value::Number(n, String::new()));
    let all = rests(results);
    let mut rules: Vec<String> = all.iter().map(Rest::called).collect();
    rules.dedup();
    let fewest = grid(
        "Fewest allocations between a free and the same identifier's return, one by one",
        "rule",
        rules.into_iter().map(|rule| (rule.clone(), text(rule))),
        DISTANCE_LIVES.map(|live| (live, share(live, SMALL))),
        |rule, live| {
            let mut of_rule = all.iter().filter(|rest| rest.called() == *rule);
            let rest = of_rule.find(|rest| rest.live == *live && rest.batch == 1);
            number(rest.and_then(|rest| rest.found))
        },
    );
    let rows = all.iter().filter_map(|rest| {
        let of = |metric| number(rest.at.middle(metric));
        Some(vec![
            text(rest.called()),
            text(share(rest.live, SMALL)),
            text(rest.order()),
            number(Some(rest.least?)),
            number(rest.found),
            of("distance_p1"),
            of("distance_median"),
            text(if rest.is_broken() { "DEFECT" } else { "" }),
        ])
    });
    let headings = [
        "rule", "taken", "frees", "stated", "fewest", "p1", "median", "",
    ];
    let stated = Table {
        title: "Where a rule states how long an identifier rests".to_owned(),
        columns: headings.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: vec!["What is stated follows the number of free identifiers before each batch, and in a shared space the number of CPUs, for each of which some lie ready.".to_owned()],
        long: true,
    };
    [
        noted(
            fewest,
            "Freed at random. Allocations; 'rested 100 calls' in readings of a clock that goes on whenever it is read, 'rested 100 us' in nanoseconds.",
        ),
        stated,
    ]
}

/// The sentences.
pub(super) fn findings(results: &Results<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(occupancy(results));
    let two_thirds = SMALL_LIVES[2];
    for (question, group, live, peers) in [
        (
            "What does the next free identifier cost, two thirds of 32768 taken?",
            CYCLIC,
            two_thirds,
            &["pidmap"][..],
        ),
        (
            "What does the lowest free identifier cost, two thirds of 32768 taken?",
            LOWEST,
            two_thirds,
            &["hibitset"],
        ),
        // In whichever form the crate is better at this occupancy.
        (
            "Does a wide space cost what is used of it, 0.01 % of 2^32 taken?",
            SPARSE,
            FEW,
            &SPARSE_PEERS,
        ),
        (
            "And with all but 0.01 % taken?",
            SPARSE,
            HUGE - FEW,
            &SPARSE_PEERS,
        ),
    ] {
        let factors = [("live", live)];
        let ours = results.find(group, "ids", &factors);
        let peer = results.best(group, peers, &factors, COST);
        let pair = ours.zip(peer);
        all.extend(pair.and_then(|(a, b)| versus(question, "larder's ids", &a, &b, COST, "ns")));
    }
    all.extend(second_thread(results));
    all.extend(rest(results));
    all
}

/// How far the cost depends on how full the space is.
fn occupancy(results: &Results<'_>) -> Option<Finding> {
    let names = ["ids"].into_iter().chain(SWEEPS[0].peers());
    let table = grid(
        "The most expensive occupancy from 3 to 100 % over the cheapest",
        "source",
        names.map(|name| (name, text(name))),
        [((), "ratio".to_owned())],
        |name, ()| estimate(spread(results, CYCLIC, name)),
    );
    let answer = format!(
        "From 3 to 100 % of 32768 taken, larder's ids cost {} times as much at the most expensive occupancy as at the cheapest; the goal is 3.",
        ratio(&spread(results, CYCLIC, "ids")?)
    );
    Some(Finding {
        table: Some(table),
        ..finding(
            "Does an identifier cost more the fuller the space is?",
            "larder",
            answer,
        )
    })
}

fn second_thread(results: &Results<'_>) -> Option<Finding> {
    let live = THREAD_LIVES[0];
    let gain = |name| of_yardstick(results, name, live, Clock::Cpu);
    let cyclic = gain("id-space").map_or_else(String::new, |gain| {
        format!(", and {} under the cyclic rule", short(gain.value))
    });
    let answer = format!(
        "With {} taken, larder's IdSpace gains {} of what an empty loop gains in no order{cyclic}.",
        share(live, SMALL),
        ratio(&gain("id-space-any")?)
    );
    Some(finding(
        "Does a second thread double what a shared space does?",
        "larder",
        answer,
    ))
}

/// Whether every rule keeps the distance that it states.
fn rest(results: &Results<'_>) -> Option<Finding> {
    let all = rests(results).into_iter();
    let stated: Vec<Rest<'_, '_>> = all
        .filter(|r| r.least.is_some() && r.found.is_some())
        .collect();
    let broken = stated.iter().filter(|rest| rest.is_broken()).map(|rest| {
        let number = |of: Option<f64>| of.map_or_else(String::new, short);
        format!(
            "{}: {} of {}",
            rest.place(),
            number(rest.found),
            number(rest.least)
        )
    });
    let broken: Vec<String> = broken.collect();
    let answer = match (stated.len(), broken.as_slice()) {
        (0, _) => return None,
        (all, []) => format!("Yes, in all {all} cells in which a rule states one."),
        (all, _) => format!(
            "DEFECT: in {} of {all} cells the fewest found is below what is stated: {}.",
            broken.len(),
            broken.join("; ")
        ),
    };
    let question =
        "Does every rule keep the reuse distance that it states, also shared and by a clock?";
    Some(finding(question, "larder", answer))
}
