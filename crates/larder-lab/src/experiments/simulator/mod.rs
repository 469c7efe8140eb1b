//! How fast the simulator is, against libCacheSim where that is installed.
//!
//! `run` has what is timed.

mod run;
#[cfg(test)]
mod tests;

use self::run::{HITS, SPEED, installed, larder, libcachesim};
use crate::frame::words::{Bound, ratio, short};
use crate::frame::{
    At, Column, Declared, Planner, Results, bench, cross, each, finding, grid, judged, listing,
    needing, not_measured, text, worst,
};
use crate::measure::{Contestant, Experiment, Plan, PlanRequest};
use crate::model::{Analysis, Block, Finding, Goal, Metric, Params, Section, Table, Value};

const METRICS: &[Metric] = &[
    Metric::rate(
        SPEED,
        "M/s",
        "requests times caches that are simulated in a second, in millions: by CPU time, in group sweep by the clock",
    ),
    Metric::count(
        HITS,
        "%",
        "requests that hit, so that it is seen that both do the same work",
    ),
];

const OURS: &str = "larder";
const PEER: &str = "libcachesim";

/// Rules that both have.
const RULES: [&str; 4] = ["lru", "s3-fifo", "arc", "opt"];
/// The library's default, beside them.
const DEFAULT: &str = "adaptive";

const SWEEP: &str = "sweep";
/// Rules of the sweep.
const SWEPT: [&str; 2] = ["lru", "s3-fifo"];
/// Threads of the sweep.
const THREADS: [i64; 2] = [1, 2];
/// Millions of requests of all caches by second, in a sweep by two threads.
const SWEEP_GOAL: f64 = 100.0;

/// A form in which both get the trace: its group.
struct Form {
    group: &'static str,
    title: &'static str,
    /// In a goal and in a question.
    from: &'static str,
    /// Times libCacheSim's speed, by rules.
    bounds: &'static [(&'static [&'static str], Bound)],
    /// So many of the rules run in the quick form; with none it is left out there.
    quick: usize,
    /// Seconds of a round in which only larder runs, quick and full.
    seconds: (f64, f64),
}

const FORMS: [Form; 3] = [
    Form {
        group: "decoded",
        title: "The trace is in memory, its blocks numbered",
        from: "in memory",
        bounds: &[(&RULES, Bound::AtLeast(10.0))],
        quick: RULES.len(),
        seconds: (0.25, 40.0),
    },
    Form {
        group: "file",
        title: "The trace is read from a file and its blocks are numbered",
        from: "from a file",
        bounds: &[
            (&["lru", "s3-fifo"], Bound::AtLeast(10.0)),
            (&["arc", "opt"], Bound::AtLeast(6.0)),
        ],
        quick: 0,
        seconds: (0.0, 45.0),
    },
    Form {
        group: "zst",
        title: "The trace is read, decompressed and its blocks are numbered",
        from: "from a compressed file",
        bounds: &[(&RULES, Bound::AtLeast(3.0))],
        quick: 2,
        seconds: (0.2, 50.0),
    },
];

/// Why the quick form leaves a form of the trace out.
const NO_TIME: &str =
    "not run: the quick form has no time for it; larder measure simulator --full runs it";

/// Different blocks; a cache has room for a tenth of them.
const BLOCKS: i64 = 100_000;

/// The experiment `simulator`.
pub const SIMULATOR: Declared = Declared {
    name: "simulator",
    title: "The simulator's speed",
    source: "libCacheSim, measured in the same rounds through its Python package",
    question: "How many requests a second does a cache simulation take here, and in the simulator that most people use?",
    metrics: METRICS,
    contestants,
    brief: None,
    plan: |request, _| planned(request, installed()),
    afresh: None,
    analyse,
};

/// Every contestant, in the order of the tables.
fn contestants() -> Vec<Box<dyn Contestant>> {
    vec![
        bench(OURS, "what larder sim does, in this process", larder),
        needing(
            installed,
            bench(
                PEER,
                "libCacheSim's own loop over the same trace in its native format, called from Python",
                libcachesim,
            ),
        ),
    ]
}

fn analyse(results: &Results<'_>) -> Analysis {
    let findings = FORMS.iter().flat_map(|form| {
        let faster = times(results, form);
        faster.or_else(|| own_speed(results, form))
    });
    let forms = FORMS.iter();
    let taken = forms.filter(|form| results.all(form.group).next().is_some());
    let tables = taken.map(|form| compared(results, form));
    let tables = tables.chain([swept(results)]);
    Analysis {
        findings: findings.chain(agreement(results)).collect(),
        goals: goals(results),
        sections: vec![Section {
            title: "Requests by second".to_owned(),
            blocks: tables.map(Block::Table).collect(),
        }],
        ..Analysis::default()
    }
}

fn planned(request: &PlanRequest<'_>, peer: Result<(), String>) -> Plan {
    let contestants = SIMULATOR.contestants();
    let mut plan = Planner::new(request, &contestants, (6, 6, 0.05), (10, 20, 0.05));
    let requests = plan.either(250_000, 10_000_000);
    let seed = i64::try_from(request.seed & 0xffff_ffff).unwrap_or(1);
    let params = |form: &str, rule: &str| {
        Params::new()
            .with_text("form", form)
            .with_text("rule", rule)
            .with("blocks", BLOCKS)
            .with("requests", requests)
            .with("size", BLOCKS / 10)
            .with("seed", seed)
    };
    for form in &FORMS {
        let rules = &RULES[..plan.either(form.quick, RULES.len())];
        if rules.is_empty() {
            plan.skip(form.group, NO_TIME);
            continue;
        }
        let shared: Vec<Params> = rules.iter().map(|rule| params(form.group, rule)).collect();
        let mut cells = cross(&[OURS], &shared);
        cells.extend(cross(&[OURS], &[params(form.group, DEFAULT)]));
        let mut seconds = plan.either(form.seconds.0, form.seconds.1);
        if peer.is_ok() {
            cells.extend(cross(&[PEER], &shared));
            // Each process of the peer starts Python first.
            seconds += 0.28 * rules.len() as f64;
        }
        plan.group(form.group, SPEED, OURS, seconds, cells);
    }
    let swept = SWEPT.map(|rule| THREADS.map(|n| params(SWEEP, rule).with("threads", n)));
    let seconds = plan.either(0.25, 15.0);
    plan.group(SWEEP, SPEED, OURS, seconds, cross(&[OURS], &swept.concat()));
    if let Err(why) = peer {
        plan.skip(PEER, why);
    }
    plan.finish()
}

/// The cell of a simulator under a rule.
fn under<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
    name: &'r str,
    rule: &str,
) -> Option<At<'r, 'a>> {
    let mut cells = results.of(group, name);
    cells.find(|at| at.text("rule") == Some(rule))
}

/// Larder's cell and libCacheSim's under each rule that both ran.
fn pairs<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
) -> Vec<(&'static str, At<'r, 'a>, At<'r, 'a>)> {
    let pair = |rule: &'static str| {
        let of = |name| under(results, group, name, rule);
        Some((rule, of(OURS)?, of(PEER)?))
    };
    RULES.into_iter().filter_map(pair).collect()
}

/// Every goal, met or not.
fn goals(results: &Results<'_>) -> Vec<Goal> {
    let bounds = FORMS.iter().flat_map(|form| {
        let bounds = form.bounds.iter();
        bounds.map(move |(rules, bound)| (form, *rules, *bound))
    });
    let faster = bounds.map(|(form, rules, bound)| {
        let against = "libCacheSim";
        let what = match form.bounds {
            [_] => format!("speed under each rule, {}", form.from),
            _ => format!("speed under {}, {}", rules.join(" and "), form.from),
        };
        let goal = |(rule, ours, theirs): (&str, At<'_, '_>, At<'_, '_>)| {
            let times = ours.ratio(&theirs, SPEED);
            (
                rule.to_owned(),
                bound.goal(what.clone(), against, times, None, ""),
            )
        };
        let absent = match results.all(form.group).next() {
            Some(_) => "libcachesim did not run; pip install libcachesim",
            None => NO_TIME,
        };
        let pairs = pairs(results, form.group).into_iter();
        let goals = pairs.filter(|(rule, ..)| rules.contains(rule)).map(goal);
        each(bound, goals).unwrap_or_else(|| not_measured(bound, what.clone(), against, absent))
    });
    let swept = SWEPT.iter().map(|rule| {
        let mut cells = results.of(SWEEP, OURS);
        let cell = cells.find(|at| at.text("rule") == Some(rule) && at.int("threads") == Some(2));
        let what = format!("requests times sizes by second, 16 sizes under {rule}, 2 threads");
        let measured = cell.and_then(|at| at.estimate(SPEED));
        Bound::AtLeast(SWEEP_GOAL)
            .goal(what, "", measured, None, "")
            .in_unit("M/s")
    });
    faster.chain(swept).collect()
}

fn compared(results: &Results<'_>, form: &Form) -> Table {
    let group = form.group;
    let rules = RULES.into_iter().chain([DEFAULT]);
    let theirs = |at: &At<'_, '_>| under(results, group, PEER, at.text("rule")?);
    let middle = |metric: &'static str, unit: &'static str| {
        move |at: &At<'_, '_>| {
            let theirs = theirs(at).and_then(|at| at.middle(metric));
            theirs.map_or(Value::Empty, |v| Value::Number(v, unit.to_owned()))
        }
    };
    let columns = vec![
        Column::factor("rule", "rule"),
        Column::middle(OURS, SPEED),
        Column::by(PEER, middle(SPEED, "M/s")),
        Column::over("times", SPEED, theirs),
        Column::middle("hits", HITS),
        Column::by("hits there", middle(HITS, "%")),
    ];
    let cells = rules.filter_map(|rule| under(results, group, OURS, rule));
    listing(form.title, cells, columns)
        .noted("Requests of Zipf's law for 100,000 blocks, a cache of 10,000; CPU time.")
        .noted(
            "libCacheSim's S3-FIFO and ARC are variants; LRU and OPT must agree to the last hit.",
        )
}

fn swept(results: &Results<'_>) -> Table {
    let columns = [(1, "1 thread"), (2, "2 threads")];
    grid(
        "Sixteen sizes over one trace in memory, requests of all of them",
        "rule",
        SWEPT.map(|rule| (rule, text(rule))),
        columns.map(|(threads, name)| (threads, name.to_owned())),
        |rule, threads| {
            let mut cells = results
                .of(SWEEP, OURS)
                .filter(|at| at.text("rule") == Some(rule));
            let cell = cells.find(|at| at.int("threads") == Some(*threads));
            cell.map_or(Value::Empty, |at| at.value(SPEED))
        },
    )
}

/// The rule under which larder's lead is least.
fn times(results: &Results<'_>, form: &Form) -> Option<Finding> {
    let pairs = pairs(results, form.group).into_iter();
    // The least lead has the largest share of time.
    let shares = pairs.filter_map(|(rule, ours, theirs)| {
        Some(((rule, ours, theirs), theirs.ratio(&ours, SPEED)?))
    });
    let ((rule, ours, theirs), _) = worst(shares)?;
    judged(
        format!(
            "How much faster than libCacheSim is a simulation {}?",
            form.from
        ),
        "larder",
        ("larder's simulator", &ours),
        ("libCacheSim", &theirs),
        SPEED,
        |times, _| format!("Its speed is at least {times} times libCacheSim's, under {rule}."),
    )
}

/// Larder's own speed, where there is nothing to compare it with.
fn own_speed(results: &Results<'_>, form: &Form) -> Option<Finding> {
    let cells = results.of(form.group, OURS);
    let speeds = cells.filter_map(|at| Some((at.text("rule")?, at.estimate(SPEED)?)));
    let (rule, slowest) = speeds.min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    Some(finding(
        format!(
            "How many requests a second does a simulation {} take?",
            form.from
        ),
        "larder",
        format!("At least {} million, under {rule}.", ratio(&slowest)),
    ))
}

/// Whether both count the same hits where the rule leaves no choice.
fn agreement(results: &Results<'_>) -> Option<Finding> {
    let pairs = pairs(results, FORMS[0].group).into_iter();
    let apart: Vec<(&str, f64)> = pairs
        .filter(|(rule, ..)| ["lru", "opt"].contains(rule))
        .filter_map(|(rule, ours, theirs)| {
            Some((rule, (ours.middle(HITS)? - theirs.middle(HITS)?).abs()))
        })
        .collect();
    let rules: Vec<&str> = apart.iter().map(|(rule, _)| *rule).collect();
    // Shares that were printed and read again may differ in the last digits.
    let wrong = apart.iter().filter(|(_, points)| *points > 1e-6);
    let wrong: Vec<String> = wrong
        .map(|(rule, points)| format!("{rule} by {} points", short(*points)))
        .collect();
    let answer = match (rules.as_slice(), wrong.as_slice()) {
        ([], _) => return None,
        (_, []) => format!(
            "Yes, to the last one, under {}, whose definitions leave no choice.",
            rules.join(" and ")
        ),
        _ => format!("No: they differ under {}.", wrong.join(" and ")),
    };
    let question = "Do larder and libCacheSim count the same hits?";
    Some(finding(question, "larder", answer))
}
