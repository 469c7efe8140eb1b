//! Lord's measurement of 2001 again, on a mounted file system: dbench through `larder mount` before a slow disk, under the rules of
//! then and of now, and on XFS as a control. And what such a mount is for: a slow source, and a build beside a grep.

mod builds;
mod control;
mod dbench;
mod linux;
mod slow;

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use larder_fs::{Coherence, DiskModel, MountOptions, MountStats};
use larder_policy::rules;
use larder_sim::{Job, Loaded, ReadOptions, Watch, sweep};

use self::control::XFS;
use self::dbench::{Dbench, holes};
use super::scratch::{Scratch, tool, which};
use super::use_once::{CLIENTS, PATCHED, VANILLA, loadfile, lords_build, lords_change};
use crate::frame::words::{Bound, exact, ratio, short};
use crate::frame::{
    At, Declared, Planner, Results, bench, finding, goal, grid, judged, number, section, shown,
    text,
};
use crate::measure::{Contestant, Depth, Plan, PlanRequest};
use crate::model::{Analysis, Block, Cell, Finding, Goal, Measures, Metric, Params, Table, Value};

const RATE: &str = "mb_per_s";
const HITS: &str = "hit_percent";
const READ: &str = "source_read_mb";
const WRITTEN: &str = "source_written_mb";
const REPLAYED: &str = "replayed_hit_percent";
const BEST: &str = "best_hit_percent";

const METRICS: &[Metric] = &[
    Metric::rate(RATE, "MB/s", "what dbench says of itself"),
    Metric::rate(HITS, "%", "uses of blocks that were in the mount's cache"),
    Metric::cost(builds::SECONDS, "s", "a build of the tree"),
    Metric::rate(
        slow::PER_SECOND,
        "1/s",
        "reads, names or commands of the second pass",
    ),
    Metric::cost(READ, "MB", "read from the source"),
    Metric::cost(WRITTEN, "MB", "written to the source"),
    Metric::rate(
        REPLAYED,
        "%",
        "the same uses, recorded and simulated under the same rule with as many blocks",
    ),
    Metric::rate(
        BEST,
        "%",
        "the same uses under OPT, which knows the future: the most there can be",
    ),
];

/// The rules, those of 2001 first.
const RULES: [&str; 8] = [
    VANILLA,
    PATCHED,
    "linux-2.4.8",
    "linux-2.4.16",
    "linux-two-list",
    "mglru",
    "lru",
    "adaptive",
];

const DBENCH: &str = "dbench";
const FIELD: &str = "rules";
const REPLAY: &str = "replay";

/// The cache, with its tables: blocks of about 60 MiB, as many as the simulated page cache of `use-once` has.
const CACHE_MB: i64 = 72;
/// Loads of the whole field.
const FIELD_CLIENTS: [i64; 2] = [16, 64];

/// The disk of 2001 (8.5 ms, 20 MB/s) made ten times as fast, so that a run of some seconds gets through a part of the load.
const DISK: DiskModel = DiskModel {
    seek: Duration::from_micros(850),
    bytes_per_second: 200_000_000,
    per_call: Duration::ZERO,
};

/// The experiment `use-once-mounted`.
pub const USE_ONCE_MOUNTED: Declared = Declared {
    name: "use-once-mounted",
    title: "Pages used once, on a mounted file system",
    source: "Steve Lord, Re: [RFC] Optimization for use-once pages, linux-kernel, 25 July 2001",
    question: "Is dbench on a mounted file system faster under use-once with many clients, and does the simulator find the same hits?",
    metrics: METRICS,
    contestants,
    brief: Some(&[DBENCH]),
    plan: |request, contestants| planned(request, contestants, &Missing::here(request.depth)),
    afresh: None,
    analyse,
};

fn contestants() -> Vec<Box<dyn Contestant>> {
    let known = RULES
        .iter()
        .filter_map(|name| rules().iter().find(|rule| rule.name == *name));
    let about = "the source by itself, without a cache: slow, or in memory where a tree is built";
    let source = bench(slow::SOURCE, about, |params| match params.text("build") {
        Ok(_) => builds::run(None, params),
        Err(_) => slow::run(false, params),
    });
    let about = "XFS of this kernel in a memory cgroup of the mount's 72 MiB, nearly all for pages; the mount has 60 MiB of blocks in them";
    let control = bench(XFS, about, control::run);
    known
        .map(|rule| bench(rule.name, rule.about, |params| run(rule.name, params)))
        .chain([source, control])
        .collect()
}

/// What cannot be measured here, and why.
#[derive(Default)]
struct Missing {
    all: Option<String>,
    control: Option<String>,
    linux: Option<String>,
}

impl Missing {
    fn here(depth: Depth) -> Self {
        match depth {
            // These parts do not run.
            Depth::Quick => Self {
                all: missing(),
                ..Self::default()
            },
            Depth::Full => Self {
                all: missing(),
                control: control::missing(),
                linux: linux::missing(),
            },
        }
    }
}

/// Why nothing can be measured here.
fn missing() -> Option<String> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
        return Some(format!(
            "/dev/fuse: {error}; install fuse3, and run where mounts are allowed"
        ));
    }
    if !rustix::process::geteuid().is_root() && which("fusermount3").is_none() {
        return Some("fusermount3 is not installed; install fuse3".to_owned());
    }
    if which("dbench").is_none() || loadfile().is_none() {
        return Some("dbench or its client.txt is not installed; install dbench".to_owned());
    }
    None
}

fn planned(
    request: &PlanRequest<'_>,
    contestants: &[Box<dyn Contestant>],
    missing: &Missing,
) -> Plan {
    let mut plan = Planner::new(request, contestants, (1, 1, 0.05), (6, 11, 0.03));
    if let Some(why) = &missing.all {
        plan.skip("dbench on a mount", why);
        return plan.finish();
    }
    let seconds = plan.either(2, 15);
    let shorter = plan.either(1, 15);
    let each = seconds as f64 + 1.0;
    let loads = plan.either(&CLIENTS[4..5], &CLIENTS[..]);
    let control = (!plan.quick() && missing.control.is_none()).then_some(XFS);
    let at_each = |loads: &[i64], rules: &[&'static str]| {
        let rules = rules.iter().copied().chain(control);
        let names: Vec<&str> = rules.collect();
        let at = |clients: &i64| -> Vec<Cell> {
            names
                .iter()
                .map(|name| cell(name, *clients, seconds))
                .collect()
        };
        loads.iter().flat_map(at).collect::<Vec<Cell>>()
    };
    let cells = at_each(loads, &RULES[..2]);
    let guess = each * (cells.len() + 1) as f64;
    plan.group(DBENCH, RATE, VANILLA, guess, cells);
    let field = at_each(&FIELD_CLIENTS, &RULES);
    let recorded = plan.either(&RULES[..2], &RULES[..]);
    let replay = recorded.iter().map(|rule| {
        let cell = cell(rule, 16, shorter);
        Cell::new(rule, cell.params.with("recorded", 1))
    });
    let guess = (shorter as f64 + 1.0) * (recorded.len() + 1) as f64;
    if plan.quick() {
        plan.skip(
            "other rules, XFS, other loads than 16 clients, runs of 15 seconds, a slow source, builds, more than one round",
            "they take two to four hours; run with --full",
        );
    } else {
        if let Some(why) = &missing.control {
            plan.skip("XFS in a memory cgroup", why);
        }
        plan.group(FIELD, RATE, PATCHED, each * 19.0, field);
        slow::plan(&mut plan);
        builds::plan(&mut plan, missing.linux.as_deref());
    }
    // Counts of a run that is as long as another one, whatever it does in that time.
    plan.group(REPLAY, HITS, VANILLA, guess, replay)
        .rounds((1, 1, 0.05));
    plan.finish()
}

fn cell(rule: &str, clients: i64, seconds: i64) -> Cell {
    let params = Params::new()
        .with("clients", clients)
        .with("seconds", seconds)
        .with("cache_mb", CACHE_MB);
    Cell::new(rule, params)
}

/// What this process mounts is not seen by others and ends with it, however it ends. Where that is not allowed, a mount that is
/// killed stays as an empty name.
fn mount_alone() {
    // SAFETY: the call changes only what this thread, and those that it starts, see as mounted.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0 {
        use rustix::mount::{MountPropagationFlags, mount_change};
        // What is unmounted elsewhere goes here, too.
        let _ = mount_change(
            "/",
            MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
        );
    }
}

fn run(rule: &str, params: &Params) -> anyhow::Result<Measures> {
    if params.text("work").is_ok() {
        return slow::run(true, params);
    }
    if params.text("build").is_ok() {
        return builds::run(Some(rule), params);
    }
    let dbench = Dbench::new(params)?;
    let (source, at) = (dbench.folder("source")?, dbench.folder("at")?);
    let trace = dbench.path("trace.csv");
    dbench.make(&source, holes)?;
    mount_alone();
    let recorded = params.count("recorded").is_ok();
    let mut options = MountOptions::new(&source, &at)
        .cache_bytes(params.count("cache_mb")? << 20)
        .rule(rule)
        .coherence(Coherence::Exclusive)
        .disk(DISK);
    if recorded {
        options = options.trace(&trace);
    }
    let mount = options.mount()?;
    let before = mount.stats();
    let rate = dbench.run(&at, None)?;
    let stats = mount.stats();
    mount.unmount()?;
    drop(mount);
    let found = with_counts(Measures::new().with(RATE, rate), &before, &stats);
    match recorded {
        true => replayed(found, rule, &trace, &stats),
        false => Ok(found),
    }
}

/// What a command says that must succeed.
fn done(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("{name} cannot be run"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What `make` says.
fn make(tree: &Path, words: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(tool("make")?);
    // They change what is built, where, or what is said of it.
    for name in [
        "MAKEFLAGS",
        "MAKELEVEL",
        "KBUILD_OUTPUT",
        "KBUILD_VERBOSE",
        "ARCH",
        "CROSS_COMPILE",
    ] {
        command.env_remove(name);
    }
    done(
        command
            .args(["--no-print-directory", "-C"])
            .arg(tree)
            .args(words),
    )
}

/// What a mount did between two looks.
fn with_counts(measures: Measures, before: &MountStats, after: &MountStats) -> Measures {
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    let uses = (hits + misses).max(1) as f64;
    moved(measures, before, after).with(HITS, 100.0 * hits as f64 / uses)
}

/// What it moved from and to its source.
fn moved(measures: Measures, before: &MountStats, after: &MountStats) -> Measures {
    let since = |of: fn(&MountStats) -> u64| (of(after) - of(before)) as f64 / 1e6;
    measures
        .with(READ, since(|stats| stats.backing_read_bytes))
        .with(WRITTEN, since(|stats| stats.backing_written_bytes))
}

/// Hits of the simulator on what the mount recorded, under the mount's rule and the best there can be.
fn replayed(
    found: Measures,
    rule: &str,
    trace: &Path,
    stats: &MountStats,
) -> anyhow::Result<Measures> {
    let size = usize::try_from(stats.capacity_bytes)? / larder::os::page_size();
    let jobs = [rule, "opt"].map(|policy| Job {
        policy: policy.to_owned(),
        size,
    });
    let trace = Loaded::read(trace, &ReadOptions::default(), |_| {})?;
    let outcomes = sweep(&trace, &jobs, 1, &Watch::default())?;
    let named = [REPLAYED, BEST].into_iter().zip(&outcomes);
    Ok(named.fold(found, |found, (name, outcome)| {
        found.with(name, 100.0 * outcome.tally.hit_ratio())
    }))
}

fn analyse(results: &Results<'_>) -> Analysis {
    let findings = [
        gains(results),
        from_which_load(results),
        two(results),
        field(results),
        control::found(results),
        replay(results),
    ];
    let findings = findings.into_iter().flatten();
    Analysis {
        findings: findings.chain(builds::found(results)).collect(),
        goals: [goals(results), slow::goals(results)].concat(),
        sections: vec![
            section(
                "Lord's loads",
                [Block::Text(setup()), Block::Table(by_load(results))],
            ),
            section("All rules", [Block::Table(by_rule(results))]),
            section("A slow source", [Block::Table(slow::table(results))]),
        ],
        warnings: vec![
            "The disk is a model before files in memory: what it takes is slept, one transfer at a time.".to_owned(),
        ],
        ..Analysis::default()
    }
}

fn setup() -> String {
    format!(
        "dbench 4.0 through a mount of {CACHE_MB} MiB, mode own. The clients' files are there at the start, with no block in the cache; each client repeats one turn \
         of the load file (18 MB of reads and writes). The disk takes {:.2} ms for a transfer that does not go on where the last one ended, and moves {:.0} MB/s.",
        DISK.seek.as_secs_f64() * 1e3,
        DISK.bytes_per_second as f64 / 1e6
    )
}

fn at<'r, 'a>(results: &'r Results<'a>, rule: &str, clients: i64) -> Option<At<'r, 'a>> {
    results.find(DBENCH, rule, &[("clients", clients)])
}

/// One contestant against another at a load, both with what the sentence calls them; `then` says what there was before.
fn compared(
    results: &Results<'_>,
    [(one, called), (other, other_called)]: [(&str, &str); 2],
    clients: i64,
    (question, asked_by): (&str, &str),
    then: &str,
) -> Option<Finding> {
    let (one, other) = (at(results, one, clients)?, at(results, other, clients)?);
    judged(question, asked_by, (called, &one), (other_called, &other), RATE, |ratio, _| {
        format!("At {clients} clients {called} moves {ratio} of what {other_called} does{then}.")
    })
    .or_else(|| {
        // Too few rounds for an interval.
        let [one, other] = [one.middle(RATE)?, other.middle(RATE)?].map(short);
        let answer = format!(
            "This run cannot tell, it has too few rounds: {one} MB/s with {called} and {other} MB/s with {other_called} at {clients} clients{then}; run with --full and six rounds or more."
        );
        Some(finding(question, asked_by, answer))
    })
}

/// Use-once against 2.4.7, beside Lord's result.
fn changed(results: &Results<'_>, clients: i64, question: &str) -> Option<Finding> {
    let then =
        lords_change(clients).map_or_else(String::new, |change| format!(" (2001: {change:+.0} %)"));
    let both = [(PATCHED, "use-once"), (VANILLA, "2.4.7")];
    compared(results, both, clients, (question, "Lord 2001"), &then)
}

fn gains(results: &Results<'_>) -> Option<Finding> {
    let most = CLIENTS.into_iter().rev();
    let most = most
        .filter(|n| *n >= 16)
        .find(|n| at(results, PATCHED, *n).is_some())?;
    let question = "Is dbench faster with use-once under high load?";
    Some(changed(results, most, question)?.with(by_load(results)))
}

/// The smallest load from which on use-once is surely faster, of those that were measured.
fn from_which_load(results: &Results<'_>) -> Option<Finding> {
    let ratio = |clients| {
        let (before, after) = (
            at(results, VANILLA, clients)?,
            at(results, PATCHED, clients)?,
        );
        Some((clients, after.ratio(&before, RATE)?))
    };
    let all: Vec<_> = CLIENTS.into_iter().filter_map(ratio).collect();
    let (most, _) = all.last().filter(|_| all.len() > 1)?;
    let surely = all.iter().rev().take_while(|(_, ratio)| ratio.lo > 1.0);
    let answer = match surely.last() {
        Some((clients, _)) => format!("From {clients} clients on, up to {most}."),
        None => format!("At none surely: at {most} clients the interval has 1, or less."),
    };
    let question = "From which load on is use-once faster?";
    Some(finding(question, "Lord 2001", answer))
}

fn two(results: &Results<'_>) -> Option<Finding> {
    let question = "Are two clients slower with use-once (44.3 against 48.4 MB/s in 2001)?";
    changed(results, 2, question)
}

fn field(results: &Results<'_>) -> Option<Finding> {
    let of = |rule: &str| results.find(FIELD, rule, &[("clients", 16)]);
    let rates = RULES
        .iter()
        .filter_map(|rule| Some((*rule, of(rule)?.middle(RATE)?)));
    let (best, rate) = rates.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let over = of(best)?.ratio(&of(VANILLA)?, RATE);
    let over = over.map_or_else(String::new, |over| format!(", {} of 2.4.7", ratio(&over)));
    let answer = format!("At 16 clients {best}: {} MB/s{over}.", short(rate));
    Some(finding(
        "Under which rule is dbench fastest?",
        "larder",
        answer,
    ))
}

/// By rule the hits of the mount, of the simulator, and under OPT, in percent.
fn replays(results: &Results<'_>) -> Vec<(&'static str, [f64; 3])> {
    let hits = |rule: &&'static str| {
        let at = results.find(REPLAY, rule, &[])?;
        // None in a run from before there was OPT.
        let best = at.middle(BEST).unwrap_or(f64::NAN);
        Some((*rule, [at.middle(HITS)?, at.middle(REPLAYED)?, best]))
    };
    RULES.iter().filter_map(hits).collect()
}

/// Percentage points between mount and simulator.
fn apart((_, [real, simulated, _]): &(&'static str, [f64; 3])) -> f64 {
    (real - simulated).abs()
}

fn farthest<'a>(all: &'a [(&'static str, [f64; 3])]) -> Option<&'a (&'static str, [f64; 3])> {
    all.iter().max_by(|a, b| apart(a).total_cmp(&apart(b)))
}

fn replay(results: &Results<'_>) -> Option<Finding> {
    let all = replays(results);
    let worst = farthest(&all)?;
    let (rule, [real, simulated, _]) = worst;
    let answer = format!(
        "Of the recorded uses the simulator finds as many as the mount within {:.2} points; farthest apart: {rule}, {simulated:.2} % and {real:.2} %.",
        apart(worst),
    );
    let columns = ["mount", "simulator", "simulator, OPT"];
    let table = grid(
        "Hits of the same uses at 16 clients, in %",
        "rule",
        all.iter().map(|row| (row, text(row.0))),
        columns
            .into_iter()
            .enumerate()
            .map(|(n, name)| (n, name.to_owned())),
        |(_, hits), column| number(Some(hits[*column]).filter(|hits| hits.is_finite())),
    );
    let question = "Does the simulator find what the mount finds?";
    Some(finding(question, "larder", answer).with(table))
}

fn goals(results: &Results<'_>) -> Vec<Goal> {
    let loads = FIELD_CLIENTS.into_iter();
    let goal = |clients: i64| {
        let of = |rule| results.find(FIELD, rule, &[("clients", clients)]);
        goal(
            Bound::AtLeast(1.0),
            format!("throughput under the default rule, {clients} clients"),
            of("adaptive"),
            of(PATCHED),
            PATCHED,
            RATE,
        )
    };
    let all = replays(results);
    let same = farthest(&all).map(|worst| {
        let measured = Some(exact(apart(worst)));
        let note = format!("farthest apart: {}", worst.0);
        Bound::AtMost(0.5)
            .goal(
                "hits, simulator and mount",
                "the mount",
                measured,
                None,
                note,
            )
            .in_unit("points")
    });
    loads.map(goal).chain(same).collect()
}

/// The loads that ran, as rows of a table.
fn loads(results: &Results<'_>) -> impl Iterator<Item = (i64, Value)> {
    let loads = results.values(DBENCH, "clients").into_iter();
    loads.map(|clients| (clients, Value::Count(clients)))
}

fn by_load(results: &Results<'_>) -> Table {
    let columns = [
        "change (2001)",
        "use-once / 2.4.7",
        "2.4.7",
        "use-once",
        XFS,
        "hits, 2.4.7",
        "hits, use-once",
    ];
    grid(
        "dbench's throughput by clients",
        "clients",
        loads(results),
        columns.map(|name| (name, name.to_owned())),
        |clients, column| {
            let of = |rule| at(results, rule, *clients);
            let metric =
                |rule, metric| of(rule).map_or(Value::Empty, |at: At<'_, '_>| at.value(metric));
            match *column {
                "change (2001)" => lords_change(*clients)
                    .map_or(Value::Empty, |change| text(format!("{change:+.0} %"))),
                "use-once / 2.4.7" => {
                    let both = of(PATCHED).zip(of(VANILLA));
                    shown(
                        both.and_then(|(after, before)| after.ratio(&before, RATE)),
                        "x",
                    )
                }
                "2.4.7" => metric(VANILLA, RATE),
                "use-once" => metric(PATCHED, RATE),
                XFS => metric(XFS, RATE),
                "hits, 2.4.7" => metric(VANILLA, HITS),
                _ => metric(PATCHED, HITS),
            }
        },
    )
}

fn by_rule(results: &Results<'_>) -> Table {
    let measures = [
        (RATE, "MB/s"),
        (HITS, "hits, %"),
        (READ, "read, MB"),
        (WRITTEN, "written, MB"),
    ];
    let columns = FIELD_CLIENTS.into_iter().flat_map(|clients| {
        measures.map(|(metric, name)| ((clients, metric), format!("{name}, {clients}")))
    });
    grid(
        "dbench under every rule, by clients",
        "rule",
        RULES
            .into_iter()
            .chain([XFS])
            .map(|rule| (rule, text(rule))),
        columns,
        |rule, (clients, metric)| {
            let at = results.find(FIELD, rule, &[("clients", *clients)]);
            number(at.and_then(|at| at.middle(metric)))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_fuse_one_line_says_so() {
        let machine = crate::model::MachineRecord::default();
        let request = PlanRequest {
            depth: Depth::Quick,
            machine: &machine,
            seed: 1,
        };
        let missing = Missing {
            all: Some("dbench is not installed".to_owned()),
            ..Missing::default()
        };
        let plan = planned(&request, &contestants(), &missing);
        assert!(plan.groups.is_empty() && plan.skipped.len() == 1);
        let plan = planned(&request, &contestants(), &Missing::default());
        let seconds = plan
            .groups
            .iter()
            .map(|group| group.round_guess.as_secs_f64() * f64::from(group.min_rounds));
        assert!(seconds.sum::<f64>() <= 15.0);
        // And the slow source and the control.
        assert_eq!(contestants().len(), RULES.len() + 2);
    }

    #[test]
    fn without_xfs_or_linux_one_line_says_so() {
        let machine = crate::model::MachineRecord::default();
        let request = PlanRequest {
            depth: Depth::Full,
            machine: &machine,
            seed: 1,
        };
        let loads = |plan: &Plan| -> usize {
            let cells = plan.groups.iter().flat_map(|group| &group.cells);
            cells.filter(|cell| cell.contestant == XFS).count()
        };
        let plan = planned(&request, &contestants(), &Missing::default());
        assert_eq!(loads(&plan), CLIENTS.len() + FIELD_CLIENTS.len());
        let missing = Missing {
            control: Some("this kernel has no XFS".to_owned()),
            linux: Some("install flex (Debian's names)".to_owned()),
            ..Missing::default()
        };
        let plan = planned(&request, &contestants(), &missing);
        assert_eq!(loads(&plan), 0);
        assert!(!plan.groups.iter().any(|group| group.name.contains("linux")));
        for why in [missing.control, missing.linux] {
            let lines = plan
                .skipped
                .iter()
                .filter(|line| Some(&line.why) == why.as_ref());
            assert_eq!(lines.count(), 1);
        }
    }
}
