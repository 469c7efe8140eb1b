//! The experiments of one session, one after the other, each with its share of the time.

use std::io::Write;
use std::time::{Duration, Instant};

use super::super::args::Global;
use super::super::failure::Failure;
use super::super::{output, results};
use crate::measure::{Bar, Experiment, Interrupt, Options, OwnProcess, Progress, Runner, Silent};
use crate::model::{Analysis, GoalState, MachineRecord, RunRecord};
use crate::report::number;
use crate::store::Store;

/// Runs the experiments one after the other, each with its share of the time, and stores each at its end.
pub(super) fn take(
    global: &Global,
    experiments: &[Box<dyn Experiment>],
    options: &Options,
    machine: &MachineRecord,
    interrupt: &Interrupt,
    store: &mut Option<Store>,
) -> Result<Vec<(RunRecord, Analysis)>, Failure> {
    let begin = Instant::now();
    let needs: Vec<Duration> = experiments
        .iter()
        .map(|e| need(e.as_ref(), &options.of(e.as_ref()), machine))
        .collect();
    let guesses: Vec<Duration> = experiments
        .iter()
        .map(|e| {
            let own = options.of(e.as_ref());
            own.guess(&own.plan(e.as_ref(), machine))
        })
        .collect();
    let mut runs = Vec::new();
    for (i, experiment) in experiments.iter().enumerate() {
        if interrupt.asked() {
            break;
        }
        let cap = options
            .time_cap
            .map(|cap| share(cap.saturating_sub(begin.elapsed()), &needs[i..]));
        let mut own = Options {
            time_cap: cap,
            ..options.of(experiment.as_ref())
        };
        own.argv = argv(
            experiment.name(),
            &own.own_words(experiment.as_ref(), machine),
        );
        let mut launcher = OwnProcess::new(interrupt).map_err(Failure::io)?;
        let (mut bar, mut silent) = (Bar::new(), Silent);
        let progress: &mut dyn Progress = if global.quiet { &mut silent } else { &mut bar };
        let later = guesses[i + 1..]
            .iter()
            .fold(Duration::ZERO, |sum, g| sum.saturating_add(*g));
        let rest = options.time_cap.map_or(later, |all| {
            let own = cap.unwrap_or_default();
            later.min(all.saturating_sub(begin.elapsed()).saturating_sub(own))
        });
        progress.place(i + 1, experiments.len(), rest);
        let run =
            Runner::new(&mut launcher, progress, interrupt).run(experiment.as_ref(), machine, &own);
        if let Some(store) = store.as_mut().filter(|_| !run.samples.is_empty()) {
            store.put(&run)?;
        }
        let analysis = results::analyse(&run);
        if !global.quiet {
            let place = format!("{} of {}", i + 1, experiments.len());
            let line = format!("{place}, {}: {}", experiment.name(), result(&analysis));
            // Nobody may be reading.
            let _ = writeln!(std::io::stderr(), "{}", output::plain(&line));
        }
        runs.push((run, analysis));
    }
    Ok(runs)
}

/// What an experiment found, in one line: an answer, else a cost, else its goals.
fn result(a: &Analysis) -> String {
    if let Some(answer) = a.answers.first() {
        return format!("{} {}", answer.question, answer.answer);
    }
    if let Some((cost, larder)) = a.costs.iter().find_map(|c| Some((c, c.larder?))) {
        return format!("{} {}", cost.what, number::number(larder, &cost.unit));
    }
    let count = |state| a.goals.iter().filter(|g| g.state == state).count();
    match (count(GoalState::Met), count(GoalState::Missed)) {
        (0, 0) => format!("done, {} findings", a.findings.len()),
        (hold, missed) => format!("{hold} goals hold, {missed} missed"),
    }
}

/// What an experiment needs for every group to have the rounds that an interval takes, by its own guess.
///
/// Time is shared by this and not by what the experiments could use at most: on a machine slower than the guess,
/// the one that asks for no more than it needs would get the least.
fn need(experiment: &dyn Experiment, options: &Options, machine: &MachineRecord) -> Duration {
    options
        .plan(experiment, machine)
        .groups
        .iter()
        .map(|g| {
            g.round_guess
                .saturating_mul(g.min_rounds.min(options.rounds_of(g)))
        })
        .fold(Duration::ZERO, Duration::saturating_add)
}

/// The first one's part of the time that is left, by the needs of all that are left.
fn share(left: Duration, needs: &[Duration]) -> Duration {
    let sum: f64 = needs.iter().map(Duration::as_secs_f64).sum();
    let first = needs.first().map_or(0.0, Duration::as_secs_f64);
    if sum > 0.0 {
        left.mul_f64((first / sum).clamp(0.0, 1.0))
    } else {
        left / u32::try_from(needs.len().max(1)).unwrap_or(1)
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
    argv.extend(options.factors.iter().map(|f| format!("--where={f}")));
    argv
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::super::args::{Cli, Command};
    use super::super::options;
    use super::*;
    use crate::measure::Depth;

    #[test]
    fn the_stored_command_line_gives_the_same_options_again() {
        let asked = Options {
            time_cap: Some(Duration::from_millis(61_500)),
            max_rounds: Some(7),
            until_stable: true,
            groups: vec!["--odd name".to_owned()],
            contestants: vec!["a".to_owned(), "b".to_owned()],
            factors: vec!["pages=1,2".parse().unwrap()],
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
}
