//! Sections, the chart, and the sentences.

use super::plan::{
    BITS, CREATE, CYCLIC, DISTANCE_LIVES, FEW, HUGE, LOWEST, SHARED, SHARED_PEERS, SMALL, SPARSE,
    SPARSE_PEERS, SWEEPS, Sweep, THREAD_LIVES, THREADED, TWO_THIRDS,
};
use super::rows::{
    COST, CPU, WALL, found, of_yardstick, order, percent, place, rests, ruled, scaling, share,
    spread, stated,
};
use crate::frame::words::ratio;
use crate::frame::{
    At, Column, Results, cost, finding, grid, lines, listing, median_of, number, over, ratios,
    shown, text, versus,
};
use crate::model::{Block, Chart, Cost, Finding, Scale, Section, Table, Value};

/// What an identifier costs two thirds full, for the summary.
pub(super) fn costs(results: &Results<'_>) -> Vec<Cost> {
    let factors = [("live", TWO_THIRDS)];
    let row = |sweep: &Sweep| {
        let ours = results.find(sweep.group, "ids", &factors);
        let peer = results.best(sweep.group, &sweep.peers(), &factors, COST);
        cost(
            &format!("identifier, {}", sweep.group),
            "ns",
            COST,
            ours,
            peer,
            None,
        )
    };
    SWEEPS[..2].iter().filter_map(row).collect()
}

/// Every section, in reading order.
pub(super) fn sections(results: &Results<'_>) -> Vec<Section> {
    let section = |title: &str, tables: Vec<Table>| Section {
        title: title.to_owned(),
        blocks: tables.into_iter().map(Block::Table).collect(),
    };
    let swept = |sweeps: &[Sweep]| sweeps.iter().flat_map(|s| swept(results, s)).collect();
    let mut small = section("32768 identifiers", swept(&SWEEPS[..4]));
    small.blocks.push(Block::Chart(chart(results)));
    let huge = "2^32 identifiers, 430 thousand of them taken, or free";
    vec![
        small,
        section("4 million identifiers", swept(&SWEEPS[4..])),
        section("2^32 identifiers", vec![parts(results, SPARSE, HUGE, huge)]),
        section("Memory", vec![bits(results)]),
        section("Two threads", vec![threads(results)]),
        section("Making a space", vec![create(results)]),
        section("Rest", distances(results).to_vec()),
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

/// How many are taken.
fn taken<'t>(count: i64) -> Column<'t> {
    let of = move |live| text(share(live, count));
    Column::by("taken", move |at| at.int("live").map_or(Value::Empty, of))
}

/// A pair by source and occupancy, its ratio to each peer, and its parts.
fn swept(results: &Results<'_>, sweep: &Sweep) -> [Table; 3] {
    let (group, count) = (sweep.group, sweep.count);
    let title = format!("{} ({group})", sweep.called);
    let lives = || sweep.lives.iter().map(|live| (*live, share(*live, count)));
    let peers = || sweep.peers().into_iter().map(|name| (name, text(name)));
    let all = [("ids", text("ids"))].into_iter().chain(peers());
    let costs = grid(&title, "source", all, lives(), |name, live| {
        results.value(group, name, &[("live", *live)], COST)
    });
    let over = format!("{title}: larder's ids over each");
    let over = ratios(over, "source", peers(), lives(), COST, |peer, live| {
        let find = |name| results.find(group, name, &[("live", *live)]);
        find("ids").zip(find(peer))
    });
    let apart = format!("{title}: free and allocation apart");
    [
        costs.noted("One free and one allocation in batches of 256 each, wall time without the slowest hundredth of the batches."),
        over.folded(),
        parts(results, group, count, &apart).folded(),
    ]
}

/// Free and allocation apart, the slow batches, and what is held.
fn parts(results: &Results<'_>, group: &str, count: i64, title: &str) -> Table {
    let mut cells: Vec<At<'_, '_>> = results.all(group).collect();
    cells.sort_by_key(|at| at.int("live"));
    let columns = vec![
        taken(count),
        Column::contestant("source"),
        Column::metric("free", "ns_per_free"),
        Column::metric("allocation", "ns_per_alloc"),
        Column::metric("both", COST),
        Column::metric("both in a slow batch", "p99_ns_per_pair"),
        Column::metric("held", "held_bytes"),
        Column::metric("bits an identifier", "bits_per_id"),
    ];
    listing(title, cells, columns).noted("A slow batch is the one that one in a hundred exceeds. With 2^32 identifiers the caches are swept with 48 MB before each batch.")
}

fn bits(results: &Results<'_>) -> Table {
    let columns = vec![
        Column::contestant("source"),
        Column::factor("rule", "rule"),
        Column::factor("identifiers", "count"),
        Column::middle("bits each", "bits_per_id"),
    ];
    let title = "Bits held for an identifier, half of them taken";
    listing(title, results.all(BITS), columns).noted("By each source's own account of its arrays; by the C library's heap where a crate gives none.")
}

fn threads(results: &Results<'_>) -> Table {
    let names = SHARED.into_iter().chain(SHARED_PEERS);
    let cells = THREAD_LIVES.into_iter().flat_map(|live| {
        let two = [("threads", 2), ("live", live)];
        names
            .clone()
            .filter_map(move |name| results.find(THREADED, name, &two))
    });
    let live = |at: &At<'_, '_>| at.int("live").unwrap_or(0);
    let scale = move |heading, clock| {
        let of = move |at: &At<'_, '_>| scaling(results, at.name(), live(at), clock);
        Column::by(heading, move |at| shown(median_of(&of(at)), ""))
    };
    let of_loop = move |heading, clock| {
        let of = move |at: &At<'_, '_>| of_yardstick(results, at.name(), live(at), clock);
        Column::by(heading, move |at| shown(of(at), ""))
    };
    let columns = vec![
        taken(SMALL),
        Column::contestant("source"),
        Column::by("one thread", move |at| {
            let one = [("threads", 1), ("live", live(at))];
            results.value(THREADED, at.name(), &one, "mops_per_s")
        }),
        Column::metric("two threads", "mops_per_s"),
        scale("two over one", WALL),
        of_loop("of the empty loop's", WALL),
        scale("the same by CPU time", CPU),
        of_loop("and of the empty loop's", CPU),
        Column::metric("CPU time of a pair", "cpu_ns_per_pair"),
        Column::metric("'full' too early", "false_full"),
        Column::metric("lost", "lost_ids"),
    ];
    listing("Each thread frees one of its own and takes another", cells, columns)
        .noted("The loop is in all of them; the empty loop shows how far the machine itself scales, and a bare array for each thread what nothing shared can reach.")
        .noted("By CPU time: twice the pairs of two threads for each CPU second that they used, over those of one. What other programs take of the CPUs does not count there, and neither does sleeping on a lock.")
}

fn create(results: &Results<'_>) -> Table {
    let ranked = results.ranked(CREATE, "ns_per_space").into_iter();
    let first = ranked.filter(|at| at.int("first") == Some(1));
    let rows = first.map(|at| (at.name(), text(at.name())));
    let columns = [(0, "alone"), (1, "and its first identifier")];
    let columns = columns.map(|(first, name)| (first, name.to_owned()));
    let title = "Making a space of 2^20 identifiers";
    grid(title, "source", rows, columns, |name, first| {
        results.value(CREATE, name, &[("first", *first)], "ns_per_space")
    })
}

/// The fewest of each rule by occupancy, and everything where a rule states something.
fn distances(results: &Results<'_>) -> [Table; 2] {
    let all = rests(results);
    let mut rules: Vec<String> = all.iter().map(ruled).collect();
    rules.dedup();
    let rules = rules.into_iter().map(|rule| (rule.clone(), text(rule)));
    let lives = DISTANCE_LIVES.map(|live| (live, share(live, SMALL)));
    let title = "Fewest allocations between a free and the same identifier's return, one by one";
    let fewest = grid(title, "rule", rules, lives, |rule, live| {
        let mut alone = all.iter().filter(|at| at.int("batch") == Some(1));
        let cell = alone.find(|at| ruled(at) == *rule && at.int("live") == Some(*live));
        number(cell.and_then(found))
    });
    let columns = vec![
        Column::by("rule", |at| text(ruled(at))),
        taken(SMALL),
        Column::by("frees", |at| text(order(at))),
        Column::by("stated", |at| number(stated(at).map(|(least, _)| least))),
        Column::by("fewest", |at| number(found(at))),
        Column::middle("p1", "distance_p1"),
        Column::middle("median", "distance_median"),
    ];
    let cells = all.iter().copied().filter(|at| stated(at).is_some());
    let title = "Where a rule states how long an identifier rests";
    [
        fewest.noted("Freed at random. Allocations; 'rested 100 calls' in readings of a clock that goes on whenever it is read, 'rested 100 us' in nanoseconds."),
        listing(title, cells, columns).folded().noted("What is stated follows the number of free identifiers before each batch, and in a shared space the number of CPUs, for each of which some lie ready."),
    ]
}

/// The sentences.
pub(super) fn findings(results: &Results<'_>) -> Vec<Finding> {
    let beside = |question: &str, group, live, peers: &[&str]| {
        let factors = [("live", live)];
        let ours = results.find(group, "ids", &factors)?;
        let peer = results.best(group, peers, &factors, COST)?;
        versus(question, "larder's id set", &ours, &peer, COST, "ns")
    };
    let next = "What does the next free identifier cost, two thirds of 32768 taken?";
    let lowest = "What does the lowest free identifier cost, two thirds of 32768 taken?";
    // In whichever form the crate is better at this occupancy.
    let wide = "What does an identifier of 32 bits cost when 430 thousand of 2^32 are taken?";
    let full =
        "What does an identifier of 32 bits cost when all but 430 thousand of 2^32 are taken?";
    let all = [
        occupancy(results),
        beside(next, CYCLIC, TWO_THIRDS, &["pidmap"]),
        beside(lowest, LOWEST, TWO_THIRDS, &["hibitset"]),
        beside(wide, SPARSE, FEW, &SPARSE_PEERS),
        beside(full, SPARSE, HUGE - FEW, &SPARSE_PEERS),
        second_thread(results),
        rest(results),
    ];
    all.into_iter().flatten().collect()
}

/// How far the cost depends on how full the space is.
fn occupancy(results: &Results<'_>) -> Option<Finding> {
    let lives = results.values(CYCLIC, "live");
    let (least, most) = (*lives.first()?, *lives.last()?);
    let names = ["ids"].into_iter().chain(SWEEPS[0].peers());
    let table = grid(
        "The most expensive occupancy over the cheapest",
        "source",
        names.map(|name| (name, text(name))),
        [((), "ratio".to_owned())],
        |name, ()| shown(spread(results, CYCLIC, name), ""),
    );
    let answer = format!(
        "From {} to {} of 32768 taken, the most expensive occupancy costs larder's id set {} times the cheapest.",
        percent(least, SMALL),
        percent(most, SMALL),
        ratio(&spread(results, CYCLIC, "ids")?)
    );
    let question = "Does an identifier cost more the fuller the space is?";
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

fn second_thread(results: &Results<'_>) -> Option<Finding> {
    let gain = of_yardstick(results, "id-space-any", TWO_THIRDS, CPU)?;
    let answer = format!(
        "With {} taken, a second thread gains {} of what it gains an empty loop, in an IdSpace without an order.",
        share(TWO_THIRDS, SMALL),
        ratio(&gain)
    );
    let question =
        "Does a second thread double the work that one shared space of identifiers does?";
    Some(finding(question, "larder", answer))
}

/// Whether every rule keeps the distance that it states.
fn rest(results: &Results<'_>) -> Option<Finding> {
    let cells = rests(results)
        .into_iter()
        .filter_map(|at| Some((at, stated(&at)?)));
    let cells: Vec<_> = cells.collect();
    let broken = cells.iter().filter(|(_, (least, found))| found < least);
    let broken = broken.map(|(at, (least, found))| format!("{}: {found} of {least}", place(at)));
    let broken: Vec<String> = broken.collect();
    let answer = match (cells.len(), broken.len()) {
        (0, _) => return None,
        (all, 0) => format!("Yes, in all {all} cells in which a rule states one."),
        (all, n) => format!(
            "DEFECT: in {n} of {all} cells the fewest found is below what is stated: {}.",
            broken.join("; ")
        ),
    };
    let question = "Does every rule keep an identifier from reuse as long as it states, also shared and by a clock?";
    Some(finding(question, "larder", answer))
}
