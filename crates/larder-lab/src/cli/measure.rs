//! `measure`: takes the samples, stores them and says what they mean.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use super::args::{Global, Measure};
use super::failure::{Failure, Outcome};
use super::{find, plan, print_json};
use crate::experiments;
use crate::machine;
use crate::measure::{
    Bar, Depth, Experiment, Interrupt, Options, OwnProcess, Progress, Runner, Silent,
};
use crate::model::{Analysis, MachineRecord, RunRecord};

/// Leaves half a minute of the promised three for starting, analysing and drawing.
const QUICK_CAP: Duration = Duration::from_secs(150);

pub(super) fn run(global: &Global, args: &Measure, out: &mut dyn Write) -> Outcome {
    let chosen = chosen(&args.experiments)?;
    let machine = machine::capture();
    let options = options(args);
    if args.plan {
        return plan::print(&chosen, &options, &machine, global.json, out);
    }
    let interrupt = Interrupt::new();
    interrupt
        .listen()
        .map_err(|e| Failure::io(format!("Ctrl-C cannot be caught: {e}")))?;
    let runs = take(global, &chosen, &options, &machine, &interrupt)?;
    show(global, &runs, out)
}

fn chosen(names: &[String]) -> Result<Vec<Box<dyn Experiment>>, Failure> {
    if names.is_empty() {
        return Ok(experiments::all());
    }
    names.iter().map(|n| find(n)).collect()
}

fn options(args: &Measure) -> Options {
    let depth = if args.full { Depth::Full } else { Depth::Quick };
    let seed = args.seed.unwrap_or_else(random_seed);
    let cap = match (args.time_cap, depth) {
        (None, Depth::Quick) if !args.until_stable => Some(QUICK_CAP),
        (given, _) => given,
    };
    Options {
        time_cap: cap,
        max_rounds: args.rounds,
        until_stable: args.until_stable,
        cell_limit: args.cell_limit,
        groups: args.group.clone(),
        contestants: args.contestant.clone(),
        ..Options::new(depth, seed)
    }
}

/// 32 bits: short enough to be typed again.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id()) >> 32
}

/// Runs the experiments one after the other, each with its share of the time.
fn take(
    global: &Global,
    experiments: &[Box<dyn Experiment>],
    options: &Options,
    machine: &MachineRecord,
    interrupt: &Interrupt,
) -> Result<Vec<(RunRecord, Analysis)>, Failure> {
    let begin = Instant::now();
    let guesses: Vec<Duration> = experiments
        .iter()
        .map(|e| {
            let free = Options {
                time_cap: None,
                ..options.clone()
            };
            free.guess(&free.plan(e.as_ref(), machine))
        })
        .collect();
    let mut runs = Vec::new();
    for (i, experiment) in experiments.iter().enumerate() {
        if interrupt.asked() {
            break;
        }
        let cap = options
            .time_cap
            .map(|cap| share(cap.saturating_sub(begin.elapsed()), &guesses[i..]));
        let own = Options {
            time_cap: cap,
            argv: argv(experiment.name(), options),
            ..options.clone()
        };
        let mut launcher = OwnProcess::new(interrupt).map_err(Failure::io)?;
        let mut bar = Bar::new();
        let mut silent = Silent;
        let progress: &mut dyn Progress = if global.quiet { &mut silent } else { &mut bar };
        let run =
            Runner::new(&mut launcher, progress, interrupt).run(experiment.as_ref(), machine, &own);
        let analysis = experiment.analyse(&run);
        runs.push((run, analysis));
    }
    Ok(runs)
}

/// The first one's part of the time that is left, by the guesses of all that are left.
fn share(left: Duration, guesses: &[Duration]) -> Duration {
    let sum: f64 = guesses.iter().map(Duration::as_secs_f64).sum();
    let first = guesses.first().map_or(0.0, Duration::as_secs_f64);
    if sum > 0.0 {
        left.mul_f64((first / sum).clamp(0.0, 1.0))
    } else {
        left / u32::try_from(guesses.len().max(1)).unwrap_or(1)
    }
}

/// The command line that repeats one experiment of this run.
fn argv(experiment: &str, options: &Options) -> Vec<String> {
    let mut argv: Vec<String> = ["larder", "measure", experiment]
        .map(str::to_owned)
        .to_vec();
    argv.push(format!("--{}", options.depth.name()));
    argv.extend(["--seed".to_owned(), options.seed.to_string()]);
    if let Some(n) = options.max_rounds {
        argv.extend(["--rounds".to_owned(), n.to_string()]);
    }
    if options.until_stable {
        argv.push("--loop".to_owned());
    }
    for g in &options.groups {
        argv.extend(["--group".to_owned(), g.clone()]);
    }
    for c in &options.contestants {
        argv.extend(["--contestant".to_owned(), c.clone()]);
    }
    argv
}

fn show(global: &Global, runs: &[(RunRecord, Analysis)], out: &mut dyn Write) -> Outcome {
    if global.json {
        let runs: Vec<_> = runs
            .iter()
            .map(|(run, analysis)| json!({ "run": run, "analysis": analysis }))
            .collect();
        return print_json(out, &json!({ "schema": 1, "runs": runs }));
    }
    for (run, analysis) in runs {
        writeln!(out, "{} (run {})", analysis.title, &run.id)?;
        for f in &analysis.findings {
            writeln!(out, "  {}\n    {}", f.question, f.answer)?;
        }
        for g in &run.groups {
            writeln!(out, "  {}: {} rounds, {:?}", g.name, g.rounds, g.stopped)?;
        }
        for s in &run.skipped {
            writeln!(out, "  left out: {}: {}", s.what, s.why)?;
        }
        for w in analysis.warnings.iter().chain(&run.noise.warnings) {
            writeln!(out, "  warning: {w}")?;
        }
    }
    Ok(())
}
