//! Workloads made by rule, for a machine with no traces: each yields [`Record`]s, the same for the same seed everywhere.
//!
//! | name | what it is |
//! |---|---|
//! | `zipf` | blocks by Zipf's law |
//! | `scan` | blocks one after the other, each once |
//! | `loop` | the same blocks again and again |
//! | `mixed` | Zipf with a scan now and then |
//! | `correlated` | Zipf, each block touched several times at once |
//! | `dbench-like` | clients with the mix of dbench's loadfile |
//! | `build-like` | a compiler's reads and writes beside a search through a large tree |
//! | `dbench` | clients of dbench's own loadfile |
//!
//! [`Spec`] makes one from its name and parameters, and [`MADE`] lists them.

mod build;
mod clients;
mod dbench;
mod draw;
mod made;
mod parameter;
mod patterns;
mod spec;
mod zipf;

pub use build::{BuildShape, build_like};
pub use clients::interleave;
pub use dbench::dbench_client;
pub use made::{MADE, Made};
pub use parameter::{Parameter, Range};
pub use patterns::correlated;
pub use spec::Spec;
pub(super) use spec::hint;

use super::Record;

/// Records of a workload.
pub type Records = Box<dyn Iterator<Item = Record> + Send>;

/// Parameters of a workload.
///
/// ```
/// use larder_sim::workload::Shape;
/// let shape = Shape { blocks: 100, ..Shape::default() };
/// assert_eq!(shape.seed, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Seed of all random draws.
    pub seed: u64,
    /// Blocks in all, where the workload has a fixed number of them; at least 1.
    pub blocks: u64,
    /// Records, where the workload has no end of its own.
    pub records: u64,
    /// Exponent of Zipf's law.
    pub skew: f64,
    /// Touches of a block at once, for `correlated`.
    pub touches: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            seed: 1,
            blocks: 100_000,
            records: 1_000_000,
            skew: 1.0,
            touches: 4,
        }
    }
}

#[cfg(test)]
mod tests;
