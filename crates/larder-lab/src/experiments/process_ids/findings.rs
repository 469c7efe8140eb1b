//! What the times say: at how many live ids to switch, why there, and what each answer of 2002 and of today costs.

use std::collections::BTreeMap;

use super::counted::{self, FRANKE};
use super::plan::{COST, LARGE, LAST, NEAR, PACKED, PASSES, SCATTERED, SWEEPS};
use super::tables::costs;
use crate::contestants::getpid::crossover_for;
use crate::frame::words::{Bound, ratio, reading, short};
use crate::frame::{At, Column, Results, finding, grid, listing, versus};
use crate::model::{Finding, Goal, ShortAnswer, Table, Value};
use crate::stats::Estimate;
use crate::stats::defaults::LEVEL;
use crate::stats::sweep::{Crossover, crossover};

/// The number of live ids of which single costs are told: where the curves of 2002 crossed.
const TASKS: i64 = 22_000;

/// Where tasks lie, by group.
const PLACES: [(&str, &str); 3] = [
    (NEAR, "near each other"),
    (SCATTERED, "scattered over memory"),
    (PACKED, "28 bytes each"),
];

/// Every finding that the samples allow, the most important first.
pub(super) fn all(results: &Results<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [switch(results), cause(results)]
        .into_iter()
        .flatten()
        .collect();
    findings.extend(counted::findings(results));
    findings.extend(asked(results));
    findings.extend([page(results), wide(results)].into_iter().flatten());
    findings
}

/// A contestant among tasks near each other, at [`TASKS`].
fn near<'r, 'a>(results: &'r Results<'a>, name: &str) -> Option<At<'r, 'a>> {
    results.find(NEAR, name, &[("tasks", TASKS)])
}

/// The cheapest algorithm there, of those that were not only measured as posted.
fn cheapest<'r, 'a>(results: &'r Results<'a>) -> Option<At<'r, 'a>> {
    let names = [
        "algo-0", "algo-1", "algo-2", "andrea", "bill", "pidmap", "idr", "larder",
    ];
    results.best(NEAR, &names, &[("tasks", TASKS)], COST)
}

/// What the summary says of Franke's questions.
pub(super) fn answers(results: &Results<'_>) -> Vec<ShortAnswer> {
    let which = || {
        let (best, walk) = (cheapest(results)?, near(results, "algo-2")?);
        let ns = |at: At<'_, '_>| Some(short(1e3 * at.middle(COST)?));
        let text = format!(
            "a kept map: {} {} ns, algo-2 {} ns",
            best.name(),
            ns(best)?,
            ns(walk)?
        );
        Some(ShortAnswer::new("Which pid allocator?", text))
    };
    let switch = || {
        let text = match crossing(results, NEAR, "algo-2")? {
            Crossover::One(one) => {
                let [at, lo, hi] = [one.at.value, one.at.lo, one.at.hi].map(short);
                format!("at {at} [{lo}, {hi}] here; with a map never")
            }
            Crossover::NoneInRange { .. } => "never here: one walk is always cheaper".to_owned(),
            Crossover::Several(_) | Crossover::Touches { .. } => {
                "not decided in this run".to_owned()
            }
        };
        Some(ShortAnswer::new("Switch walks at 22K tasks?", text))
    };
    [which(), switch()].into_iter().flatten().collect()
}

/// Where algo-0 and a sweep cross, from 1000 live ids on: below, both are a matter of nanoseconds and of the timer.
fn crossing(results: &Results<'_>, group: &str, sweep: &str) -> Option<Crossover> {
    type Column = (f64, BTreeMap<u32, f64>, BTreeMap<u32, f64>);
    let tasks = results
        .values(group, "tasks")
        .into_iter()
        .filter(|a| *a >= 1000);
    let column = |a: i64| -> Option<Column> {
        let of = |name| Some(results.find(group, name, &[("tasks", a)])?.by_round(COST));
        Some((a as f64, of("algo-0")?, of(sweep)?))
    };
    let columns: Vec<Column> = tasks.filter_map(column).collect();
    let sizes: Vec<f64> = columns.iter().map(|(a, ..)| *a).collect();
    let rounds = columns.first()?.1.keys();
    let rows = rounds.filter_map(|r| {
        let row = columns
            .iter()
            .map(|(_, list, sweep)| Some((*list.get(r)?, *sweep.get(r)?)));
        row.collect::<Option<(Vec<f64>, Vec<f64>)>>()
    });
    let (lists, sweeps): (Vec<_>, Vec<_>) = rows.unzip();
    crossover(&sizes, &lists, &sweeps, LEVEL, results.view.run().seed).ok()
}

/// A crossing as a value of a table.
fn place(crossing: Option<Crossover>) -> Value {
    Value::Text(match crossing {
        None => return Value::Empty,
        Some(Crossover::One(one)) => return Value::Estimate(one.at, String::new()),
        Some(Crossover::NoneInRange { a_ahead: true }) => "none: algo-0 costs less".to_owned(),
        Some(Crossover::NoneInRange { a_ahead: false }) => "none: the sweep costs less".to_owned(),
        Some(Crossover::Several(places)) => {
            let places: Vec<String> = places.iter().map(|p| short(p.at.value)).collect();
            places.join(" and ")
        }
        Some(Crossover::Touches { .. }) => "not decided".to_owned(),
    })
}

/// algo-0 against the sweeps in every memory.
fn switch(results: &Results<'_>) -> Option<Finding> {
    let table = grid(
        "Live ids above which a sweep costs less than algo-0",
        "sweep",
        SWEEPS.map(|name| (name, Value::Text(name.to_owned()))),
        PLACES.map(|(group, place)| (group, format!("tasks {place}"))),
        |sweep, group| place(crossing(results, group, sweep)),
    );
    if table.rows.is_empty() {
        return None;
    }
    let map = cheapest(results).and_then(|best| {
        let ns = short(1e3 * best.middle(COST)?);
        let walks = best.name().starts_with("algo") || best.name() == "andrea";
        (!walks).then(|| {
            format!(
                " A map that is kept ({}, {ns} ns) makes the question moot.",
                best.name()
            )
        })
    });
    let answer = match crossing(results, NEAR, "algo-2") {
        Some(Crossover::One(one)) => {
            let (below, above) = if one.a_wins_above {
                ("algo-2", "algo-0")
            } else {
                ("algo-0", "algo-2")
            };
            format!(
                "Switch from {below} to {above} at {} live ids here.",
                ratio(&one.at)
            )
        }
        Some(Crossover::NoneInRange { a_ahead }) => {
            let (less, more) = if a_ahead {
                ("algo-0", "algo-2")
            } else {
                ("algo-2", "algo-0")
            };
            format!(
                "Nowhere: {less} costs less than {more} at every number of live ids that was timed."
            )
        }
        Some(_) => "This run does not decide where algo-0 and algo-2 cross.".to_owned(),
        None => "algo-2 did not run beside algo-0; the table has the sweeps that did.".to_owned(),
    };
    let question =
        "At how many live ids should one switch from the walk (algo-0) to a sweep? (2002: 22000)";
    Some(Finding {
        table: Some(table),
        chart: Some(costs(results, NEAR, "tasks near each other")),
        ..finding(
            question,
            FRANKE,
            format!("{answer}{}", map.unwrap_or_default()),
        )
    })
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
    let cases = PLACES
        .into_iter()
        .flat_map(|place| marks.map(|mark| (place, mark)));
    let (mut decided, mut agree, mut rows) = (0, 0, Vec::new());
    for ((group, place_name), (stores, kind, sweep)) in cases {
        let pass = |kind| {
            results
                .of(PASSES, kind)
                .filter(|at| at.text("memory") == Some(group))
                .last()
        };
        let Some(k) = pass(kind)
            .zip(pass("compare-pass"))
            .and_then(|(mark, compare)| mark.ratio(&compare, "ns_per_task"))
        else {
            continue;
        };
        let (words, from, to) = predicted(&k);
        let found = crossing(results, group, sweep);
        let tasks = results.values(group, "tasks");
        let (least, most) = (
            tasks.first().copied().unwrap_or(0),
            tasks.last().copied().unwrap_or(0),
        );
        let fits = match &found {
            Some(Crossover::One(one)) => {
                Some(one.at.hi >= f64::from(from) && one.at.lo <= f64::from(to))
            }
            Some(Crossover::NoneInRange { a_ahead: true }) => Some(i64::from(to) >= most),
            Some(Crossover::NoneInRange { a_ahead: false }) => {
                Some(i64::from(from) <= least.max(1000))
            }
            _ => None,
        };
        decided += usize::from(fits.is_some());
        agree += usize::from(fits == Some(true));
        rows.push(vec![
            Value::Text(place_name.to_owned()),
            Value::Text(stores.to_owned()),
            Value::Estimate(k, "x".to_owned()),
            Value::Text(words),
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
    let table = Table {
        title: "k, the cost of a marking pass over a comparing pass, and what it predicts"
            .to_owned(),
        columns: headings.map(str::to_owned).to_vec(),
        rows,
        ..Table::default()
    };
    let answer = format!(
        "algo-0's passes per search there reach k, the cost of a marking pass over a comparing one: k predicts {agree} of {decided} crossings that this run decides."
    );
    (!table.rows.is_empty()).then(|| Finding {
        table: Some(table),
        ..finding(
            "Why do the walk and the sweep cross there?",
            "larder",
            answer,
        )
    })
}

/// What Franke proposed or left out: a question, what answers it, by which contestant, against the better of which, and what
/// the count says beside.
const ASKED: [(&str, &str, &str, &[&str], &str); 5] = [
    (
        "Is an adaptive implementation the right choice?",
        "the adaptive form",
        "adaptive",
        &["algo-0", "algo-2"],
        "",
    ),
    (
        "Should a sweep go forward to the next free range rather than start from the beginning?",
        "going forward (algo-1)",
        "algo-1",
        &["algo-1-post"],
        "",
    ),
    (
        "What does a partial map cost, 2048 ids on the stack and intervals of at most 256?",
        "the partial map",
        "algo-2-256",
        &["algo-2"],
        "",
    ),
    (
        "Does Andrea Arcangeli's getpid resemble algo-1? (both with locked marks)",
        "Arcangeli's",
        "andrea",
        &["algo-1-locked"],
        "",
    ),
    (
        "Can William Irwin's version be integrated?",
        "Irwin's kept map",
        "bill",
        &["algo-2"],
        " As posted it hands out ids in use; its search is mended here.",
    ),
];

/// One of them at [`TASKS`], with a table of the others.
fn asked(results: &Results<'_>) -> Vec<Finding> {
    let finding = |(question, called, name, others, more): (&str, &str, &str, &[&str], &str)| {
        let better = |a: i64| results.best(NEAR, others, &[("tasks", a)], COST);
        let question = format!("{question} ({TASKS} live ids)");
        let found = versus(
            question,
            called,
            &near(results, name)?,
            &better(TASKS)?,
            COST,
            "us",
        )?;
        let mut cells: Vec<At<'_, '_>> = results.of(NEAR, name).collect();
        cells.sort_by_key(|at| at.int("tasks"));
        let columns = vec![
            Column::factor("live ids", "tasks"),
            Column::metric(name, COST),
            Column::against_each("ratio", |at| better(at.int("tasks")?), COST),
        ];
        let title = format!("{name} against {}", others.join(" or "));
        Some(Finding {
            asked_by: FRANKE.to_owned(),
            answer: format!("{}{more}", found.answer),
            table: Some(listing(title, cells, columns)),
            ..found
        })
    };
    ASKED.into_iter().filter_map(finding).collect()
}

/// Whether 4096 bytes are too much, by the share of the map in the cache lines that are touched.
fn page(results: &Results<'_>) -> Option<Finding> {
    let sweeps = results
        .of(NEAR, "algo-1")
        .filter_map(|at| Some((at.int("tasks")?, at)));
    let (tasks, sweep) = sweeps
        .filter(|(a, _)| *a <= 30_000)
        .max_by_key(|(a, _)| *a)?;
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
        "{word}: at {tasks} live ids the map has {share:.2} % of the cache lines that algo-1 touches for an allocation, the list the rest."
    );
    Some(finding(
        "Is setting aside a page of 4096 bytes for the map a crime?",
        FRANKE,
        answer,
    ))
}

/// 22 and 32 bits: the fullest space of the most bits.
fn wide(results: &Results<'_>) -> Option<Finding> {
    let pair = |at: &At<'_, '_>| {
        let factors = [("bits", at.int("bits")?), ("used", at.int("used")?)];
        results.find(LARGE, "large-pidmap", &factors)
    };
    let table = listing(
        "Large spaces, batches of 256",
        results.all(LARGE),
        vec![
            Column::contestant("space"),
            Column::factor("bits", "bits"),
            Column::by("in use", |at| {
                let share = at
                    .int("used")
                    .map(|used| Value::Number(used as f64 / 100.0, "%".to_owned()));
                share.unwrap_or(Value::Empty)
            }),
            Column::metric("an allocation", "ns_per_alloc"),
            Column::metric("a free", "ns_per_free"),
            Column::middle("bits per id", "bits_per_id"),
            Column::against_each("allocation of pidmap's", pair, "ns_per_alloc"),
        ],
    );
    let cells = results
        .of(LARGE, "large-larder")
        .filter_map(|at| Some((at.int("bits")?, at.int("used")?, at)));
    let (bits, used, ours) = cells.max_by_key(|(bits, used, _)| (*bits, *used))?;
    let c = ours.compare(&pair(&ours)?, "ns_per_alloc");
    let ns = ours.middle("ns_per_alloc")?;
    let walk = results
        .of(NEAR, "algo-1")
        .filter_map(|at| Some((at.int("tasks")?, at.middle(COST)?)));
    let beside = match walk.max_by_key(|(tasks, _)| *tasks) {
        Some((tasks, us)) if ns < 1e3 * us => format!(
            "By a kept map, yes; algo-1 walks {tasks} tasks in {} us: ",
            short(us)
        ),
        Some((tasks, us)) => format!(
            "Not by a kept map either; algo-1 walks {tasks} tasks in {} us: ",
            short(us)
        ),
        None => String::new(),
    };
    let answer = format!(
        "{beside}with {} % of 2^{bits} ids in use larder's map takes {} ns, {} of pidmap.{}",
        used as f64 / 100.0,
        short(ns),
        ratio(&c.ratio?),
        if bits < 32 { " 2^32 needs --full." } else { "" }
    );
    Some(Finding {
        verdict: Some(c.verdict),
        reading: reading("larder's map", c.verdict, "pidmap"),
        table: Some(table),
        ..finding("Could one deal with 32-bit pid numbers?", FRANKE, answer)
    })
}

/// The last id by a map and by the walk of 2.4.
pub(super) fn goals(results: &Results<'_>) -> Vec<Goal> {
    let bound = Bound::AtLeast(1e6);
    let what = "An allocation at A = 32767, larder's cyclic rule";
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
