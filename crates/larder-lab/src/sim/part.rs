//! Sweeps in parts, for batch engines: each of n machines does every n-th cell, and the parts are put together.

use serde::{Deserialize, Serialize};

use super::row::Row;

/// What a whole sweep is. Equal words give equal plans, on any machine.
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

    /// A number that differs where plans do, or versions of larder, whose rules may differ: FNV-1a of the plan as JSON.
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

/// Puts parts together: the rows in the order of the plan.
#[derive(Debug, Default)]
pub struct Merger {
    plan: Option<(u64, usize)>,
    rows: Vec<Option<Row>>,
    shards: Vec<u32>,
}

impl Merger {
    /// Adds a part, named for messages.
    ///
    /// # Errors
    /// A sentence with the line: no part, of another plan, a cell that is there with another result.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), String> {
        let mut lines = text.lines().enumerate();
        let first = lines.next().map(|(_, l)| l).unwrap_or_default();
        let header: Header = serde_json::from_str(first)
            .map_err(|e| format!("{name}, line 1: no part of a sweep: {e}"))?;
        if header.larder_sim_part != 1 {
            return Err(format!(
                "{name}: written by another version of larder (layout {})",
                header.larder_sim_part
            ));
        }
        if !(1..=header.shards).contains(&header.shard) {
            return Err(format!(
                "{name}, line 1: shard {} of {} cannot be; the part is damaged",
                header.shard, header.shards
            ));
        }
        match self.plan {
            None => {
                self.plan = Some((header.plan, header.cells));
                self.rows
                    .try_reserve_exact(header.cells)
                    .map_err(|_| format!("{name}: no memory for {} cells", header.cells))?;
                self.rows.resize(header.cells, None);
            }
            Some(plan) if plan != (header.plan, header.cells) => {
                return Err(format!(
                    "{name}: belongs to another sweep (other traces, rules, sizes or options) than the parts before it"
                ));
            }
            Some(_) => {}
        }
        self.shards.push(header.shard);
        let mut own = 0;
        for (n, line) in lines {
            let place = || format!("{name}, line {}", n + 1);
            let line: Line = serde_json::from_str(line).map_err(|e| format!("{}: {e}", place()))?;
            let slot = self
                .rows
                .get_mut(line.cell)
                .ok_or_else(|| format!("{}: cell {} is not in the plan", place(), line.cell))?;
            own += 1;
            match slot {
                Some(there) if *there != line.row => {
                    return Err(format!(
                        "{}: cell {} was in an earlier part with another result",
                        place(),
                        line.cell
                    ));
                }
                there => *there = Some(line.row),
            }
        }
        let (shard, shards) = (header.shard as usize, header.shards as usize);
        let wanted = header.cells.saturating_add(shards - shard) / shards;
        if own != wanted {
            return Err(format!(
                "{name}: has {own} of its {wanted} cells; it is cut off"
            ));
        }
        Ok(())
    }

    /// The rows, when all are there.
    ///
    /// # Errors
    /// A sentence that names missing cells, or traces that were not the same for all parts.
    pub fn finish(self) -> Result<Vec<Row>, String> {
        let missing: Vec<String> = self
            .rows
            .iter()
            .enumerate()
            .filter(|(_, r)| r.is_none())
            .map(|(n, _)| n.to_string())
            .collect();
        if !missing.is_empty() {
            let mut some = missing[..missing.len().min(8)].join(", ");
            if missing.len() > 8 {
                some.push_str(", …");
            }
            return Err(format!(
                "{} of {} cells are missing ({some}); run their shards and merge again",
                missing.len(),
                self.rows.len()
            ));
        }
        let rows: Vec<Row> = self.rows.into_iter().flatten().collect();
        let mut seen: std::collections::HashMap<&str, &Row> = std::collections::HashMap::new();
        for row in &rows {
            let first = seen.entry(&row.trace).or_insert(row);
            if first.counts != row.counts {
                return Err(format!(
                    "the parts did not read the same {}: its contents differ between machines",
                    row.trace
                ));
            }
        }
        Ok(rows)
    }
}
