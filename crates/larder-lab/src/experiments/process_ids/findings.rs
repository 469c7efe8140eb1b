//! Findings from the times: at how many live ids to switch and why, and the cost of each algorithm of 2002 and of today.

use super::counted::{self, FRANKE};
use super::plan::{COST, LARGE, LAST, NEAR, PACKED, PASSES, SCATTERED, SWEEPS, TASKS};
use super::tables::{costs, large};
use crate::contestants::getpid::crossover_for;
use crate::frame::words::{Bound, ratio, reading, short};
use crate::frame::{At, Column, Results, finding, grid, listing, text, versus};
use crate::model::{Finding, Goal, ShortAnswer, Table, Value};
use crate::stats::Estimate;
use crate::stats::defaults::LEVEL;
use crate::stats::sweep::{Crossover, crossover};

/// Where tasks lie, by group.
const PLACES: [(&str, &str); 3] = [
    (NEAR, "near each other"),
    (SCATTERED, "scattered over memory"),
    (PACKED, "28 bytes each"),
];
/// What walks the list of tasks, and what keeps a map without it.
const WALKS: [&str; 4] = ["algo-0", "algo-1", "algo-2", "andrea"];
const MAPS: [&str; 4] = ["bill", "pidmap", "idr", "larder"];

/// Every finding that the samples allow, the most important first.
pub(super) fn all(results: &Results<'_>) -> Vec<Finding> {
    let first = [
        switch(results),
        wide(results),
        kept(results),
        cause(results),
    ];
    let mut all: Vec<Finding> = first.into_iter().flatten().collect();
    all.extend(counted::findings(results));
    all.extend(ASKED.iter().filter_map(|asked| proposed(results, asked)));
    all.extend(page(results));
    all
}

/// A contestant among tasks near each other, at [`TASKS`].
fn near<'r, 'a>(results: &'r Results<'a>, name: &str) -> Option<At<'r, 'a>> {
    results.find(NEAR, name, &[("tasks", TASKS)])
}

/// The cheapest of some there.
fn cheapest<'r, 'a>(results: &'r Results<'a>, names: &[&str]) -> Option<At<'r, 'a>> {
    results.best(NEAR, names, &[("tasks", TASKS)], COST)
}

/// What the summary says of Franke's questions.
pub(super) fn answers(results: &Results<'_>) -> Vec<ShortAnswer> {
    let which = || {
        let (best, walk) = (
            cheapest(results, &[WALKS, MAPS].concat())?,
            near(results, "algo-2")?,
        );
        let (name, ns) = (best.name(), short(1e3 * best.middle(COST)?));
        let us = short(walk.middle(COST)?);
        let text = format!("a kept map ({name}), {ns} ns; a sweep: {us} us");
        Some(ShortAnswer::new("Which pid allocator?", text))
    };
    let switch = || {
        let text = match crossing(results, NEAR, "algo-2")? {
            Crossover::One(one) => {
                let [at, lo, hi] = [one.at.value, one.at.lo, one.at.hi].map(short);
                format!("at {at} [{lo}, {hi}] here; with a map never")
            }
            Crossover::NoneInRange { .. } => "never here: one walk is always cheaper".to_owned(),
            _ => "not decided in this run".to_owned(),
        };
        Some(ShortAnswer::new("Switch walks at 22K tasks?", text))
    };
    [which(), switch()].into_iter().flatten().collect()
}

/// Where algo-0 and a sweep cross, from 1000 live ids on: below, both are a matter of nanoseconds and of the timer.
fn crossing(results: &Results<'_>, group: &str, sweep: &str) -> Option<Crossover> {
    let list = results.curve(group, "algo-0", "tasks");
    let sweep = results.curve(group, sweep, "tasks");
    let cells = list.cells.iter().filter(|(a, _)| *a >= 1000);
    let both = cells.filter_map(|(a, list)| {
        Some((*a as f64, list.by_round(COST), sweep.at(*a)?.by_round(COST)))
    });
    let columns: Vec<_> = both.collect();
    let rows = columns.first()?.1.keys().filter_map(|r| {
        let row = columns
            .iter()
            .map(|(_, list, sweep)| Some((*list.get(r)?, *sweep.get(r)?)));
        row.collect::<Option<(Vec<f64>, Vec<f64>)>>()
    });
    let (lists, sweeps): (Vec<_>, Vec<_>) = rows.unzip();
    let sizes: Vec<f64> = columns.iter().map(|(a, ..)| *a).collect();
    crossover(&sizes, &lists, &sweeps, LEVEL, results.view.run().seed).ok()
}

/// A crossing as a value of a table.
fn place(crossing: Option<Crossover>) -> Value {
    text(match crossing {
        None => return Value::Empty,
        Some(Crossover::One(one)) => return Value::Estimate(one.at, String::new()),
        Some(Crossover::NoneInRange { a_ahead: true }) => "none: algo-0 costs less".to_owned(),
        Some(Crossover::NoneInRange { a_ahead: false }) => "none: the sweep costs less".to_owned(),
        Some(Crossover::Several(places)) => {
            let places: Vec<String> = places.iter().map(|place| ratio(&place.at)).collect();
            format!("several: {}", places.join("; "))
        }
        Some(Crossover::Touches { .. }) => "not decided".to_owned(),
    })
}

/// algo-0 against the sweeps in every memory.
fn switch(results: &Results<'_>) -> Option<Finding> {
    let table = grid(
        "Live ids above which a sweep costs less than algo-0 (2002: 22000)",
        "sweep",
        SWEEPS.map(|name| (name, text(name))),
        PLACES.map(|(group, place)| (group, format!("tasks {place}"))),
        |sweep, group| place(crossing(results, group, sweep)),
    );
    let table = match results.view.run().depth.as_str() {
        "quick" => table.noted("The quick form deletes fewer tasks at a time than in 2002: fewer ids are free meanwhile, the walk needs more passes, and its curve crosses earlier. --full has the deletions of 2002."),
        _ => table,
    };
    let walk = "the walk over all tasks (algo-0)";
    let sweep = "the sweep over a kept bitmap (algo-2)";
    let in_order = |first| if first { (walk, sweep) } else { (sweep, walk) };
    let answer = match crossing(results, NEAR, "algo-2") {
        Some(Crossover::One(one)) => {
            let (below, above) = in_order(!one.a_wins_above);
            format!(
                "Switch from {below} to {above} at {} live ids.",
                ratio(&one.at)
            )
        }
        Some(Crossover::NoneInRange { a_ahead }) => {
            let (less, more) = in_order(a_ahead);
            format!("Nowhere: {less} costs less than {more} at every number that was timed.")
        }
        Some(_) => format!(
            "Not decided: in this run {walk} and {sweep} do not cross for sure, or more than once."
        ),
        None => format!("Not decided: {walk} and {sweep} did not run together in 6 rounds."),
    };
    let question = "At how many live ids should one switch from a walk over all tasks to a sweep over a bitmap?";
    (!table.rows.is_empty()).then(|| Finding {
        table: Some(table),
        chart: Some(costs(results, NEAR, "tasks near each other")),
        ..finding(question, FRANKE, answer)
    })
}

/// What needs neither walk nor sweep.
fn kept(results: &Results<'_>) -> Option<Finding> {
    let (map, walk) = (cheapest(results, &MAPS)?, cheapest(results, &WALKS)?);
    let question = format!(
        "What does a map that is kept up to date cost beside the cheapest walk, at {TASKS} live ids?"
    );
    versus(question, map.name(), &map, &walk, COST, "us")
}

/// The live ids between which a ratio of passes puts the crossing, in words and in numbers.
fn predicted(k: &Estimate) -> (String, u32, u32) {
    let (from, to) = (crossover_for(k.lo), crossover_for(k.hi));
    let words = match (from, to) {
        (_, 0) => "none: the sweep costs less".to_owned(),
        (32_768, _) => "none: algo-0 costs less".to_owned(),
        (0, 32_768) => "nothing: anything is possible".to_owned(),
        (0, to) => format!("below {to} or none"),
        (from, 32_768) => format!("above {from} or none"),
        (from, to) => format!("{from} to {to}"),
    };
    (words, from, to)
}

/// k: algo-0 compares more than once for each search, the more the fuller the space; a sweep marks once.
fn cause(results: &Results<'_>) -> Option<Finding> {
    let marks = [
        ("plain", "mark-pass", "algo-1"),
        ("locked", "mark-pass-locked", "algo-1-locked"),
    ];
    let (mut decided, mut agree, mut rows) = (0, 0, Vec::new());
    for ((group, place_name), (stores, kind, sweep)) in PLACES
        .into_iter()
        .flat_map(|place| marks.map(|mark| (place, mark)))
    {
        let pass = |kind| {
            results
                .of(PASSES, kind)
                .filter(|at| at.text("memory") == Some(group))
                .last()
        };
        let both = pass(kind).zip(pass("compare-pass"));
        let Some(k) = both.and_then(|(mark, compare)| mark.ratio(&compare, "ns_per_task")) else {
            continue;
        };
        let (words, from, to) = predicted(&k);
        let found = crossing(results, group, sweep);
        let tasks = results.values(group, "tasks");
        let least = tasks.first().map_or(1000, |least| *least.max(&1000));
        let most = tasks.last().copied().unwrap_or(0);
        let fits = match &found {
            Some(Crossover::One(one)) => {
                Some(one.at.hi >= f64::from(from) && one.at.lo <= f64::from(to))
            }
            Some(Crossover::NoneInRange { a_ahead: true }) => Some(i64::from(to) >= most),
            Some(Crossover::NoneInRange { a_ahead: false }) => Some(i64::from(from) <= least),
            _ => None,
        };
        decided += usize::from(fits.is_some());
        agree += usize::from(fits == Some(true));
        let k = Value::Estimate(k, "x".to_owned());
        rows.push(vec![
            text(place_name),
            text(stores),
            k,
            text(words),
            place(found),
        ]);
    }
    let headings = [
        "tasks lie",
        "marks",
        "k",
        "predicted crossing",
        "measured: algo-1",
    ];
    let title = "k, the cost of a marking pass over a comparing pass, and what it predicts";
    let table = Table::new(title, &headings, rows);
    let table = table.noted("The walk compares every task more than once for a search, the more often the fuller the space is; the sweep marks every task once. They should cross where the walk's passes reach k.");
    let answer = format!(
        "The cost of a marking pass over a comparing one predicts {agree} of {decided} crossings that this run decides."
    );
    let question =
        "Why does a walk over all tasks cost more than a sweep from some number of live ids on?";
    (!table.rows.is_empty()).then(|| Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

/// What Franke proposed or left out.
struct Asked {
    question: &'static str,
    called: &'static str,
    contestant: &'static str,
    /// It is compared with the better of these.
    others: &'static [&'static str],
    note: &'static str,
}

const ASKED: [Asked; 5] = [
    Asked {
        question: "Is an adaptive implementation, which switches between walk and sweep, the right choice?",
        called: "the adaptive form",
        contestant: "adaptive",
        others: &["algo-0", "algo-2"],
        note: "",
    },
    Asked {
        question: "Should a sweep go forward to the next free range rather than start from the beginning?",
        called: "going forward (algo-1)",
        contestant: "algo-1",
        others: &["algo-1-post"],
        note: "",
    },
    Asked {
        question: "What does a partial map cost, 2048 ids on the stack and intervals of at most 256?",
        called: "the partial map",
        contestant: "algo-2-256",
        others: &["algo-2"],
        note: "",
    },
    Asked {
        question: "Does Andrea Arcangeli's getpid cost what the sweep over a cleared map costs, both with locked marks?",
        called: "Arcangeli's",
        contestant: "andrea",
        others: &["algo-1-locked"],
        note: "",
    },
    Asked {
        question: "What would William Irwin's tower of bitmaps gain over the sweep over a kept map?",
        called: "Irwin's tower",
        contestant: "bill",
        others: &["algo-2"],
        note: "As posted it hands out ids in use; its search is mended here.",
    },
];

/// One of them at [`TASKS`], with a table of the others.
fn proposed(results: &Results<'_>, asked: &Asked) -> Option<Finding> {
    let (name, others) = (asked.contestant, asked.others);
    let better = |a: i64| results.best(NEAR, others, &[("tasks", a)], COST);
    let question = format!("{} ({TASKS} live ids)", asked.question);
    let (ours, other) = (near(results, name)?, better(TASKS)?);
    let found = versus(question, asked.called, &ours, &other, COST, "us")?;
    let columns = vec![
        Column::factor("live ids", "tasks"),
        Column::metric(name, COST),
        Column::against_each("ratio", |at| better(at.int("tasks")?), COST),
    ];
    let title = format!("{name} against {}", others.join(" or "));
    let cells = results.curve(NEAR, name, "tasks").cells;
    let mut table = listing(title, cells.into_iter().map(|(_, at)| at), columns);
    table
        .notes
        .extend(Some(asked.note.to_owned()).filter(|note| !note.is_empty()));
    Some(Finding {
        asked_by: FRANKE.to_owned(),
        table: Some(table),
        ..found
    })
}

/// Whether 4096 bytes are too much, by the share of the map in the cache lines that are touched.
fn page(results: &Results<'_>) -> Option<Finding> {
    let mut sweeps = results.curve(NEAR, "algo-1", "tasks").cells.into_iter();
    let (tasks, sweep) = sweeps.rfind(|(a, _)| *a <= 30_000)?;
    let lines = sweep.middle("task_lines")?;
    let of_map = 64.0 * sweep.middle("searches")? / sweep.middle("allocations")?;
    let share = 100.0 * of_map / (of_map + lines);
    let word = match share {
        s if !s.is_finite() => return None,
        s if s <= 10.0 => "No",
        s if s < 50.0 => "In part",
        _ => "Yes",
    };
    let answer = format!(
        "{word}: at {tasks} live ids the map has {share:.2} % of the cache lines that a sweep touches for an allocation, the list the rest."
    );
    let question = "Is setting aside a page of 4096 bytes for the map a crime?";
    Some(finding(question, FRANKE, answer))
}

/// 22 and 32 bits: the fullest space of the most bits.
fn wide(results: &Results<'_>) -> Option<Finding> {
    let cells = results.of(LARGE, "large-larder");
    let cells = cells.filter_map(|at| Some((at.int("bits")?, at.int("used")?, at)));
    let (bits, used, ours) = cells.max_by_key(|(bits, used, _)| (*bits, *used))?;
    let pidmap = results.find(LARGE, "large-pidmap", &[("bits", bits), ("used", used)])?;
    let c = ours.compare(&pidmap, "ns_per_alloc");
    let walk = results.curve(NEAR, "algo-1", "tasks").last();
    let walk = walk.and_then(|(_, at)| at.middle(COST));
    let faster = walk.is_none_or(|us| ours.middle("ns_per_alloc").is_some_and(|ns| ns < 1e3 * us));
    let begin = match (bits, faster) {
        (_, false) => "Not even by a map that is kept".to_owned(),
        (32, true) => "Yes, by a map that is kept".to_owned(),
        (bits, true) => {
            format!("By a map that is kept {bits} bits are reached, and 32 bits were not tested")
        }
    };
    let answer = format!(
        "{begin}: with {} % of 2^{bits} ids in use larder's map takes {} of pidmap's time.",
        used as f64 / 100.0,
        ratio(&c.ratio?),
    );
    let mut table = large(results);
    if bits < 32 {
        let command = "2^32 ids: `larder measure process-ids --full --group large`.";
        table = table.noted(command);
    }
    Some(Finding {
        verdict: Some(c.verdict),
        reading: reading("larder's map", c.verdict, "pidmap"),
        table: Some(table),
        ..finding("Could process ids have 32 bits?", FRANKE, answer)
    })
}

/// The last id by a map and by the walk of 2.4.
pub(super) fn goals(results: &Results<'_>) -> Vec<Goal> {
    let bound = Bound::AtLeast(1e6);
    let what = "next free id with 2 of 32767 free, larder's cyclic rule";
    let against = "times faster than algo-0";
    let of = |name| results.find(LAST, name, &[]);
    vec![match (of("algo-0"), of("larder")) {
        (Some(walk), Some(ours)) => bound.goal(what, against, walk.ratio(&ours, COST), None, ""),
        _ => bound.needs(
            what,
            against,
            "algo-0 with two ids free, seconds for one allocation",
            "process-ids --full --group last-id",
        ),
    }]
}
