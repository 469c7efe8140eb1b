//! The two traits of the lab: an experiment is one file, a contestant one type.

use std::time::Duration;

use crate::model::{Analysis, Cell, MachineRecord, Measures, Metric, Params, RunRecord, Skipped};

/// An implementation that is measured.
///
/// The lab calls [`run`](Contestant::run) in a fresh process, once per round, and the contestant times itself:
/// only it knows which part of its life counts.
pub trait Contestant: Sync {
    /// Unique within the experiment, for instance `cluster`.
    fn name(&self) -> &'static str;

    /// What it is, in one sentence, with the source of the method.
    fn about(&self) -> &'static str;

    /// Whether it can run here.
    ///
    /// # Errors
    /// One sentence that says what is missing and what to install or change.
    fn available(&self) -> Result<(), String> {
        Ok(())
    }

    /// Variables that its process must be started with, for instance `LD_PRELOAD`; only a launcher of processes can
    /// heed them.
    fn environment(&self, _params: &Params) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Does the work once and reports what it measured.
    ///
    /// # Errors
    /// Missing factors and failed system calls; the lab reports the cell as skipped.
    fn run(&self, params: &Params) -> anyhow::Result<Measures>;
}

/// How much time the user wants to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Small counts, few rounds, results marked exploratory.
    Quick,
    /// The document's own counts, and more rounds.
    Full,
}

impl Depth {
    /// `quick` or `full`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// What an experiment may look at when it plans.
#[derive(Debug)]
pub struct PlanRequest<'a> {
    /// Quick or full.
    pub depth: Depth,
    /// The machine.
    pub machine: &'a MachineRecord,
    /// Seed for workloads that draw numbers.
    pub seed: u64,
}

/// Cells that run in the same rounds and are compared with one reference.
#[derive(Debug, Clone)]
pub struct Group {
    /// Unique within the experiment.
    pub name: String,
    /// The cell that the others are compared with; it also runs as its own A/A twin.
    pub reference: Cell,
    /// The metric by which precision is judged.
    pub metric: &'static str,
    /// All cells, the reference included, the twin not.
    pub cells: Vec<Cell>,
    /// Rounds at least (6 for a 95 % interval of a median to exist).
    pub min_rounds: u32,
    /// Rounds at most.
    pub max_rounds: u32,
    /// Half width of the ratio's interval at which to stop, 0.05 is five percent.
    pub target: f64,
    /// Guess of the time that one round takes, for the plan and the progress bar.
    pub round_guess: Duration,
}

/// What an experiment wants to run.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// What cannot run here, and why.
    pub skipped: Vec<Skipped>,
    /// The share of the time cap after which no round of its groups begins, so that what follows from them has time, too; `None`
    /// is all of it.
    pub until: Option<f64>,
}

/// One question, with everything needed to ask it and to read the answer.
pub trait Experiment: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;
    /// Title of its page.
    fn title(&self) -> &'static str;
    /// The document that it answers.
    fn source(&self) -> &'static str;
    /// The question in one sentence.
    fn question(&self) -> &'static str;
    /// The metrics that its contestants report.
    fn metrics(&self) -> &'static [Metric];
    /// Its contestants.
    fn contestants(&self) -> Vec<Box<dyn Contestant>>;
    /// The groups that a run of all experiments has time for; `None` is all of them.
    fn brief(&self) -> Option<&'static [&'static str]> {
        None
    }
    /// Which cells to run.
    fn plan(&self, request: &PlanRequest<'_>) -> Plan;
    /// What to run after the plan and the stages before this one, because of what their samples say: the neighbours of the
    /// worst cells, or the worst cells once more, since the largest of many ratios is large by chance, too. A stage without
    /// groups is the last. It must not look at groups of its own or of later stages, which a run that goes on has already.
    fn afresh(&self, _request: &PlanRequest<'_>, _run: &RunRecord, _stage: usize) -> Plan {
        Plan::default()
    }
    /// What the samples say. A pure function of the record, so that a stored run can be read again.
    fn analyse(&self, run: &RunRecord) -> Analysis;
}
