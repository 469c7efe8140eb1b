//! Sweeps in parts, for batch engines: each of n machines does every n-th cell, and the parts are merged.

use serde::{Deserialize, Serialize};

use super::row::Row;

/// The plan of a whole sweep. Equal words give equal plans, on any machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Traces, as named.
    pub traces: Vec<String>,
    /// Rules.
    pub policies: Vec<String>,
    /// Sizes, as written.
    pub sizes: Vec<String>,
    /// Everything that says how traces are read.
    pub reading: String,
}

/// One cell of a plan: numbers of trace, size and rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedCell {
    /// Its number in the plan.
    pub cell: usize,
    /// Which trace.
    pub trace: usize,
    /// Which size.
    pub size: usize,
    /// Which rule.
    pub policy: usize,
}

impl Plan {
    /// All cells, in the order in which a single process gives its rows: traces, sizes, rules.
    pub fn cells(&self) -> impl Iterator<Item = PlannedCell> + use<> {
        let (sizes, policies) = (self.sizes.len(), self.policies.len());
        let all = self.traces.len() * sizes * policies;
        (0..all).map(move |cell| PlannedCell {
            cell,
            trace: cell / (sizes * policies),
            size: cell / policies % sizes,
            policy: cell % policies,
        })
    }

    /// The cells of shard `shard` (from 1) of `shards`: every `shards`-th, so that slow rules are spread.
    pub fn shard(&self, shard: u32, shards: u32) -> impl Iterator<Item = PlannedCell> + use<> {
        self.cells()
            .filter(move |c| c.cell % shards as usize + 1 == shard as usize)
    }

    /// A number that differs where plans or versions of larder differ (rules may change between versions): FNV-1a of the plan as JSON.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let text = serde_json::to_string(self).unwrap_or_default();
        let version = env!("CARGO_PKG_VERSION");
        text.bytes()
            .chain(version.bytes())
            .fold(0xcbf2_9ce4_8422_2325, |sum, b| {
                (sum ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
            })
    }
}

/// First line of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of this layout.
    pub larder_sim_part: u32,
    /// [`Plan::fingerprint`].
    pub plan: u64,
    /// Which shard, from 1.
    pub shard: u32,
    /// Of how many.
    pub shards: u32,
    /// Cells of the whole plan.
    pub cells: usize,
}

/// Further lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Number of the cell in the plan.
    pub cell: usize,
    /// Its result.
    pub row: Row,
}

/// The text of a part.
///
/// # Errors
/// What serde says; it does not happen with rows that a simulation made.
pub fn write_part(header: &Header, lines: &[Line]) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string(header)?;
    text.push('\n');
    for line in lines {
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
    }
    Ok(text)
}
