//! `measure`: takes the samples, stores them and says what they mean.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::args::{FailOn, Global, Measure};
use super::failure::{Code, Failure, Outcome};
use super::{find, output, plan, print_json, report, results, settings};
use crate::experiments;
use crate::machine::{self, NoiseMeter, Root};
use crate::measure::{
    Bar, Depth, Experiment, Interrupt, Options, OwnProcess, Progress, Runner, Silent,
};
use crate::model::{GoalState, MachineRecord, NoiseRecord, RunRecord};
use crate::report::Document;
use crate::store::Store;

/// Leaves half a minute of the promised three for starting, analysing and drawing.
const QUICK_CAP: Duration = Duration::from_secs(150);
/// How long the machine is watched before the first cell.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn run(global: &Global, args: &Measure, out: &mut dyn Write) -> Outcome {
    let chosen = chosen(&args.experiments)?;
    let machine = machine::capture();
    let options = options(args);
    if args.plan {
        return plan::print(&chosen, &options, &machine, global.json, out);
    }
    // Three minutes of measuring must not end at a file that cannot be written.
    let mut store = match args.no_save {
        true => None,
        false => Some(results::create(global)?),
    };
    gate(global, args)?;
    let interrupt = Interrupt::new();
    interrupt
        .listen()
        .map_err(|e| Failure::io(format!("Ctrl-C cannot be caught: {e}")))?;
    let runs = take(global, &chosen, &options, &machine, &interrupt, &mut store)?;
    let empty = runs.iter().all(|r| r.samples.is_empty());
    let document = results::document(runs, None)?;
    let files = match args.no_save {
        true => Files::default(),
        false => write_files(global, args, &document)?,
    };
    show(global, &document, &files, out)?;
    if empty {
        return Err(Failure::refused(
            "nothing was measured; the reasons are above, and `larder measure --plan` shows what each group needs",
        ));
    }
    match args.fail_on {
        Some(FailOn::Missed) => judge(&document),
        None => Ok(()),
    }
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

/// Looks at the machine while the lab does nothing. A quick run is exploratory and goes on with a warning; a full
/// one makes claims, so it does not begin on a busy machine unless the user insists.
fn gate(global: &Global, args: &Measure) -> Outcome {
    let noise = NoiseMeter::idle_look(Root::system(), LOOK);
    for warning in &noise.warnings {
        output::hint(global, &format!("before the run: {warning}"));
    }
    if refused(&noise, args.full, args.allow_noise) {
        return Err(Failure::refused(
            "the machine is too busy for --full; wait until it is quiet, take --quick, or insist with --allow-noise",
        ));
    }
    Ok(())
}

fn refused(noise: &NoiseRecord, full: bool, allowed: bool) -> bool {
    noise.noisy && full && !allowed
}

/// Runs the experiments one after the other, each with its share of the time, and stores each at its end.
fn take(
    global: &Global,
    experiments: &[Box<dyn Experiment>],
    options: &Options,
    machine: &MachineRecord,
    interrupt: &Interrupt,
    store: &mut Option<Store>,
) -> Result<Vec<RunRecord>, Failure> {
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
        let mut own = Options {
            time_cap: cap,
            ..options.clone()
        };
        own.argv = argv(experiment.name(), &own);
        let mut launcher = OwnProcess::new(interrupt).map_err(Failure::io)?;
        let (mut bar, mut silent) = (Bar::new(), Silent);
        let progress: &mut dyn Progress = if global.quiet { &mut silent } else { &mut bar };
        let run =
            Runner::new(&mut launcher, progress, interrupt).run(experiment.as_ref(), machine, &own);
        if let Some(store) = store.as_mut().filter(|_| !run.samples.is_empty()) {
            store.put(&run)?;
        }
        runs.push(run);
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
    argv.push(format!("--seed={}", options.seed));
    if let Some(cap) = options.time_cap {
        argv.push(format!("--time-cap={:.3}s", cap.as_secs_f64().max(0.001)));
    }
    if let Some(n) = options.max_rounds {
        argv.push(format!("--rounds={n}"));
    }
    if options.until_stable {
        argv.push("--loop".to_owned());
    }
    argv.push(format!(
        "--cell-limit={:.3}s",
        options.cell_limit.as_secs_f64().max(0.001)
    ));
    argv.extend(options.groups.iter().map(|g| format!("--group={g}")));
    argv.extend(
        options
            .contestants
            .iter()
            .map(|c| format!("--contestant={c}")),
    );
    argv
}

/// What was written beside the database.
#[derive(Debug, Default)]
struct Files {
    database: Option<PathBuf>,
    page: Option<PathBuf>,
    settings: Option<PathBuf>,
}

fn write_files(global: &Global, args: &Measure, document: &Document) -> Result<Files, Failure> {
    let page = match &args.out {
        Some(path) => path.clone(),
        None => results::beside(global, report::PAGE)?,
    };
    // A measurement is too dear to be lost to a drawing: the tables are printed and the reason is told.
    let told = |what: &str, failure: Failure| {
        if let Failure::Because(_, why) = failure {
            output::hint(global, &format!("{what} was not written: {why}"));
        }
    };
    let page = match report::write_page(document, &page) {
        Ok(()) => Some(page),
        // What the user named must be there.
        Err(failure) if args.out.is_some() => return Err(failure),
        Err(failure) => {
            told("the page", failure);
            None
        }
    };
    let written = settings::write(&document.runs, results::beside(global, settings::NAME)?);
    Ok(Files {
        database: Some(results::path(global)?),
        page,
        settings: written.unwrap_or_else(|failure| {
            told("the settings file", failure);
            None
        }),
    })
}

fn show(global: &Global, document: &Document, files: &Files, out: &mut dyn Write) -> Outcome {
    let list = [
        ("results", &files.database),
        ("page", &files.page),
        ("settings", &files.settings),
    ];
    if global.json {
        let mut json = crate::report::json(document);
        if let Some(object) = json.as_object_mut() {
            let files: serde_json::Map<_, _> = list
                .iter()
                .map(|(name, path)| ((*name).to_owned(), serde_json::json!(path)))
                .collect();
            object.insert("files".to_owned(), files.into());
        }
        return print_json(out, &json);
    }
    crate::report::terminal(document, &output::style(global), out)?;
    if files.database.is_some() {
        writeln!(out)?;
    }
    for (name, path) in list {
        if let Some(path) = path {
            writeln!(out, "{name:<8} {}", path.display())?;
        }
    }
    Ok(())
}

/// `--fail-on missed`.
fn judge(document: &Document) -> Outcome {
    let goals = || document.runs.iter().flat_map(|(_, a)| &a.goals);
    let count = |wanted: &[GoalState]| goals().filter(|g| wanted.contains(&g.state)).count();
    let all = goals().count();
    let missed = count(&[GoalState::Missed]);
    if missed > 0 {
        return Err(Failure::Because(
            Code::Condition,
            format!("{missed} of {all} goals are missed"),
        ));
    }
    let open = count(&[GoalState::Open, GoalState::Skipped]);
    if open > 0 || all == 0 {
        return Err(Failure::Because(
            Code::Inconclusive,
            format!("{open} of {all} goals are open; take more rounds with --full"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::args::{Cli, Command};
    use super::*;

    #[test]
    fn the_stored_command_line_gives_the_same_options_again() {
        let asked = Options {
            time_cap: Some(Duration::from_millis(61_500)),
            max_rounds: Some(7),
            until_stable: true,
            groups: vec!["--odd name".to_owned()],
            contestants: vec!["a".to_owned(), "b".to_owned()],
            ..Options::new(Depth::Full, u64::MAX)
        };
        let cli = Cli::try_parse_from(argv("e", &asked)).unwrap();
        let Command::Measure(args) = cli.command else {
            panic!("not measure");
        };
        assert_eq!(args.experiments, ["e"]);
        let again = options(&args);
        assert_eq!(format!("{asked:?}"), format!("{again:?}"));
    }

    #[test]
    fn time_is_shared_by_need_and_what_is_left_over_goes_on() {
        let s = Duration::from_secs;
        assert_eq!(share(s(90), &[s(10), s(20)]), s(30));
        assert_eq!(share(s(90), &[s(20)]), s(90));
        assert_eq!(share(s(90), &[s(0), s(0)]), s(45));
        assert_eq!(share(s(0), &[s(1)]), s(0));
    }

    #[test]
    fn only_a_full_run_on_a_noisy_machine_without_leave_is_refused() {
        let noisy = NoiseRecord {
            noisy: true,
            ..NoiseRecord::default()
        };
        assert!(refused(&noisy, true, false));
        assert!(!refused(&noisy, true, true));
        assert!(!refused(&noisy, false, false));
        assert!(!refused(&NoiseRecord::default(), true, false));
    }
}
