//! What a process pays for its malloc: its start, a fork, and threads that rest. `kept` has what larder's should keep.

mod kept;

use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use anyhow::{Context, ensure};
use larder::internal::heap::SIZES;

use self::kept::{BURSTS, MODES};
use super::scratch::tool;
use crate::contestants::heaps::found::{LARDER, Library, contestants, found};
use crate::contestants::heaps::{self, PRELOADED, Preloaded};
use crate::contestants::timing::resident_bytes;
use crate::frame::words::{Bound, short};
use crate::frame::{
    At, Declared, Planner, Results, bench, finding, goal, grid, not_measured, shown, text,
    together, within,
};
use crate::frame::{median_of, section};
use crate::measure::{Contestant, Experiment, Plan, PlanRequest};
use crate::model::{
    Analysis, Block, Cell, Finding, Goal, Measures, Metric, Params, Skipped, Table,
};
use crate::stats::Estimate;

/// The contestant that is the C library's malloc.
const SYSTEM: &str = "system";

const START: &str = "start";
const FORK: &str = "fork";
const THREADS: &str = "threads";

const START_MS: &str = "start_ms";
const MORE_MS: &str = "start_more_ms";
const FORK_MS: &str = "fork_ms";
const THREAD_KIB: &str = "thread_kib";

/// Milliseconds by which larder's malloc may lengthen a start.
const MOST_MORE: f64 = 0.15;
/// Times that of the best malloc that a fork may take.
const MOST_FORK: f64 = 1.1;
/// KiB by which a resting thread may be larger than with the C library's malloc.
const MOST_THREAD: f64 = 64.0;

const METRICS: &[Metric] = &[
    Metric::cost(
        START_MS,
        "ms",
        "from the start of /bin/true to its end, with the malloc preloaded: the median of a sample's",
    ),
    Metric::cost(
        MORE_MS,
        "ms",
        "by how much longer that is than without a malloc preloaded, one after the other: the median of the pairs",
    ),
    Metric::cost(
        FORK_MS,
        "ms",
        "a fork, until the child has ended, which does nothing: the median of a sample's",
    ),
    Metric::cost(
        THREAD_KIB,
        "KiB",
        "growth of resident memory for each thread that rests after it took and freed a block of each size class, or worked",
    ),
    kept::METRICS[0],
    kept::METRICS[1],
    kept::METRICS[2],
];

/// The experiment `malloc-processes`.
pub const MALLOC_PROCESSES: Declared = Declared {
    name: "malloc-processes",
    title: "What a process pays for its malloc",
    source: "what shells, build tools and servers do all the time: start, fork, and keep threads that rest",
    question: "What do a start, a fork and a resting thread cost with larder's malloc preloaded?",
    metrics: METRICS,
    contestants: mallocs,
    brief: Some(&[START, THREADS, BURSTS, MODES]),
    plan: |request, _| planned(request, found()),
    afresh: None,
    analyse,
};

fn mallocs() -> Vec<Box<dyn Contestant>> {
    let system = bench(SYSTEM, "the C library's malloc, nothing preloaded", run);
    let preloaded = |name| {
        let about = match name {
            LARDER => "liblarder_malloc.so, preloaded",
            PRELOADED => "the library that LARDER_PRELOAD names, loaded before the C library",
            _ => {
                "the library of this name that lies in the usual places, or that LARDER_PRELOAD names, preloaded"
            }
        };
        let run = |params: &Params| {
            Preloaded::new(params)?;
            run(params)
        };
        let environment =
            |params: &Params| [heaps::environment(params), kept::environment(params)].concat();
        within(environment, bench(name, about, run))
    };
    [system]
        .into_iter()
        .chain(contestants().map(preloaded))
        .collect()
}

fn run(params: &Params) -> anyhow::Result<Measures> {
    let count = params.count("count")?;
    ensure!(
        (1..=10_000).contains(&count),
        "{count} were asked for; 1 to 10000 can be measured"
    );
    match params.text("what")? {
        START => starts(params.text("library").ok(), count),
        FORK => forks(params.count("mb")?, count),
        THREADS => threads(count),
        BURSTS => kept::bursts(count),
        MODES => kept::modes(count),
        other => {
            anyhow::bail!("'{other}' is none of {START}, {FORK}, {THREADS}, {BURSTS} and {MODES}")
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Starts /bin/true with the library and without it, in turns.
fn starts(library: Option<&str>, count: usize) -> anyhow::Result<Measures> {
    let program = tool("true")?;
    let once = |library: Option<&str>| {
        let mut command = Command::new(&program);
        command.env_clear().stdin(Stdio::null());
        if let Some(library) = library {
            command.env("LD_PRELOAD", library);
        }
        let begin = Instant::now();
        let status = command
            .status()
            .with_context(|| format!("{} cannot be run", program.display()))?;
        let ms = begin.elapsed().as_secs_f64() * 1e3;
        ensure!(
            status.success(),
            "{} ended with {status}",
            program.display()
        );
        Ok(ms)
    };
    let (mut with, mut more) = (Vec::new(), Vec::new());
    for pair in 0..count {
        // Which comes first changes.
        let (own, plain) = if pair % 2 == 0 {
            let own = once(library)?;
            (own, once(None)?)
        } else {
            let plain = once(None)?;
            (once(library)?, plain)
        };
        with.push(own);
        more.push(own - plain);
    }
    Ok(Measures::new()
        .with(START_MS, median(with))
        .with(MORE_MS, median(more)))
}

/// Forks a process that has touched so many MiB of the malloc's memory.
fn forks(mb: usize, count: usize) -> anyhow::Result<Measures> {
    const BLOCK: usize = 64 << 10;
    ensure!((1..=65536).contains(&mb), "{mb} MiB were asked for");
    let blocks: Vec<Vec<u8>> = (0..(mb << 20) / BLOCK).map(|_| vec![1; BLOCK]).collect();
    std::hint::black_box(&blocks);
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        // SAFETY: the child does nothing but end.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: it ends the child.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: a place for the status; the child is ours and has not been waited for.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        ensure!(
            child > 0 && waited == child && status == 0,
            "the process cannot be forked: {}",
            std::io::Error::last_os_error()
        );
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Measures::new().with(FORK_MS, median(times)))
}

/// Starts threads that take and free a block of each class and then rest.
fn threads(count: usize) -> anyhow::Result<Measures> {
    let each_class = || {
        for size in SIZES {
            // SAFETY: a block of at least 16 bytes, of which the first is written, freed once.
            unsafe {
                let block = libc::malloc(size);
                if !block.is_null() {
                    block.cast::<u8>().write_volatile(1);
                }
                libc::free(block);
            }
        }
    };
    let (kib, _) = resting(count, each_class)?;
    Ok(Measures::new().with(THREAD_KIB, kib))
}

/// Starts threads that work and then rest: by how many KiB resident memory has grown for each, and what their work gave.
fn resting<T: Send + 'static>(count: usize, work: fn() -> T) -> anyhow::Result<(f64, Vec<T>)> {
    // All begin together. Each reaches the second barrier when its work is done, and the third one when the memory was looked at.
    let begin = Arc::new(Barrier::new(count));
    let (ready, end) = (
        Arc::new(Barrier::new(count + 1)),
        Arc::new(Barrier::new(count + 1)),
    );
    let before = resident_bytes();
    let mut handles = Vec::with_capacity(count);
    for _ in 0..count {
        let (begin, ready, end) = (begin.clone(), ready.clone(), end.clone());
        let rest = move || {
            begin.wait();
            let done = work();
            ready.wait();
            end.wait();
            done
        };
        let builder = std::thread::Builder::new().stack_size(256 << 10);
        // Without all of them the others would wait for ever: the process ends with the error.
        handles.push(builder.spawn(rest).context("a thread cannot be started")?);
    }
    ready.wait();
    let grown = resident_bytes().saturating_sub(before);
    end.wait();
    let done = handles.into_iter().filter_map(|handle| handle.join().ok());
    let done = done.collect();
    Ok((grown as f64 / 1024.0 / count as f64, done))
}

fn planned(request: &PlanRequest<'_>, (libraries, skipped): (Vec<Library>, Vec<Skipped>)) -> Plan {
    let contestants = MALLOC_PROCESSES.contestants();
    let mut plan = Planner::new(request, &contestants, (6, 6, 0.05), (10, 21, 0.02));
    for Skipped { what, why } in skipped {
        plan.skip(what, why);
    }
    let quick = plan.quick();
    for (what, metric, count, each) in [
        (
            START,
            START_MS,
            plan.either(10, 50),
            plan.either(0.03, 0.12),
        ),
        (FORK, FORK_MS, plan.either(5, 20), plan.either(0.06, 0.4)),
        (
            THREADS,
            THREAD_KIB,
            plan.either(50, 1000),
            plan.either(0.03, 0.6),
        ),
    ] {
        let mut params = Params::new().with_text("what", what).with("count", count);
        if what == FORK {
            params = params.with("mb", plan.either(64, 256));
        }
        let mut cells = vec![Cell::new(SYSTEM, params.clone())];
        // The quick form has time for others only where the goal speaks of them, or where larder's malloc is missing.
        let is_alone = quick && what != FORK && libraries.iter().any(|l| l.contestant == LARDER);
        let wanted = |library: &&Library| !is_alone || library.contestant == LARDER;
        cells.extend(libraries.iter().filter(wanted).map(|library| {
            let params = params.clone().with_text("library", &library.path);
            Cell::new(&library.contestant, params)
        }));
        let seconds = each * (cells.len() + 1) as f64;
        plan.group(what, metric, SYSTEM, seconds, cells);
    }
    if let Some(library) = libraries.iter().find(|l| l.contestant == LARDER) {
        kept::plan(&mut plan, library);
    }
    if quick {
        let why = "the quick form has 60 starts, forks of 64 MiB and 50 threads, and other mallocs under fork only; run with --full";
        plan.skip(
            "500 starts, forks of 256 MiB, 1000 threads, other mallocs",
            why,
        );
    }
    plan.finish()
}

/// By how much a metric of larder's malloc is above the C library's, by round.
fn above(results: &Results<'_>, group: &str, metric: &str) -> Option<Estimate> {
    let own = results.find(group, LARDER, &[])?.by_round(metric);
    let system = results.find(group, SYSTEM, &[])?.by_round(metric);
    median_of(&together(&[own, system], |v| v[0] - v[1]))
}

fn goals(results: &Results<'_>) -> Vec<Goal> {
    let own = |group| results.find(group, LARDER, &[]);
    let missing = |bound, what: &str, against: &str| {
        not_measured(bound, what, against, "larder's malloc did not run")
    };
    let start = {
        let (bound, what) = (
            Bound::AtMost(MOST_MORE),
            "a start of /bin/true: milliseconds that larder's malloc adds",
        );
        let against = "nothing preloaded, taken off";
        match own(START) {
            None => missing(bound, what, against),
            Some(at) => bound
                .goal(what, against, at.estimate(MORE_MS), None, "")
                .in_unit(""),
        }
    };
    let fork = {
        let (bound, what) = (
            Bound::AtMost(MOST_FORK),
            "a fork of a process that touched its memory",
        );
        let names: Vec<&str> = [SYSTEM].into_iter().chain(contestants()).collect();
        let peers: Vec<&str> = names.into_iter().filter(|name| *name != LARDER).collect();
        let best = results.best(FORK, &peers, &[], FORK_MS);
        goal(bound, what, own(FORK), best, "best malloc", FORK_MS)
    };
    let threads = {
        let (bound, what) = (
            Bound::AtMost(MOST_THREAD),
            "memory of a resting thread: what larder's malloc adds",
        );
        let against = "the C library's malloc, taken off";
        match above(results, THREADS, THREAD_KIB) {
            None => missing(bound, what, against),
            more => bound.goal(what, against, more, None, "").in_unit("KiB"),
        }
    };
    vec![start, fork, threads]
}

fn table(results: &Results<'_>) -> Table {
    let names = [SYSTEM].into_iter().chain(contestants());
    let ran = |name: &&str| {
        let any = |group| results.find(group, name, &[]).is_some();
        [START, FORK, THREADS].into_iter().any(any)
    };
    let columns = [
        (START, MORE_MS, "added to a start"),
        (START, START_MS, "a start"),
        (FORK, FORK_MS, "a fork"),
        (THREADS, THREAD_KIB, "a resting thread"),
    ];
    grid(
        "What a process pays, by malloc",
        "malloc",
        names.filter(ran).map(|name| (name, text(name))),
        columns.map(|column| (column, column.2.to_owned())),
        |name, (group, metric, _)| {
            let at: Option<At<'_, '_>> = results.find(group, name, &[]);
            shown(at.and_then(|at| at.estimate(metric)), results.unit(metric))
        },
    )
}

fn answer(results: &Results<'_>) -> Option<Finding> {
    let own = results.find(START, LARDER, &[])?;
    let more = own.middle(MORE_MS)?;
    let fork = results
        .find(FORK, LARDER, &[])
        .zip(results.find(FORK, SYSTEM, &[]));
    let fork = fork.and_then(|(own, system)| own.ratio(&system, FORK_MS));
    let fork = fork.map_or_else(String::new, |ratio| {
        format!(
            "; a fork takes {} of the time with the C library's",
            short(ratio.value)
        )
    });
    let thread = above(results, THREADS, THREAD_KIB).map_or_else(String::new, |more| {
        format!("; a resting thread has {} KiB more", short(more.value))
    });
    let answer = format!(
        "larder's malloc adds {} ms to a start{fork}{thread}.",
        short(more)
    );
    let question = "What do a start, a fork and a resting thread cost with larder's malloc?";
    Some(finding(question, "larder", answer))
}

fn analyse(results: &Results<'_>) -> Analysis {
    Analysis {
        findings: [answer(results), kept::answer(results)]
            .into_iter()
            .flatten()
            .collect(),
        goals: goals(results),
        sections: vec![
            section("By malloc", [Block::Table(table(results))]),
            kept::section(results),
        ],
        recommendations: kept::recommendations(results),
        ..Analysis::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_measures_something() {
        let of = |what: &str, count: i64| {
            let params = Params::new().with_text("what", what).with("count", count);
            run(&params.with("mb", 1))
        };
        let start = of(START, 3).expect("runs");
        assert!(start.get(START_MS).is_some_and(|ms| ms > 0.0));
        assert!(start.get(MORE_MS).is_some_and(f64::is_finite));
        let fork = of(FORK, 3).expect("runs");
        assert!(fork.get(FORK_MS).is_some_and(|ms| ms > 0.0));
        let threads = of(THREADS, 3).expect("runs");
        assert!(threads.get(THREAD_KIB).is_some_and(|kib| kib >= 0.0));
        assert!(of("sleep", 3).is_err() && of(START, 0).is_err());
    }
}
