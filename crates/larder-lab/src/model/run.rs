//! The record of one run of the lab: what it was asked, on what machine, and every sample in order.

use serde::{Deserialize, Serialize};

use super::{Cell, MachineRecord, Measures, NoiseRecord};

/// One run of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The group that the cell belongs to.
    pub group: String,
    /// What ran.
    pub cell: Cell,
    /// Number of the round, from 0; samples of one round are a pair.
    pub round: u32,
    /// Place within the round, from 0: the order is random and kept.
    pub slot: u32,
    /// Microseconds since the run began.
    pub at_us: u64,
    /// What it yielded.
    pub measures: Measures,
}

/// Why a group stopped taking rounds. Significance is never a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Every interval is as narrow as was asked.
    Precise,
    /// The planned number of rounds was reached.
    Rounds,
    /// The interval stopped narrowing from look to look.
    NoiseSteady,
    /// The time cap was reached.
    TimeCap,
    /// The user interrupted; finished rounds are kept.
    Interrupted,
    /// No cell of the group could run.
    NothingToRun,
}

/// How a group ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// Name of the group.
    pub name: String,
    /// The cell that the others are compared with.
    pub reference: Cell,
    /// The metric by which precision is judged.
    pub metric: String,
    /// Complete rounds.
    pub rounds: u32,
    /// Why it stopped.
    pub stopped: StopReason,
}

/// A contestant that did not run, and the sentence that says what to install or change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Contestant or row.
    pub what: String,
    /// Why, and what to do about it.
    pub why: String,
}

/// One experiment in one run of the lab: enough to repeat it and to analyse it again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of this record's layout.
    pub schema: u32,
    /// Identifier: a hash of the content, so that importing twice changes nothing.
    pub id: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Start, RFC 3339, UTC.
    pub started: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// Version of larder.
    pub version: String,
    /// The command line that repeats it.
    pub argv: Vec<String>,
    /// Seed of the order of the rounds and of the workloads.
    pub seed: u64,
    /// `quick` or `full`.
    pub depth: String,
    /// The machine.
    pub machine: MachineRecord,
    /// What disturbed it.
    pub noise: NoiseRecord,
    /// How each group ended.
    pub groups: Vec<GroupRecord>,
    /// What did not run and why.
    pub skipped: Vec<Skipped>,
    /// Every sample, in the order in which it was taken.
    pub samples: Vec<Sample>,
}
