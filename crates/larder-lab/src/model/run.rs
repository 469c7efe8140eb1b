//! The record of one run of the lab: its options, its machine, and every sample in order.

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

/// The measure of a sample that says what share of its CPU time others took, percent.
pub const OTHERS: &str = "proc.others_percent";

/// A sample is noisy above this. A quick run stops at a half width of 5 %, so a sample that others made longer by more
/// can decide what a quick run calls faster; on a quiet machine the measure is near zero.
pub const NOISY_PERCENT: f64 = 5.0;

/// A verdict, a group and a run are noisy where more than this share of their samples is: medians and signed ranks
/// withstand fewer.
pub const NOISY_SHARE: f64 = 0.25;

impl Sample {
    /// Whether it was taken while others used the CPU. Unknown counts as quiet.
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        self.measures.get(OTHERS).is_some_and(|p| p > NOISY_PERCENT)
    }
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
    /// Every sample, in the order in which it was taken; a round that was repeated stands in the place of the first.
    pub samples: Vec<Sample>,
}

impl RunRecord {
    /// Whether the machine was too noisy for a setting to rest on the run, and in what: the whole run, or one group of
    /// which more than a quarter of the samples is noisy.
    #[must_use]
    pub fn noise_reason(&self) -> Option<String> {
        if let Some(warning) = self.noise.warnings.first().filter(|_| self.noise.noisy) {
            return Some(warning.clone());
        }
        if self.noise.noisy {
            return Some("The machine was noisy.".to_owned());
        }
        let noisy = |group: &str| {
            let of = || self.samples.iter().filter(|s| s.group == group);
            let marked = of().filter(|s| s.is_noisy()).count();
            marked as f64 > NOISY_SHARE * of().count() as f64
        };
        let group = self.groups.iter().find(|g| noisy(&g.name))?;
        Some(format!(
            "Other programs disturbed more than a quarter of the samples of group {}.",
            group.name
        ))
    }
}
