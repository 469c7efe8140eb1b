//! Rounds: every cell of a group once, in a fresh random order, groups in turn.

use std::fmt;
use std::time::{Duration, Instant};

use super::stop::Rule;
use super::{
    Experiment, Group, Interrupt, LaunchError, Launcher, Options, Plan, Progress, permutation,
};
use crate::machine::{self, NoiseMeter};
use crate::model::{
    Cell, GroupRecord, MachineRecord, NoiseRecord, RunRecord, Sample, Skipped, StopReason,
};
use crate::store;

/// Takes the samples of an experiment.
///
/// The launcher is a seam: the program runs each cell in a fresh process ([`super::OwnProcess`]), tests and
/// library users may run them in their own ([`super::InProcess`]).
///
/// ```
/// use larder_lab::measure::{InProcess, Interrupt, Runner, Silent};
/// let (mut launcher, mut progress, interrupt) = (InProcess, Silent, Interrupt::new());
/// let runner = Runner::new(&mut launcher, &mut progress, &interrupt);
/// # let _ = runner;
/// ```
pub struct Runner<'a> {
    launcher: &'a mut dyn Launcher,
    progress: &'a mut dyn Progress,
    interrupt: &'a Interrupt,
    clock: Box<dyn Fn() -> Duration + 'a>,
    // What an interrupted run took before this one goes on with it.
    before: Duration,
    noise: NoiseMeter,
}

impl fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

/// A group on its way.
struct Live {
    group: Group,
    // With the twin, without what failed.
    cells: Vec<Cell>,
    rounds: u32,
    max_rounds: u32,
    last_round: Duration,
    stopped: Option<StopReason>,
    rule: Rule,
}

impl Live {
    fn new(group: Group, max_rounds: u32) -> Self {
        let mut cells = group.cells.clone();
        if !cells.contains(&group.reference) {
            cells.insert(0, group.reference.clone());
        }
        cells.push(group.reference.as_twin());
        Self {
            rule: Rule::new(&group, max_rounds),
            group,
            cells,
            rounds: 0,
            max_rounds,
            last_round: Duration::ZERO,
            stopped: None,
        }
    }

    fn record(&self) -> GroupRecord {
        GroupRecord {
            name: self.group.name.clone(),
            reference: self.group.reference.clone(),
            metric: self.group.metric.to_owned(),
            rounds: self.rounds,
            stopped: self.stopped.unwrap_or(StopReason::Interrupted),
        }
    }

    /// Goes on where an interrupted run ended: without the cells that failed in it, and with what its looks have seen.
    fn restore(&mut self, record: &RunRecord) {
        let name = &self.group.name;
        let Some(then) = record.groups.iter().find(|g| g.name == *name) else {
            return;
        };
        let failed: Vec<String> = record.skipped.iter().map(|s| s.what.clone()).collect();
        self.cells
            .retain(|cell| !failed.contains(&left_out(name, cell)));
        for rounds in 1..=then.rounds {
            self.rule.decide(name, rounds, &self.cells, &record.samples);
        }
        self.rounds = then.rounds;
        self.stopped = Some(then.stopped).filter(|s| *s != StopReason::Interrupted);
    }
}

/// The name of a failed cell in the list of skipped ones.
fn left_out(group: &str, cell: &Cell) -> String {
    format!("{group}: {cell}")
}

impl<'a> Runner<'a> {
    /// A runner whose clock starts now.
    pub fn new(
        launcher: &'a mut dyn Launcher,
        progress: &'a mut dyn Progress,
        interrupt: &'a Interrupt,
    ) -> Self {
        let begin = Instant::now();
        Self {
            launcher,
            progress,
            interrupt,
            clock: Box::new(move || begin.elapsed()),
            before: Duration::ZERO,
            noise: NoiseMeter::of_this_machine(),
        }
    }

    /// Replaces the clock: a function that tells the time since the run began.
    #[must_use]
    pub fn with_clock(mut self, elapsed: impl Fn() -> Duration + 'a) -> Self {
        self.clock = Box::new(elapsed);
        self
    }

    /// Replaces the reader of pressure and steal.
    #[must_use]
    pub fn with_noise(mut self, noise: NoiseMeter) -> Self {
        self.noise = noise;
        self
    }

    fn elapsed(&self) -> Duration {
        self.before + (self.clock)()
    }

    /// Runs an experiment and returns its record. A cell that fails is reported as skipped and left out of
    /// later rounds; only complete rounds are kept.
    #[must_use]
    pub fn run(
        mut self,
        experiment: &dyn Experiment,
        machine: &MachineRecord,
        options: &Options,
    ) -> RunRecord {
        let plan = options.plan(experiment, machine);
        let begun = RunRecord {
            schema: store::SCHEMA,
            experiment: experiment.name().to_owned(),
            started: now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            argv: options.argv.clone(),
            seed: options.seed,
            depth: options.depth.name().to_owned(),
            machine: machine.clone(),
            skipped: plan.skipped.clone(),
            ..RunRecord::default()
        };
        self.complete(experiment, options, plan, begun)
    }

    /// Takes the rounds that an interrupted run lacks, and returns the whole run: the same groups in the same orders,
    /// stopped by the same rule. Options, machine and program must be those of the beginning.
    #[must_use]
    pub fn resume(
        mut self,
        experiment: &dyn Experiment,
        mut begun: RunRecord,
        options: &Options,
    ) -> RunRecord {
        let plan = options.plan(experiment, &begun.machine);
        self.before = Duration::try_from_secs_f64(begun.seconds).unwrap_or_default();
        begun.skipped.retain(|s| s.why != BEFORE_THE_FIRST);
        self.complete(experiment, options, plan, begun)
    }

    /// Takes what a record lacks of its plan.
    fn complete(
        &mut self,
        experiment: &dyn Experiment,
        options: &Options,
        plan: Plan,
        mut record: RunRecord,
    ) -> RunRecord {
        let guess = options.guess(&plan).saturating_sub(self.before);
        self.progress.begin(experiment.name(), guess);
        let live = |group: Group, begun: &RunRecord| {
            let max = options.rounds_of(&group);
            let mut live = Live::new(group, max);
            live.restore(begun);
            live
        };
        let planned = plan.groups.into_iter();
        let mut groups: Vec<Live> = planned.map(|group| live(group, &record)).collect();
        let mut samples = std::mem::take(&mut record.samples);
        self.rounds(
            experiment,
            &options.until(plan.until),
            &mut groups,
            &mut samples,
            &mut record.skipped,
        );
        let begun = std::mem::take(&mut record.groups);
        for stage in 0.. {
            record.samples = samples;
            record.groups = groups.iter().map(Live::record).collect();
            let mut plan = experiment.afresh(&options.request(&record.machine), &record, stage);
            options.narrow(&mut plan);
            let now = self.elapsed();
            let left = options
                .time_cap
                .map_or(Duration::MAX, |cap| cap.saturating_sub(now));
            self.progress.more(now, options.guess(&plan).min(left));
            // What runs afresh follows from the samples before it alone, so a run that goes on comes to the same cells.
            record.groups.clone_from(&begun);
            let afresh = plan.groups.into_iter();
            let mut afresh: Vec<Live> = afresh.map(|group| live(group, &record)).collect();
            samples = std::mem::take(&mut record.samples);
            if afresh.is_empty() {
                break;
            }
            self.rounds(
                experiment,
                &options.until(plan.until),
                &mut afresh,
                &mut samples,
                &mut record.skipped,
            );
            groups.extend(afresh);
        }
        let skipped = &mut record.skipped;
        let repeats = self.repeat_noisy(experiment, options, &mut groups, &mut samples);
        self.progress.end();
        report_empty(&groups, skipped);
        record.noise = self.whole_noise(&record.noise);
        record.noise.warnings.extend(repeats.sentence());
        record.seconds = self.elapsed().as_secs_f64();
        record.samples = samples;
        record.groups = groups.iter().map(Live::record).collect();
        record.id = store::id_of(&record);
        record
    }

    /// Rounds of all groups in turn, until each has ended.
    fn rounds(
        &mut self,
        experiment: &dyn Experiment,
        options: &Options,
        groups: &mut [Live],
        samples: &mut Vec<Sample>,
        skipped: &mut Vec<Skipped>,
    ) {
        while groups.iter().any(|g| g.stopped.is_none()) {
            for live in groups.iter_mut().filter(|g| g.stopped.is_none()) {
                live.stopped = self.turn(experiment, options, live, samples, skipped);
            }
        }
    }

    /// The noise of this run, with that of the part before an interruption.
    fn whole_noise(&self, early: &NoiseRecord) -> NoiseRecord {
        let late = self.noise.finish();
        if self.before.is_zero() {
            return late;
        }
        let (before, here) = (self.before.as_secs_f64(), (self.clock)().as_secs_f64());
        let mut whole = machine::joined(early, before, &late, here);
        let earlier = early.warnings.iter().filter(|w| w.starts_with(CONTINUED));
        whole.warnings.extend(earlier.cloned());
        let sentence = format!(
            "{CONTINUED} after {before:.0} s of measuring, at {}.",
            now()
        );
        whole.warnings.push(sentence);
        whole
    }

    /// One round of one group, and whether it was the last.
    fn turn(
        &mut self,
        experiment: &dyn Experiment,
        options: &Options,
        live: &mut Live,
        samples: &mut Vec<Sample>,
        skipped: &mut Vec<Skipped>,
    ) -> Option<StopReason> {
        if self.interrupt.asked() {
            return Some(StopReason::Interrupted);
        }
        if live.rounds >= live.max_rounds {
            return Some(StopReason::Rounds);
        }
        let begin = self.elapsed();
        // A round that would not end in time is not begun: its samples would be thrown away.
        if options
            .time_cap
            .is_some_and(|cap| begin + live.last_round >= cap)
        {
            return Some(StopReason::TimeCap);
        }
        let complete = samples.len();
        if let Err(reason) = self.round(experiment, options, live, samples, skipped) {
            samples.truncate(complete);
            return Some(reason);
        }
        if samples.len() == complete {
            return Some(StopReason::NothingToRun);
        }
        live.rounds += 1;
        live.last_round = self.elapsed().saturating_sub(begin);
        live.rule
            .decide(&live.group.name, live.rounds, &live.cells, samples)
    }

    /// Takes the rounds again that others disturbed, when every group has ended and while time is left. A round is
    /// repeated as a whole, because its samples are pairs, and the quieter of the two is kept.
    fn repeat_noisy(
        &mut self,
        experiment: &dyn Experiment,
        options: &Options,
        groups: &mut [Live],
        samples: &mut Vec<Sample>,
    ) -> Repeats {
        let mut repeats = Repeats::default();
        // While the machine stays busy, more rounds cost time without a gain.
        let mut in_vain = 0;
        for live in groups.iter_mut() {
            for round in 0..live.rounds {
                let before = noisy_cells(samples, &live.group.name, round);
                if before == 0 {
                    continue;
                }
                if in_vain < IN_VAIN && self.repeat(experiment, options, live, round, samples) {
                    let after = noisy_cells(samples, &live.group.name, round);
                    repeats.taken += 1;
                    in_vain = if after < before { 0 } else { in_vain + 1 };
                }
                if noisy_cells(samples, &live.group.name, round) > 0 {
                    repeats.left += 1;
                }
            }
        }
        repeats
    }

    /// Takes one round again; false where there was no time for it, or not all of its cells ran.
    fn repeat(
        &mut self,
        experiment: &dyn Experiment,
        options: &Options,
        live: &mut Live,
        round: u32,
        samples: &mut Vec<Sample>,
    ) -> bool {
        let begin = self.elapsed();
        let late = options
            .time_cap
            .is_some_and(|cap| begin + live.last_round >= cap);
        let of_round = |s: &Sample| s.group == live.group.name && s.round == round;
        // A cell that failed later has a sample in this round that a repeat would lose.
        let whole = samples.iter().filter(|s| of_round(s)).count() == live.cells.len();
        if late || !whole || self.interrupt.asked() {
            return false;
        }
        // In the order of the first time: the seed alone decides it.
        let rounds = live.rounds;
        live.rounds = round;
        let (mut again, cells) = (Vec::new(), live.cells.clone());
        let ended = self.round(experiment, options, live, &mut again, &mut Vec::new());
        live.rounds = rounds;
        if ended.is_err() || again.len() != cells.len() {
            live.cells = cells;
            return false;
        }
        let marked = again.iter().filter(|s| s.is_noisy()).count();
        if marked < noisy_cells(samples, &live.group.name, round) {
            let of_round = |s: &Sample| s.group == live.group.name && s.round == round;
            let place = samples.iter().position(of_round).unwrap_or(samples.len());
            samples.retain(|s| !(s.group == live.group.name && s.round == round));
            samples.splice(place..place, again);
        }
        true
    }

    /// Every remaining cell once. `Err` is why the round was broken off.
    fn round(
        &mut self,
        experiment: &dyn Experiment,
        options: &Options,
        live: &mut Live,
        samples: &mut Vec<Sample>,
        skipped: &mut Vec<Skipped>,
    ) -> Result<(), StopReason> {
        let order = permutation(
            options.seed,
            &live.group.name,
            live.rounds,
            live.cells.len(),
        );
        let mut failed = Vec::new();
        for (slot, index) in order.into_iter().enumerate() {
            let cell = &live.cells[index];
            let at = self.elapsed();
            if self.interrupt.asked() {
                return Err(StopReason::Interrupted);
            }
            let left = options.time_cap.map(|cap| cap.saturating_sub(at));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(StopReason::TimeCap);
            }
            let limit = left.map_or(options.cell_limit, |left| left.min(options.cell_limit));
            self.progress
                .cell(&live.group.name, live.rounds, &cell.to_string(), at);
            self.noise.cell_begins();
            let outcome = self.launcher.launch(experiment, cell, limit);
            match outcome {
                Ok(measures) => {
                    let measures = self
                        .noise
                        .cell_ends(self.elapsed().saturating_sub(at), measures);
                    samples.push(Sample {
                        group: live.group.name.clone(),
                        cell: cell.clone(),
                        round: live.rounds,
                        slot: u32::try_from(slot).unwrap_or(u32::MAX),
                        at_us: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
                        measures,
                    });
                }
                // Ended by the cap of the whole run, not by its own limit: the cell is not to blame.
                Err(LaunchError::TooLong(_)) if limit < options.cell_limit => {
                    return Err(StopReason::TimeCap);
                }
                Err(why) => {
                    let what = left_out(&live.group.name, cell);
                    self.progress.note(&format!("{what} left out: {why}"));
                    skipped.push(Skipped {
                        what,
                        why: match live.rounds {
                            0 => why.to_string(),
                            r => format!("after {r} rounds: {why}"),
                        },
                    });
                    failed.push(cell.clone());
                }
            }
        }
        live.cells.retain(|c| !failed.contains(c));
        Ok(())
    }
}

/// Repeats in succession that were no quieter, after which no more are taken.
const IN_VAIN: u32 = 3;

/// The outcome for rounds that other programs disturbed.
#[derive(Debug, Default)]
struct Repeats {
    taken: u32,
    left: u32,
}

impl Repeats {
    fn sentence(&self) -> Option<String> {
        (self.taken + self.left > 0).then(|| {
            format!(
                "Other programs disturbed rounds of this run: {} repeated, {} still disturbed. A comparison that rests \
                 on them is refused.",
                self.taken, self.left
            )
        })
    }
}

/// The samples of a round that others disturbed.
fn noisy_cells(samples: &[Sample], group: &str, round: u32) -> usize {
    let of_round = |s: &&Sample| s.group == group && s.round == round;
    samples
        .iter()
        .filter(of_round)
        .filter(|s| s.is_noisy())
        .count()
}

/// Wall-clock time, RFC 3339, UTC.
fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// How the sentence about a continued run begins.
const CONTINUED: &str = "This run was interrupted and continued";

/// Why a group is empty that the user interrupted.
const BEFORE_THE_FIRST: &str = "interrupted before its first round was complete";

/// A group without a complete round would be missing from the report in silence.
fn report_empty(groups: &[Live], skipped: &mut Vec<Skipped>) {
    for live in groups.iter().filter(|g| g.rounds == 0) {
        let why = match live.stopped {
            Some(StopReason::TimeCap) => {
                "no complete round fitted into the time; give more with --time-cap"
            }
            Some(StopReason::Interrupted) => BEFORE_THE_FIRST,
            Some(StopReason::Rounds) => "no rounds were asked for",
            _ => "none of its cells could run",
        };
        skipped.push(Skipped {
            what: live.group.name.clone(),
            why: why.to_owned(),
        });
    }
}
