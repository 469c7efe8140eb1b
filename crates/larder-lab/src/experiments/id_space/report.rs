//! Sections, the chart, and the sentences.

use super::plan::{
    BITS, CREATE, CYCLIC, DISTANCE_LIVES, FEW, HUGE, LOWEST, SHARED, SHARED_PEERS, SMALL,
    SMALL_LIVES, SPARSE, SPARSE_PEERS, SWEEPS, Sweep, THREAD_LIVES, THREADED,
};
use super::rows::{
    COST, Clock, found, of_yardstick, order, place, rests, ruled, scaling, share, spread, stated,
};
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
    let huge = "2^32 identifiers, 430 thousand of them taken, or free";
    let huge = parts(results, SPARSE, HUGE, huge);
    vec![
        section("32768 identifiers", small),
        section("4 million identifiers", swept(&SWEEPS[4..])),
        section("2^32 identifiers", vec![Block::Table(huge)]),
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

fn number(of: Option<f64>) -> Value {
    of.map_or(Value::Empty, |n| Value::Number(n, String::new()))
}

/// How many are taken.
fn taken<'t>(count: i64) -> Column<'t> {
    Column::by("taken", move |at| {
        let live = at.int("live");
        live.map_or(Value::Empty, |live| text(share(live, count)))
    })
}

/// A pair by source and occupancy, its ratio to each peer, and its parts.
fn swept(results: &Results<'_>, sweep: &'static Sweep) -> [Table; 3] {
    let (group, [_, title]) = (sweep.group, sweep.called());
    let title = format!("{title} ({group})");
    let find = |name: &str, live: i64| results.find(group, name, &[("live", live)]);
    let lives = sweep.lives.iter().copied();
    let lives = || lives.clone().map(|live| (live, share(live, sweep.count)));
    let peers = || sweep.peers().into_iter().map(|name| (name, text(name)));
    let costs = grid(
        &title,
        "source",
        [("ids", text("ids"))].into_iter().chain(peers()),
        lives(),
        |name, live| find(name, *live).map_or(Value::Empty, |at| at.value(COST)),
    );
    let over = ratios(
        format!("{title}: larder's ids over each"),
        "source",
        peers(),
        lives(),
        COST,
        |peer, live| Some((find("ids", *live)?, find(peer, *live)?)),
    );
    let apart = format!("{title}: free and allocation apart");
    let parts = parts(results, group, sweep.count, &apart);
    [
        noted(
            costs,
            "One free and one allocation in batches of 256 each, wall time without the slowest hundredth of the batches.",
        ),
        Table { long: true, ..over },
        Table {
            long: true,
            ..parts
        },
    ]
}

/// Free and allocation apart, the slow batches, and what is held.
fn parts(results: &Results<'_>, group: &str, count: i64, title: &str) -> Table {
    let mut cells: Vec<At<'_, '_>> = results.all(group).collect();
    cells.sort_by_key(|at| at.int("live"));
    let table = listing(
        title,
        cells,
        vec![
            taken(count),
            Column::contestant("source"),
            Column::metric("free", "ns_per_free"),
            Column::metric("allocation", "ns_per_alloc"),
            Column::metric("both", COST),
            Column::metric("both in a slow batch", "p99_ns_per_pair"),
            Column::metric("held", "held_bytes"),
            Column::metric("bits an identifier", "bits_per_id"),
        ],
    );
    noted(
        table,
        "A slow batch is the one that one in a hundred exceeds. With 2^32 identifiers the caches are swept with 48 MB before each batch.",
    )
}

fn noted(table: Table, note: &str) -> Table {
    Table {
        notes: vec![note.to_owned()],
        ..table
    }
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
    let one = |at: &At<'_, '_>| find(at.name(), 1, at.int("live")?);
    let mut columns = vec![
        taken(SMALL),
        Column::contestant("source"),
        Column::by("one thread", |at| {
            one(at).map_or(Value::Empty, |one| one.value("mops_per_s"))
        }),
        Column::metric("two threads", "mops_per_s"),
    ];
    for (heading, clock) in [("two over one", Clock::Wall), ("by CPU time", Clock::Cpu)] {
        columns.push(Column::by(heading, move |at| {
            let live = at.int("live").unwrap_or(0);
            estimate(median_of(&scaling(results, at.name(), live, clock)))
        }));
    }
    for (heading, clock) in [
        ("of the empty loop's", Clock::Wall),
        ("of it by CPU time", Clock::Cpu),
    ] {
        columns.push(Column::by(heading, move |at| {
            let live = at.int("live").unwrap_or(0);
            estimate(of_yardstick(results, at.name(), live, clock))
        }));
    }
    columns.extend([
        Column::metric("CPU time of a pair", "cpu_ns_per_pair"),
        Column::metric("'full' too early", "false_full"),
        Column::metric("lost", "lost_ids"),
    ]);
    let table = listing(
        "Each thread frees one of its own and takes another",
        cells,
        columns,
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
    let all = rests(results);
    let mut rules: Vec<String> = all.iter().map(ruled).collect();
    rules.dedup();
    let fewest = grid(
        "Fewest allocations between a free and the same identifier's return, one by one",
        "rule",
        rules.into_iter().map(|rule| (rule.clone(), text(rule))),
        DISTANCE_LIVES.map(|live| (live, share(live, SMALL))),
        |rule, live| {
            let mut alone = all.iter().filter(|at| at.int("batch") == Some(1));
            let cell = alone.find(|at| ruled(at) == *rule && at.int("live") == Some(*live));
            number(cell.and_then(found))
        },
    );
    let stated = listing(
        "Where a rule states how long an identifier rests",
        all.iter().copied().filter(|at| stated(at).is_some()),
        vec![
            Column::by("rule", |at| text(ruled(at))),
            taken(SMALL),
            Column::by("frees", |at| text(order(at))),
            Column::by("stated", |at| number(stated(at))),
            Column::by("fewest", |at| number(found(at))),
            Column::middle("p1", "distance_p1"),
            Column::middle("median", "distance_median"),
        ],
    );
    let stated = noted(
        stated,
        "What is stated follows the number of free identifiers before each batch, and in a shared space the number of CPUs, for each of which some lie ready.",
    );
    [
        noted(
            fewest,
            "Freed at random. Allocations; 'rested 100 calls' in readings of a clock that goes on whenever it is read, 'rested 100 us' in nanoseconds.",
        ),
        Table {
            long: true,
            ..stated
        },
    ]
}

/// The sentences.
pub(super) fn findings(results: &Results<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(occupancy(results));
    let beside = |question: &str, group, live, peers: &[&str]| {
        let factors = [("live", live)];
        let ours = results.find(group, "ids", &factors)?;
        let peer = results.best(group, peers, &factors, COST)?;
        versus(question, "larder's id set", &ours, &peer, COST, "ns")
    };
    let two_thirds = "free identifier cost, two thirds of 32768 taken?";
    let next = format!("What does the next {two_thirds}");
    all.extend(beside(&next, CYCLIC, SMALL_LIVES[2], &["pidmap"]));
    let lowest = format!("What does the lowest {two_thirds}");
    all.extend(beside(&lowest, LOWEST, SMALL_LIVES[2], &["hibitset"]));
    // In whichever form the crate is better at this occupancy.
    let wide = "Does a wide space cost what is used of it, 0.01 % of 2^32 taken?";
    all.extend(beside(wide, SPARSE, FEW, &SPARSE_PEERS));
    let full = "And with all but 0.01 % taken?";
    all.extend(beside(full, SPARSE, HUGE - FEW, &SPARSE_PEERS));
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
        format!(", the cyclic one {}", short(gain.value))
    });
    let answer = format!(
        "With {} taken, IdSpace without an order gains {} of what an empty loop gains{cyclic}.",
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
    let (mut all, mut broken) = (0, Vec::new());
    for at in rests(results) {
        let (Some(least), Some(found)) = (stated(&at), found(&at)) else {
            continue;
        };
        all += 1;
        if found < least {
            broken.push(format!("{}: {found} of {least}", place(&at)));
        }
    }
    let answer = match broken.len() {
        _ if all == 0 => return None,
        0 => format!("Yes, in all {all} cells in which a rule states one."),
        n => format!(
            "DEFECT: in {n} of {all} cells the fewest found is below what is stated: {}.",
            broken.join("; ")
        ),
    };
    Some(finding(
        "Does every rule keep the reuse distance that it states, also shared and by a clock?",
        "larder",
        answer,
    ))
}
