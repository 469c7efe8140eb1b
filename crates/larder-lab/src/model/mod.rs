//! The types that all other modules share. Nothing here measures, stores or draws.

mod analysis;
mod cell;
mod machine;
mod run;

pub use analysis::{
    Analysis, Axis, Block, Chart, Cost, Finding, Goal, GoalState, Point, Provenance,
    Recommendation, Scale, Section, Series, ShortAnswer, Table, TableRow, Value,
};
pub use cell::{Better, Cell, Factor, Measures, Metric, Params};
pub use machine::{Field, MachineRecord, NoiseRecord};
pub use run::{
    GroupRecord, NOISY_PERCENT, NOISY_SHARE, OTHERS, RunRecord, Sample, Skipped, StopReason,
};
