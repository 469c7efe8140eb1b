//! The experiments of one session, one after the other, each with its share of the time.

use std::io::Write;
use std::time::{Duration, Instant};

use super::super::failure::Failure;
use super::super::global::Global;
use super::super::{output, results};
use super::line;
use super::resume::{self, Earlier};
use crate::measure::{Bar, Experiment, Interrupt, Options, OwnProcess, Progress, Runner, Silent};
use crate::model::{Analysis, GoalState, MachineRecord, RunRecord, StopReason};
use crate::report::number;
use crate::store::{Broken, Store};

/// Runs the experiments one after the other, each with its share of the time, and stores each at its end, with what is
/// left of all. Those that `earlier` has done are not run again.
pub(super) fn take(
    global: &Global,
    experiments: &[Box<dyn Experiment>],
    options: &Options,
    machine: &MachineRecord,
    interrupt: &Interrupt,
    store: &mut Option<Store>,
    earlier: Earlier,
) -> Result<Vec<(RunRecord, Analysis)>, Failure> {
    let begin = Instant::now();
    let Earlier {
        mut key,
        mut left,
        runs,
        mut broken,
    } = earlier;
    let before = Duration::try_from_secs_f64(left.seconds).unwrap_or_default();
    let spent = || before + begin.elapsed();
    let mut runs: Vec<(RunRecord, Analysis)> = runs
        .into_iter()
        .map(|run| {
            let analysis = results::analyse(&run);
            (run, analysis)
        })
        .collect();
    // An experiment that was named twice is done when both are.
    let mut done: Vec<&str> = left.done.iter().map(|(name, _)| name.as_str()).collect();
    let mut todo: Vec<&dyn Experiment> = experiments.iter().map(AsRef::as_ref).collect();
    todo.retain(|e| {
        let place = done.iter().position(|name| *name == e.name());
        place.map(|i| done.remove(i)).is_none()
    });
    let needs: Vec<Duration> = todo
        .iter()
        .map(|e| need(*e, &options.of(*e), machine))
        .collect();
    let guesses: Vec<Duration> = todo
        .iter()
        .map(|e| {
            let own = options.of(*e);
            own.guess(&own.plan(*e, machine))
        })
        .collect();
    for (i, experiment) in todo.iter().copied().enumerate() {
        if interrupt.asked() {
            break;
        }
        let begun = broken.take_if(|(run, _)| run.experiment == experiment.name());
        let own = match &begun {
            Some((_, options)) => options.clone(),
            None => {
                let cap = |cap: Duration| share(cap.saturating_sub(spent()), &needs[i..]);
                let own = Options {
                    time_cap: options.time_cap.map(cap),
                    ..options.of(experiment)
                };
                let words = own.own_words(experiment, machine);
                let argv = line::argv(&[experiment.name()], &words);
                Options { argv, ..own }
            }
        };
        let mut launcher = OwnProcess::new(interrupt).map_err(Failure::io)?;
        let (mut bar, mut silent) = (Bar::new(), Silent);
        let progress: &mut dyn Progress = if global.quiet { &mut silent } else { &mut bar };
        let later = guesses[i + 1..]
            .iter()
            .fold(Duration::ZERO, |sum, g| sum.saturating_add(*g));
        let rest = options.time_cap.map_or(later, |all| {
            let own = own.time_cap.unwrap_or_default();
            later.min(all.saturating_sub(spent()).saturating_sub(own))
        });
        let (number, of) = (experiments.len() - todo.len() + i + 1, experiments.len());
        progress.place(number, of, rest);
        let runner = Runner::new(&mut launcher, progress, interrupt);
        let instead = begun.as_ref().map(|(run, _)| run.id.clone());
        let run = match begun {
            Some((begun, _)) => runner.resume(experiment, begun, &own),
            None => runner.run(experiment, machine, &own),
        };
        let stored = Some(&run).filter(|run| !run.samples.is_empty());
        if let Some(store) = store {
            let id = stored.map(|run| run.id.clone());
            left.seconds = spent().as_secs_f64();
            if run
                .groups
                .iter()
                .any(|g| g.stopped == StopReason::Interrupted)
            {
                let plan = resume::plan(experiment, &own, &run.machine);
                left.broken = id.map(|run| Broken { run, plan });
            } else {
                left.broken = None;
                left.done.push((experiment.name().to_owned(), id));
            }
            let more = left.done.len() < experiments.len();
            if more && left.program.is_empty() {
                left.program = resume::program();
            }
            key = store.put_part(stored, instead.as_deref(), key, more.then_some(&left))?;
        }
        let analysis = results::analyse(&run);
        if !global.quiet {
            let line = format!(
                "{number} of {of}, {}: {}",
                experiment.name(),
                result(&analysis)
            );
            // Stderr may be closed.
            let _ = writeln!(std::io::stderr(), "{}", output::plain(&line));
        }
        runs.push((run, analysis));
    }
    if key.is_some() && interrupt.asked() {
        output::hint(global, "`larder measure --continue` takes the rest");
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

/// The share of the remaining time that the first experiment gets, by the needs of all that remain.
fn share(left: Duration, needs: &[Duration]) -> Duration {
    let sum: f64 = needs.iter().map(Duration::as_secs_f64).sum();
    let first = needs.first().map_or(0.0, Duration::as_secs_f64);
    if sum > 0.0 {
        left.mul_f64((first / sum).clamp(0.0, 1.0))
    } else {
        left / u32::try_from(needs.len().max(1)).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shared_by_need_and_what_is_left_over_goes_on() {
        let s = Duration::from_secs;
        assert_eq!(share(s(90), &[s(10), s(20)]), s(30));
        assert_eq!(share(s(90), &[s(20)]), s(90));
        assert_eq!(share(s(90), &[s(0), s(0)]), s(45));
        assert_eq!(share(s(0), &[s(1)]), s(0));
    }
}
