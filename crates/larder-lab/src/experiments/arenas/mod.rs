//! Arenas: what a range costs, there and back, by the number of ranges that are out.
//!
//! `ranges` has the arenas and their peers behind one trait, `loops` what is timed.

mod loops;
mod ranges;

use larder::arena::Fit;

use self::loops::{BOOKKEEPING, COST, run, units};
use self::ranges::arena;
use crate::contestants::timing::resident_bytes;
use crate::frame::words::{Bound, ratio, short};
use crate::frame::{
    self, Column, Declared, Planner, Results, bench, each, finding, grid, listing, shown, text,
    worst,
};
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{
    Analysis, Block, Cell, Finding, Goal, Measures, Metric, Params, Section, Table, Value,
};
use crate::stats::Estimate;

const METRICS: &[Metric] = &[
    Metric::cost(
        COST,
        "ns",
        "one range there and back by one thread, CPU time",
    ),
    Metric::count(
        "segments",
        "",
        "segments of the arena, free and taken, when the clock starts",
    ),
    Metric::cost(
        BOOKKEEPING,
        "B",
        "growth of resident memory by the arena and its ranges, when the clock starts",
    ),
];

/// Larder's.
const OURS: [&str; 5] = ["quantum", "handle", "instant", "best", "next"];

/// Today's crates.
const PEERS: [&str; 2] = ["offset-allocator", "range-alloc"];

/// Those that promise constant time.
const CONSTANT: [&str; 3] = ["quantum", "handle", "instant"];

/// Those whose time grows with the number of free ranges: they are left out where that would take minutes.
const LINEAR: [&str; 3] = ["best", "next", "range-alloc"];

/// The most ranges that a linear one is asked to have out.
const MOST: i64 = 10_000;

/// A group each: its name, its title, the title of its table and its question.
const SHAPES: [[&str; 4]; 2] = [
    [
        "pair",
        "Pairs",
        "A range of 1 to 4 units, taken and given back at once",
        "Does a range that is taken and given back at once cost the same, however many are out?",
    ],
    [
        "churn",
        "Churn",
        "A random range given back, and one of another size taken",
        "And where random ranges are given back, so that free ones lie everywhere?",
    ],
];

/// From the fewest to the most ranges a cost may grow by so much and be called constant: caches get cold.
const FLAT: f64 = 1.5;

/// Ranges between which the cost must be constant at least: those of the quick form.
const FEW: i64 = 100;
const MANY: i64 = 100_000;

/// The experiment `arenas`.
pub const ARENAS: Declared = Declared {
    name: "arenas",
    title: "Arenas: does a range cost the same, however many are out?",
    source: "Bonwick and Adams, Magazines and Vmem, USENIX 2001: constant time whatever the arena looks like",
    question: "Does a range cost the same whether a hundred or a million of them are out?",
    metrics: METRICS,
    contestants,
    brief: None,
    plan,
    afresh: None,
    analyse: |results| Analysis {
        findings: SHAPES
            .into_iter()
            .flat_map(|[shape, _, _, question]| {
                let growth = growth(results, shape, question);
                growth.into_iter().chain(against_peers(results, shape))
            })
            .collect(),
        goals: each(
            Bound::AtMost(FLAT),
            ["quantum", "handle"].map(|name| (name.to_owned(), constant(results, name))),
        )
        .into_iter()
        .collect(),
        sections: SHAPES
            .into_iter()
            .map(|[shape, title, table, _]| Section {
                title: title.to_owned(),
                blocks: vec![
                    Block::Table(by_ranges(results, shape, table, COST)),
                    Block::Table(by_ranges(
                        results,
                        shape,
                        &format!("{table}: memory of the bookkeeping"),
                        BOOKKEEPING,
                    )),
                ],
            })
            .collect(),
        ..Analysis::default()
    },
};

/// Every contestant, in the order of the tables.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let plain =
        |name, about, policy| bench(name, about, move |params| with_arena(policy, false, params));
    // Only the crates of others are added.
    #[cfg_attr(not(feature = "peers"), allow(unused_mut))]
    let mut all = vec![
        bench(
            "quantum",
            "larder's arena with quantum caches: the CPU's magazines, no lock",
            |params| with_arena(Fit::Instant, true, params),
        ),
        bench(
            "handle",
            "the same through a handle of the thread's own",
            |params| {
                let before = resident_bytes();
                let arena = arena(units(params.count("live")?), Fit::Instant, true)?;
                run(&mut arena.handle(), before, params)
            },
        ),
        plain(
            "instant",
            "larder's arena without quantum caches, instant fit",
            Fit::Instant,
        ),
        plain("best", "the same, best fit", Fit::Best),
        plain("next", "the same, next fit", Fit::Next),
    ];
    #[cfg(feature = "peers")]
    all.extend([
        bench(
            "offset-allocator",
            "the crate of this name after Aaltonen: bins of sizes like small floating-point numbers",
            |params| {
                let before = resident_bytes();
                let live = params.count("live")?;
                run(&mut ranges::Offsets::new(units(live), live)?, before, params)
            },
        ),
        bench(
            "range-alloc",
            "the crate of this name: free ranges in a sorted vector, best fit",
            |params| {
                let before = resident_bytes();
                let ranges = range_alloc::RangeAllocator::new(0..units(params.count("live")?));
                run(&mut ranges::Sorted(ranges), before, params)
            },
        ),
    ]);
    all
}

fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let mut plan = Planner::new(request, contestants, (6, 8, 0.05), (10, 21, 0.05));
    let lives: &[i64] = plan.either(&[FEW, MOST, MANY], &[FEW, 1000, MOST, MANY, 1_000_000]);
    let cell = |shape: &str, live: i64, name: &str| {
        let turns = match (LINEAR.contains(&name) && live >= MOST, plan.quick()) {
            (true, _) => 2000,
            (false, true) => 50_000,
            (false, false) => 1_000_000,
        };
        let params = Params::new()
            .with_text("shape", shape)
            .with("live", live)
            .with("turns", turns);
        Cell::new(name, params)
    };
    let groups = SHAPES.map(|[shape, ..]| {
        let names = |live| {
            let all = OURS.into_iter().chain(PEERS);
            all.filter(move |name| live <= MOST || !LINEAR.contains(name))
                .map(move |name| (live, name))
        };
        let cells = lives.iter().flat_map(|live| names(*live));
        let cells: Vec<Cell> = cells.map(|(live, name)| cell(shape, live, name)).collect();
        (shape, cells)
    });
    for (shape, cells) in groups {
        let seconds = plan.either(0.03, 0.35) * (cells.len() + 1) as f64;
        plan.group(shape, COST, "quantum", seconds, cells);
    }
    plan.skip(
        LINEAR.join(", "),
        format!(
            "they look at many ranges in each turn, so that more than {MOST} are not asked of them"
        ),
    );
    plan.finish()
}

fn with_arena(policy: Fit, cached: bool, params: &Params) -> anyhow::Result<Measures> {
    let before = resident_bytes();
    let mut arena = arena(units(params.count("live")?), policy, cached)?;
    run(&mut arena, before, params)
}

/// Constant time is measured where nothing but the arena is touched: in pairs.
fn constant(results: &Results<'_>, name: &str) -> Goal {
    let bound = Bound::AtMost(FLAT);
    let what = "larder's arena with quantum caches: cost of a range when most are out";
    let curve = results.curve("pair", name, "live");
    match curve.first().zip(curve.last()) {
        Some(((few, first), (many, last))) if few <= FEW && many >= MANY => bound.goal(
            format!("{what} ({many})"),
            format!("{few} ranges"),
            last.ratio(&first, COST),
            None,
            "",
        ),
        _ => bound.needs(
            format!("{what} ({MANY} or more)"),
            format!("{FEW} ranges"),
            &format!("{FEW} and {MANY} ranges"),
            &format!("arenas --group pair --contestant {name}"),
        ),
    }
}

/// The cost at the most ranges over that at the fewest, of each that ran.
fn growth(results: &Results<'_>, shape: &str, question: &str) -> Option<Finding> {
    let word = |r: &Estimate| match r {
        r if r.hi <= FLAT => "constant",
        r if r.lo > FLAT => "grows",
        _ => "not decided",
    };
    let grown: Vec<(&str, i64, i64, Estimate)> = OURS
        .into_iter()
        .chain(PEERS)
        .filter_map(|name| {
            let curve = results.curve(shape, name, "live");
            let ((few, first), (many, last)) = (curve.first()?, curve.last()?);
            let r = (few < many).then(|| last.ratio(&first, COST)).flatten()?;
            Some((name, few, many, r))
        })
        .collect();
    let promised = grown.iter().filter(|(name, ..)| CONSTANT.contains(name));
    let promised = promised.map(|row| ((row.0, row.1, row.2), row.3));
    let ((name, few, many), most) = worst(promised)?;
    let columns = [
        "from",
        "to",
        "cost grows to",
        "which is",
        "constant by promise",
    ];
    let table = grid(
        "Cost at the most ranges over the cost at the fewest",
        "arena",
        grown.iter().map(|row| (row, text(row.0))),
        columns.map(|name| (name, name.to_owned())),
        |(name, few, many, r), column| match *column {
            "from" => Value::Count(*few),
            "to" => Value::Count(*many),
            "cost grows to" => shown(Some(*r), "x"),
            "which is" => text(word(r)),
            _ => text(if CONSTANT.contains(name) { "yes" } else { "no" }),
        },
    );
    let answer = format!(
        "Of those that promise it, {name} grows most: to {} of its cost from {few} to {many} ranges ({}).",
        ratio(&most),
        word(&most)
    );
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

/// Larder's arena against each crate, at the most ranges that the crate has.
fn against_peers(results: &Results<'_>, shape: &str) -> Vec<Finding> {
    let finding = |peer: &&str| {
        let (live, theirs) = results.curve(shape, peer, "live").last()?;
        let ours = results.find(shape, "quantum", &[("live", live)])?;
        let how = match shape {
            "pair" => "taken and given back at once",
            _ => "in the place of a random one",
        };
        let question = format!("What does a range cost beside {peer}, {live} of them out, {how}?");
        let mut finding = frame::versus(question, "larder's arena", &ours, &theirs, COST, "ns")?;
        let own = results
            .all(shape)
            .filter(|at| OURS.contains(&at.name()) && at.int("live") == Some(live));
        finding.table = Some(listing(
            format!("{peer} takes {} ns", short(theirs.middle(COST)?)),
            own,
            vec![
                Column::contestant("arena"),
                Column::metric("cost", COST),
                Column::against(&format!("of {peer}"), Some(theirs), COST),
            ],
        ));
        Some(finding)
    };
    PEERS.iter().filter_map(finding).collect()
}

/// A metric by ranges that are out and arena.
fn by_ranges(results: &Results<'_>, shape: &str, title: &str, metric: &str) -> Table {
    let counts = results.values(shape, "live");
    grid(
        title,
        "ranges out",
        counts.into_iter().map(|n| (n, Value::Count(n))),
        OURS.into_iter().chain(PEERS).map(|n| (n, n.to_owned())),
        |live, name| {
            let cell = results.find(shape, name, &[("live", *live)]);
            cell.map_or(Value::Empty, |at| at.value(metric))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Experiment;

    #[test]
    fn every_contestant_runs_in_both_shapes_and_hands_nothing_out_twice() {
        for contestant in ARENAS.contestants() {
            for shape in ["pair", "churn"] {
                for live in [1, 1000] {
                    let params = Params::new()
                        .with_text("shape", shape)
                        .with("live", live)
                        .with("turns", 3000);
                    contestant
                        .run(&params)
                        .unwrap_or_else(|e| panic!("{} {shape} {live}: {e:#}", contestant.name()));
                }
            }
        }
    }
}
