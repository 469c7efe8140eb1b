//! Lord's measurement of 2001 again, on a mounted file system: dbench through `larder mount` before a slow disk, under the rules of
//! then and of now. And what such a mount is for: a slow source, and a build beside a grep.

mod builds;
mod slow;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use larder_fs::{Coherence, DiskModel, MountOptions, MountStats};
use larder_policy::rules;
use larder_sim::{Job, Loaded, ReadOptions, Watch, sweep};

use super::scratch::{Scratch, tool, which};
use super::use_once::{CLIENTS, PATCHED, VANILLA, loadfile, lords_change};
use crate::frame::words::{Bound, ratio, short};
use crate::frame::{
    At, Declared, Planner, Results, bench, finding, goal, grid, judged, number, section, shown,
    text,
};
use crate::measure::{Contestant, Plan, PlanRequest};
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
    plan: |request, contestants| planned(request, contestants, missing()),
    afresh: None,
    analyse,
};

fn contestants() -> Vec<Box<dyn Contestant>> {
    let known = RULES
        .iter()
        .filter_map(|name| rules().iter().find(|rule| rule.name == *name));
    let about = "the slow source of that group by itself, without a cache";
    let source = bench(slow::SOURCE, about, |params| slow::run(false, params));
    known
        .map(|rule| bench(rule.name, rule.about, |params| run(rule.name, params)))
        .chain([source])
        .collect()
}

/// Why nothing can be measured here.
fn missing() -> Option<String> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
        return Some(format!(
            "/dev/fuse: {error}; install fuse3, and run where mounts are allowed"
        ));
    }
    if !rustix::process::geteuid().is_root() && which("fusermount3").is_none() {
        return Some("fusermount3 is not installed".to_owned());
    }
    if which("dbench").is_none() || loadfile().is_none() {
        return Some("dbench is not installed".to_owned());
    }
    None
}

fn planned(
    request: &PlanRequest<'_>,
    contestants: &[Box<dyn Contestant>],
    missing: Option<String>,
) -> Plan {
    let mut plan = Planner::new(request, contestants, (1, 1, 0.05), (6, 11, 0.03));
    if let Some(why) = missing {
        plan.skip("dbench on a mount", why);
        return plan.finish();
    }
    let seconds = plan.either(2, 15);
    let shorter = plan.either(1, 15);
    let each = seconds as f64 + 1.0;
    let loads = plan.either(&CLIENTS[4..5], &CLIENTS[..]);
    let cells = loads
        .iter()
        .flat_map(|clients| [VANILLA, PATCHED].map(|rule| cell(rule, *clients, seconds)));
    let cells: Vec<Cell> = cells.collect();
    let guess = each * (cells.len() + 1) as f64;
    plan.group(DBENCH, RATE, VANILLA, guess, cells);
    let field = FIELD_CLIENTS
        .iter()
        .flat_map(|clients| RULES.map(|rule| cell(rule, *clients, seconds)));
    let recorded = plan.either(&RULES[..2], &RULES[..]);
    let replay = recorded.iter().map(|rule| {
        let cell = cell(rule, 16, shorter);
        Cell::new(rule, cell.params.with("recorded", 1))
    });
    let guess = (shorter as f64 + 1.0) * (recorded.len() + 1) as f64;
    if plan.quick() {
        plan.skip(
            "other rules, other loads than 16 clients, runs of 15 seconds, a slow source, builds, more than one round",
            "they take an hour; run with --full",
        );
    } else {
        plan.group(FIELD, RATE, PATCHED, each * 17.0, field);
        slow::plan(&mut plan);
        builds::plan(&mut plan);
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

/// dbench's load: the files of a client when its first turn begins, and what it does in a turn. Each turn ends as it began.
struct Load {
    folders: Vec<String>,
    files: BTreeMap<String, u64>,
    turn: String,
}

impl Load {
    fn read(load: &str) -> anyhow::Result<Self> {
        let (mut folders, mut files) = (Vec::new(), BTreeMap::<String, u64>::new());
        let mut handles = HashMap::new();
        let mut lines = load.lines();
        // A turn begins by a look at this folder.
        let begins = |line: &&str| line.starts_with("FIND_FIRST") && line.contains("\\SEED\\*\"");
        let first = loop {
            let line = lines.next().context("dbench's load file has no turn")?;
            if begins(&line) {
                break line;
            }
            if !line.ends_with("NT_STATUS_OK") {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let quoted: Vec<&str> = line.split('"').collect();
            match (words.as_slice(), quoted.as_slice()) {
                (["NTCreateX", ..], [_, path, more]) => {
                    let more: Vec<&str> = more.split_whitespace().collect();
                    let [options, disposition, handle, ..] = more[..] else {
                        continue;
                    };
                    let path = (*path).to_owned();
                    handles.insert(handle, path.clone());
                    if options == "0x1" {
                        folders.push(path);
                    } else {
                        let length = files.entry(path).or_default();
                        // These dispositions cut a file.
                        if ["0x0", "0x4", "0x5"].contains(&disposition) {
                            *length = 0;
                        }
                    }
                }
                (["WriteX", handle, offset, bytes, ..], _) => {
                    let end = offset.parse::<u64>()? + bytes.parse::<u64>()?;
                    let file = handles.get(handle).and_then(|path| files.get_mut(path));
                    if let Some(length) = file {
                        *length = end.max(*length);
                    }
                }
                (["Mkdir", ..], [_, path, ..]) => folders.push((*path).to_owned()),
                (["Unlink", ..], [_, path, ..]) => {
                    files.remove(*path);
                }
                (["Rename", ..], [_, from, _, to, ..]) => {
                    if let Some(length) = files.remove(*from) {
                        files.insert((*to).to_owned(), length);
                    }
                }
                _ => {}
            }
        };
        let turn = std::iter::once(first)
            .chain(lines.take_while(|line| !begins(line)))
            .flat_map(|line| [line, "\n"]);
        let turn = turn.collect();
        Ok(Self {
            folders,
            files,
            turn,
        })
    }

    /// Makes the files of these many clients. They have no content, so they take no memory before they are written.
    fn make(&self, source: &Path, clients: usize) -> anyhow::Result<()> {
        for client in 0..clients {
            let own = format!("client{client}");
            let place = |path: &str| {
                let path = path.replace("client1", &own).replace('\\', "/");
                source.join(path.trim_start_matches('/'))
            };
            for folder in &self.folders {
                fs::create_dir_all(place(folder))?;
            }
            for (file, length) in &self.files {
                let path = place(file);
                let made = File::create(&path).and_then(|made| made.set_len(*length));
                made.with_context(|| format!("{} cannot be made", path.display()))?;
            }
        }
        Ok(())
    }
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
        return builds::run(rule, params);
    }
    let (clients, seconds) = (params.count("clients")?, params.count("seconds")?);
    ensure!(
        (1..=256).contains(&clients) && seconds > 0,
        "1 to 256 clients"
    );
    let path = loadfile().context("dbench's client.txt is not here; install dbench")?;
    let load = Load::read(&fs::read_to_string(&path)?)?;
    // The source's own disk is not measured.
    let shm = Path::new("/dev/shm");
    let scratch = match Scratch::open_in(shm, "mounted") {
        Ok(scratch) => scratch,
        Err(_) => Scratch::open("mounted")?,
    };
    let (source, at) = (scratch.path("source"), scratch.path("at"));
    let (turn, trace) = (scratch.path("turn.txt"), scratch.path("trace.csv"));
    fs::create_dir(&source)?;
    fs::create_dir(&at)?;
    fs::write(&turn, &load.turn)?;
    load.make(&source, clients)?;
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
    let rate = dbench(&at, &turn, clients, seconds)?;
    let stats = mount.stats();
    mount.unmount()?;
    drop(mount);
    let found = with_counts(Measures::new().with(RATE, rate), &before, &stats);
    match recorded {
        true => replayed(found, rule, &trace, &stats),
        false => Ok(found),
    }
}

/// Megabytes a second.
fn dbench(at: &Path, turn: &Path, clients: usize, seconds: usize) -> anyhow::Result<f64> {
    // Where one client fails dbench waits for ever. `timeout` ends all of them, also when this process is gone.
    let output = Command::new(tool("timeout")?)
        .args(["-k", "1", &(30 + 3 * seconds).to_string()])
        .arg(tool("dbench")?)
        .arg("-D")
        .arg(at)
        .arg("-c")
        .arg(turn)
        .args(["-t", &seconds.to_string(), &clients.to_string()])
        .output()
        .context("dbench cannot be run")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = said
        .lines()
        .find_map(|line| line.strip_prefix("Throughput "))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    rate.filter(|_| output.status.success()).with_context(|| {
        let last = said.lines().rfind(|line| line.contains("ERROR"));
        format!("dbench failed: {}", last.unwrap_or("it did not end"))
    })
}

/// What a mount did between two looks.
fn with_counts(measures: Measures, before: &MountStats, after: &MountStats) -> Measures {
    let since = |of: fn(&MountStats) -> u64| (of(after) - of(before)) as f64;
    let (hits, misses) = (since(|stats| stats.hits), since(|stats| stats.misses));
    measures
        .with(HITS, 100.0 * hits / (hits + misses).max(1.0))
        .with(READ, since(|stats| stats.backing_read_bytes) / 1e6)
        .with(WRITTEN, since(|stats| stats.backing_written_bytes) / 1e6)
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
        replay(results),
        builds::found(results),
    ];
    Analysis {
        findings: findings.into_iter().flatten().collect(),
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

/// Use-once against 2.4.7 at a load.
fn compared(results: &Results<'_>, clients: i64, question: &str) -> Option<Finding> {
    let (before, after) = (
        at(results, VANILLA, clients)?,
        at(results, PATCHED, clients)?,
    );
    let then =
        lords_change(clients).map_or_else(String::new, |change| format!(" (2001: {change:+.0} %)"));
    let both = ("use-once", &after);
    let other = ("2.4.7", &before);
    judged(question, "Lord 2001", both, other, RATE, |ratio, _| {
        format!("At {clients} clients use-once moves {ratio} of what 2.4.7 does{then}.")
    })
    .or_else(|| {
        // Too few rounds for an interval.
        let [one, other] = [after.middle(RATE)?, before.middle(RATE)?].map(short);
        let answer = format!(
            "This run cannot tell, it has too few rounds: {one} MB/s with use-once and {other} MB/s without at {clients} clients{then}; run with --full."
        );
        Some(finding(question, "Lord 2001", answer))
    })
}

fn gains(results: &Results<'_>) -> Option<Finding> {
    let most = CLIENTS.into_iter().rev();
    let most = most
        .filter(|n| *n >= 16)
        .find(|n| at(results, PATCHED, *n).is_some())?;
    let question = "Is dbench faster with use-once under high load?";
    Some(compared(results, most, question)?.with(by_load(results)))
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
    compared(results, 2, question)
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

fn replay(results: &Results<'_>) -> Option<Finding> {
    let hits = |rule: &&'static str| {
        let at = results.find(REPLAY, rule, &[])?;
        // None in a run from before there was OPT.
        let best = at.middle(BEST).unwrap_or(f64::NAN);
        Some((*rule, [at.middle(HITS)?, at.middle(REPLAYED)?, best]))
    };
    let all: Vec<_> = RULES.iter().filter_map(hits).collect();
    let apart = |(_, [real, simulated, _]): &(&str, [f64; 3])| (real - simulated).abs();
    let worst = all.iter().max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
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
    loads.map(goal).collect()
}

fn by_load(results: &Results<'_>) -> Table {
    let columns = [
        "change (2001)",
        "use-once / 2.4.7",
        "2.4.7",
        "use-once",
        "hits, 2.4.7",
        "hits, use-once",
    ];
    grid(
        "dbench's throughput by clients",
        "clients",
        CLIENTS
            .into_iter()
            .filter(|n| at(results, VANILLA, *n).is_some())
            .map(|n| (n, Value::Count(n))),
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
        RULES.map(|rule| (rule, text(rule))),
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
    fn a_load_is_files_and_a_turn() {
        let text = r#"Deltree "\clients\client1" NT_STATUS_OK
Mkdir "\clients" NT_STATUS_OK
NTCreateX "\clients\client1" 0x1 0x2 1 NT_STATUS_OK
NTCreateX "\clients\client1\none" 0x40 0x1 2 NT_STATUS_OBJECT_NAME_NOT_FOUND
NTCreateX "\clients\client1\A b" 0x40 0x2 3 NT_STATUS_OK
WriteX 3 65534 1 1 NT_STATUS_OK
WriteX 3 0 10 10 NT_STATUS_OK
NTCreateX "\clients\client1\gone" 0x40 0x2 4 NT_STATUS_OK
Unlink "\clients\client1\gone" NT_STATUS_OK
Rename "\clients\client1\A b" "\clients\client1\c" NT_STATUS_OK
FIND_FIRST "\clients\client1\~dmtmp\SEED\*" 260 1366 5 NT_STATUS_OK
ReadX 3 0 1 1 NT_STATUS_OK
FIND_FIRST "\clients\client1\~dmtmp\SEED\*" 260 1366 5 NT_STATUS_OK
"#;
        let load = Load::read(text).expect("has a turn");
        assert_eq!(load.turn.lines().count(), 2);
        let scratch = Scratch::open("test").expect("room");
        load.make(scratch.folder(), 2).expect("made");
        for client in ["client0", "client1"] {
            let own = scratch.path("clients").join(client);
            let names: Vec<_> = fs::read_dir(&own).expect("there").flatten().collect();
            assert_eq!(names.len(), 1);
            assert_eq!(own.join("c").metadata().expect("there").len(), 65_535);
        }
        assert!(Load::read("Mkdir \"\\clients\" NT_STATUS_OK\n").is_err());
    }

    #[test]
    fn without_fuse_one_line_says_so() {
        let machine = crate::model::MachineRecord::default();
        let request = PlanRequest {
            depth: crate::measure::Depth::Quick,
            machine: &machine,
            seed: 1,
        };
        let why = Some("dbench is not installed".to_owned());
        let plan = planned(&request, &contestants(), why);
        assert!(plan.groups.is_empty() && plan.skipped.len() == 1);
        let plan = planned(&request, &contestants(), None);
        let seconds = plan
            .groups
            .iter()
            .map(|group| group.round_guess.as_secs_f64() * f64::from(group.min_rounds));
        assert!(seconds.sum::<f64>() <= 15.0);
        // And the slow source.
        assert_eq!(contestants().len(), RULES.len() + 1);
    }
}
