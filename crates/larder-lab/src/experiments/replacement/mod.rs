//! Which replacement rule finds most, on public traces and on workloads made here.
//!
//! Nothing is timed: hits are counts, the same on every machine and in every round.

mod halves;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Context, ensure};

use crate::frame::words::{Bound, exact};
use crate::frame::{self, Declared, Planner, Results, bench, finding, grid, not_measured, text};
use crate::measure::{Contestant, Experiment, Plan, PlanRequest};
use crate::model::{
    Analysis, Block, Cell, Finding, Goal, Measures, Metric, Params, Section, Table, Value,
};
use larder_sim::{Format, Job, Loaded, ReadOptions, Size, Watch, choices, sweep};

/// Share of the uses that hit.
const HITS: &str = "hit_percent";

/// Blocks of the cache.
const FRAMES: &str = "frames";
/// Uses of blocks in the trace.
const USES: &str = "uses";

const METRICS: &[Metric] = &[
    Metric::rate(
        HITS,
        "%",
        "uses of a block that was there; a count, the same on every machine",
    ),
    Metric::count(FRAMES, "blocks", "size of the cache"),
    Metric::count(USES, "uses", "uses of blocks in the trace"),
];

/// Names the folder with the public traces.
const VARIABLE: &str = "LARDER_TRACES";

/// Rules that are looked at apart. The others are those that could be chosen beside the default.
const DEFAULT: &str = "adaptive";
const LRU: &str = "lru";
const OPT: &str = "opt";

/// Percent of the way from LRU to OPT, in the mean of a group's cells.
const MEAN_GOAL: f64 = 37.0;
/// Points behind the best rule of a cell.
const BEHIND_GOAL: f64 = 0.5;

/// A group of traces or workloads.
struct Traces {
    group: &'static str,
    title: &'static str,
    /// Where, in a question.
    on: &'static str,
    has_goals: bool,
    /// Each with the blocks of its caches.
    cells: &'static [(&'static str, &'static [i64])],
    /// The rules that run in the quick form; empty are all.
    quick: &'static [&'static str],
    /// Seconds that it takes, quick and full.
    seconds: (f64, f64),
}

const MADE: &str = "made";
const PUBLIC: &str = "public";

/// In reading order.
const GROUPS: [Traces; 3] = [
    Traces {
        group: PUBLIC,
        title: "Public traces",
        on: "public traces",
        has_goals: true,
        cells: &[
            ("arc-OLTP.lis.zst", &[1000, 5000, 15_000]),
            ("cloudPhysicsIO.oracleGeneral.bin", &[4000, 10_000]),
            ("lirs-sprite.txt.gz", &[400]),
            ("lirs-loop.txt.gz", &[900]),
            ("arc-P3.lis.zst", &[32_768, 131_072]),
            ("cloudphysics-w106.u32be.xz", &[1000, 10_000, 33_764]),
        ],
        // The files are long: these three decide two of the goals.
        quick: &[LRU, DEFAULT, OPT],
        seconds: (6.0, 150.0),
    },
    // Nothing was chosen by these.
    Traces {
        group: "elsewhere",
        title: "Other public traces",
        on: "public traces that it was not chosen by",
        has_goals: false,
        cells: &[
            ("lirs-multi1.txt.gz", &[1000]),
            ("lirs-multi2.txt.gz", &[2000]),
            ("lirs-2_pools.txt.gz", &[450]),
            ("lirs-cs.txt.gz", &[900]),
            ("lirs-gli.txt.gz", &[1000]),
            ("cache2k-orm-busy.i32be.xz", &[1000]),
            ("cache2k-web07.i32be.xz", &[1000]),
        ],
        quick: &[LRU, DEFAULT, OPT],
        seconds: (2.0, 60.0),
    },
    // No trace is needed for these.
    Traces {
        group: MADE,
        title: "Workloads made here",
        on: "workloads made here",
        has_goals: true,
        cells: &[
            ("zipf:blocks=50000,requests=300000,alpha=0.9", &[1000, 5000]),
            ("mixed:blocks=20000,requests=300000", &[2000]),
            ("loop:blocks=3000,requests=150000", &[2700]),
            ("correlated:blocks=20000,requests=300000", &[2000]),
            ("dbench-like:clients=4", &[3000]),
            ("build-like:units=60,grep-pages=20000", &[10_000]),
        ],
        quick: &[],
        seconds: (6.0, 8.0),
    },
];

impl Traces {
    fn sizes(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let each = |(trace, sizes): &(&'static str, &'static [i64])| {
            let trace = *trace;
            sizes.iter().map(move |size| (trace, *size))
        };
        self.cells.iter().flat_map(each)
    }
}

/// The experiment `replacement`.
pub const REPLACEMENT: Declared = Declared {
    name: "replacement",
    title: "Replacement rules",
    source: "Megiddo and Modha 2003, Jiang and Zhang 2002 and others, whose traces are public",
    question: "How much of the way from LRU to the best there can be does each rule go, and does the default hold everywhere?",
    metrics: METRICS,
    contestants,
    brief: Some(&[MADE, PUBLIC]),
    plan: |request, _| planned(request, folder()),
    afresh: None,
    analyse,
};

/// Every contestant, in the order of the tables.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let contestant = |rule: larder_sim::Choice| {
        bench(rule.name, rule.about, move |params| {
            simulate(rule.name, params)
        })
    };
    choices().into_iter().map(contestant).collect()
}

fn analyse(results: &Results<'_>) -> Analysis {
    let all = GROUPS
        .each_ref()
        .map(|traces| (traces, standings(results, traces)));
    let spots = halves::spots(results);
    let judged = all.iter().filter(|(traces, _)| traces.has_goals);
    Analysis {
        findings: all
            .iter()
            .filter_map(|(t, s)| how_good(t, s))
            .chain(halves::finding_of(&spots))
            .collect(),
        goals: judged
            .flat_map(|(t, s)| goals(t, s))
            .chain(halves::goals(&spots))
            .collect(),
        sections: all
            .iter()
            .map(|(t, s)| section(t, s))
            .chain([halves::section(&spots)])
            .collect(),
        ..Analysis::default()
    }
}

/// The folder with the traces, if one is named.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    named.filter(|folder| folder.is_dir())
}

fn simulate(rule: &str, params: &Params) -> anyhow::Result<Measures> {
    let name = params.text("trace")?;
    let path = if name.contains(':') {
        PathBuf::from(name)
    } else {
        let folder = folder();
        folder
            .with_context(|| format!("{VARIABLE} names no folder with traces"))?
            .join(name)
    };
    let options = ReadOptions {
        // The numbers of these are hashes, and half of them negative.
        format: name.contains(".i32be").then_some(Format::U32be),
        ..ReadOptions::default()
    };
    let trace = Loaded::read(&path, &options, |_| {})?;
    let size = match params.text("share") {
        Ok(share) => Size::parse(share).and_then(|size| size.of(trace.counts.blocks, 1)),
        Err(_) => Ok(params.count("size")?),
    };
    let size = size.map_err(anyhow::Error::msg)?;
    ensure!(size > 0, "a cache of no blocks was asked for");
    let job = Job {
        policy: rule.to_owned(),
        size,
    };
    let outcomes = sweep(&trace, &[job], 1, &Watch::default())?;
    let outcome = outcomes.first().context("nothing was simulated")?;
    Ok(Measures::new()
        .with(HITS, 100.0 * outcome.tally.hit_ratio())
        .with(FRAMES, size as f64)
        .with(USES, trace.counts.uses as f64))
}

/// The plan, with the traces of this folder.
fn planned(request: &PlanRequest<'_>, folder: Option<PathBuf>) -> Plan {
    let contestants = REPLACEMENT.contestants();
    // Counts are the same in every round.
    let once = (1, 1, 0.05);
    let mut plan = Planner::new(request, &contestants, once, once);
    let there = |name: &str| {
        let found = |folder: &PathBuf| folder.join(name).is_file();
        folder.as_ref().is_some_and(found)
    };
    for traces in &GROUPS {
        let few = plan.either(traces.quick, &[]);
        let wanted = |rule: &&str| few.is_empty() || few.contains(rule);
        let names = contestants.iter().map(|c| c.name()).filter(wanted);
        let rules: Vec<&str> = names.collect();
        let cells = traces.sizes();
        let cells = cells.filter(|(trace, _)| traces.group == MADE || there(trace));
        let cells = cells.flat_map(|(trace, size)| {
            let params = Params::new().with_text("trace", trace).with("size", size);
            frame::cross(&rules, &[params])
        });
        let cells: Vec<Cell> = cells.collect();
        let seconds = plan.either(traces.seconds.0, traces.seconds.1);
        plan.group(traces.group, HITS, LRU, seconds, cells);
    }
    if folder.is_none() {
        let why = "names no folder that has them; see docs/experiments/replacement.md";
        plan.skip("public traces", format!("{VARIABLE} {why}"));
    } else if plan.quick() {
        plan.skip(
            format!("public traces under other rules than {LRU}, {DEFAULT} and {OPT}"),
            "they take a minute; run with --full",
        );
        plan.skip(
            "public traces at eight shares of their blocks",
            "they take some minutes; run with --full",
        );
    } else {
        halves::plan(&mut plan, there);
    }
    plan.finish()
}

/// One trace and size, with the hits of all rules in percent.
#[derive(Debug, Clone, PartialEq)]
struct Standing {
    trace: &'static str,
    size: i64,
    hits: Vec<(String, f64)>,
}

/// Every cell of a group that ran, in the order of the plan.
fn standings(results: &Results<'_>, traces: &Traces) -> Vec<Standing> {
    let standing = |(trace, size)| {
        let cells = results.all(traces.group);
        let own =
            cells.filter(|at| at.text("trace") == Some(trace) && at.int("size") == Some(size));
        let hits = own.filter_map(|at| Some((at.name().to_owned(), at.middle(HITS)?)));
        let hits: Vec<_> = hits.collect();
        (!hits.is_empty()).then_some(Standing { trace, size, hits })
    };
    traces.sizes().filter_map(standing).collect()
}

impl Standing {
    fn of(&self, rule: &str) -> Option<f64> {
        let found = self.hits.iter().find(|(name, _)| name == rule)?;
        Some(found.1)
    }

    /// Share of the way from LRU to OPT, in percent; none where both are equal.
    fn gap(&self, rule: &str) -> Option<f64> {
        let (lru, opt) = (self.of(LRU)?, self.of(OPT)?);
        (opt > lru).then_some(100.0 * (self.of(rule)? - lru) / (opt - lru))
    }

    /// The best of the rules that could be chosen beside the default; none where only LRU ran.
    fn best(&self) -> Option<(&str, f64)> {
        let others = self.hits.iter();
        let others = others.filter(|(name, _)| name != DEFAULT && name != OPT);
        let all: Vec<(&str, f64)> = others.map(|(name, hits)| (name.as_str(), *hits)).collect();
        let best = all.iter().max_by(|a, b| a.1.total_cmp(&b.1)).copied();
        best.filter(|_| all.len() > 1)
    }

    /// Points by which the default is behind the best other rule; less than 0 where it is ahead.
    fn behind(&self) -> Option<f64> {
        Some(self.best()?.1 - self.of(DEFAULT)?)
    }
}

/// Something of all cells; none without cells, or if one of them lacks it.
fn of_all(standings: &[Standing], of: impl Fn(&Standing) -> Option<f64>) -> Option<Vec<f64>> {
    let all: Option<Vec<f64>> = standings.iter().map(of).collect();
    all.filter(|all| !all.is_empty())
}

/// The mean of a rule's shares of the way, and the least one.
fn gaps(standings: &[Standing], rule: &str) -> Option<(f64, f64)> {
    let gaps = of_all(standings, |s| s.gap(rule))?;
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    Some((mean, gaps.into_iter().min_by(f64::total_cmp)?))
}

/// The goals of the default on one group. All of its cells must have run: where some did not, one goal says so for all.
fn goals(traces: &Traces, standings: &[Standing]) -> Vec<Goal> {
    let (on, all) = (traces.on, traces.sizes().count());
    if standings.len() < all {
        let how = match traces.group {
            MADE => "run the group made",
            _ => "name the traces' folder in LARDER_TRACES",
        };
        let why = format!("{} of {all} cells ran: {how}", standings.len());
        let what = format!("the default rule on {on}");
        let goal = not_measured(Bound::AtLeast(MEAN_GOAL), what, "LRU and OPT", why);
        return vec![goal.in_unit("%")];
    }
    let gaps = gaps(standings, DEFAULT);
    let behind = of_all(standings, Standing::behind);
    let behind = behind.and_then(|all| all.into_iter().max_by(f64::total_cmp));
    let goal = |bound: Bound, what: &str, against: &str, unit: &str, value: Option<f64>| {
        let note = match value {
            Some(_) => "",
            None => "only three rules ran; run with --full",
        };
        let goal = bound.goal(
            format!("{what} {on}"),
            against,
            value.map(exact),
            None,
            note,
        );
        goal.in_unit(unit)
    };
    vec![
        goal(
            Bound::AtLeast(MEAN_GOAL),
            "from LRU to OPT, mean of",
            "LRU and OPT",
            "%",
            gaps.map(|(mean, _)| mean),
        ),
        goal(
            Bound::AtLeast(0.0),
            "from LRU to OPT, worst of",
            "LRU",
            "%",
            gaps.map(|(_, least)| least),
        ),
        goal(
            Bound::AtMost(BEHIND_GOAL),
            "points behind the best rule,",
            "every other rule in the worst cell",
            "points",
            behind,
        ),
    ]
}

/// The default in one group: how far from LRU to OPT.
fn how_good(traces: &Traces, standings: &[Standing]) -> Option<Finding> {
    let (mean, least) = gaps(standings, DEFAULT)?;
    Some(finding(
        format!("How good is the default rule on {}?", traces.on),
        "larder",
        format!(
            "It goes {mean:.1} % of the way from LRU to OPT in the mean of {} cells, {least:.1} % in the worst.",
            standings.len()
        ),
    ))
}

/// Text with this many digits: hits are exact, and their tables easier to read with the same number of digits in each row.
fn digits(value: Option<f64>, digits: usize) -> Value {
    value.map_or(Value::Empty, |value| text(format!("{value:.digits$}")))
}

fn section(traces: &Traces, standings: &[Standing]) -> Section {
    let tables = [cells(traces.title, standings), ranking(standings)];
    Section {
        title: traces.title.to_owned(),
        blocks: tables.map(Block::Table).to_vec(),
    }
}

fn cells(title: &str, standings: &[Standing]) -> Table {
    let columns = [LRU, DEFAULT, "best other", OPT, "gap"].map(|name| (name, name.to_owned()));
    let rows = standings
        .iter()
        .map(|s| (s, text(format!("{} {}", s.trace, s.size))));
    grid(
        title,
        "trace, blocks",
        rows,
        columns,
        |s, column| match *column {
            "best other" => s.best().map_or(Value::Empty, |(rule, hits)| {
                text(format!("{hits:.2} {rule}"))
            }),
            "gap" => digits(s.gap(DEFAULT), 2),
            rule => digits(s.of(rule), 2),
        },
    )
    .noted("Hits in % of the uses; gap: the default's share of the way from LRU to OPT, in %.")
}

/// Every rule by its mean, the best one first.
fn ranking(standings: &[Standing]) -> Table {
    let rules = standings.first().into_iter().flat_map(|s| &s.hits);
    let mut rules: Vec<(&str, (f64, f64))> = rules
        .filter_map(|(rule, _)| Some((rule.as_str(), gaps(standings, rule)?)))
        .collect();
    rules.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let columns = [(true, "mean gap"), (false, "worst cell")];
    let title = "Every rule's share of the way from LRU to OPT, in %";
    let rows = rules.into_iter().map(|(rule, gaps)| (gaps, text(rule)));
    let columns = columns.map(|(is_mean, name)| (is_mean, name.to_owned()));
    grid(title, "rule", rows, columns, |(mean, least), is_mean| {
        digits(Some(if *is_mean { *mean } else { *least }), 1)
    })
    .folded()
}
