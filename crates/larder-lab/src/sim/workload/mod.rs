//! Workloads made by rule, for a machine with no traces: each yields [`Record`]s, the same for the same seed everywhere.
//!
//! | name | what it is |
//! |---|---|
//! | `zipf` | blocks by Zipf's law |
//! | `scan` | blocks one after the other, each once, forever new |
//! | `loop` | the same blocks round and round |
//! | `mixed` | Zipf with a scan now and then |
//! | `correlated` | Zipf, each block touched several times at once |
//! | `dbench-like` | clients with the mix of dbench's loadfile |
//! | `build-like` | a compiler's reads and writes beside a search through a large tree |
//!
//! [`Loadfile`] makes records from dbench's own `client.txt`.

mod build;
mod clients;
mod dbench;
mod draw;
mod loadfile;
mod patterns;
mod zipf;

pub use build::{BuildShape, build_like};
pub use clients::interleave;
pub use dbench::dbench_client;
pub use loadfile::{Loadfile, LoadfileError};
pub use patterns::{correlated, cycle, mixed, scan, zipf};

use super::Record;

/// Records of a workload.
pub type Records = Box<dyn Iterator<Item = Record> + Send>;

/// What a workload may vary.
///
/// ```
/// use larder_lab::sim::workload::Shape;
/// let shape = Shape { blocks: 100, ..Shape::default() };
/// assert_eq!(shape.clients, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Seed of all that is drawn.
    pub seed: u64,
    /// Blocks in all, where the workload has a fixed number of them; at least 1.
    pub blocks: u64,
    /// Records, where the workload has no end of its own.
    pub records: u64,
    /// Clients, for `dbench-like`.
    pub clients: u16,
    /// Exponent of Zipf's law.
    pub skew: f64,
    /// Touches of a block at once, for `correlated`.
    pub touches: u32,
    /// Turns of the loadfile's loop, for `dbench-like`; of a compilation, for `build-like`.
    pub turns: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            seed: 1,
            blocks: 100_000,
            records: 1_000_000,
            clients: 1,
            skew: 1.0,
            touches: 4,
            turns: 10,
        }
    }
}

/// Names of the workloads, with half a sentence each.
pub const WORKLOADS: [(&str, &str); 7] = [
    ("zipf", "blocks by Zipf's law"),
    ("scan", "blocks one after the other, each once"),
    ("loop", "the same blocks round and round"),
    ("mixed", "Zipf's law with a scan now and then"),
    (
        "correlated",
        "Zipf's law, each block touched several times at once",
    ),
    (
        "dbench-like",
        "file server clients with the mix of dbench's loadfile",
    ),
    (
        "build-like",
        "a compiler beside a search through a large tree",
    ),
];

/// There is no such workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "workload: there is no workload {name:?}; there are: zipf, scan, loop, mixed, correlated, dbench-like, build-like"
)]
pub struct UnknownWorkload {
    /// The name asked for.
    pub name: String,
}

/// The workload of a name.
///
/// ```
/// use larder_lab::sim::workload::{Shape, workload};
/// let shape = Shape { records: 10, ..Shape::default() };
/// let blocks: Vec<u64> = workload("scan", &shape)?.map(|record| record.block).collect();
/// assert_eq!(blocks, (0..10).collect::<Vec<_>>());
/// # Ok::<(), larder_lab::sim::workload::UnknownWorkload>(())
/// ```
///
/// # Errors
/// [`UnknownWorkload`].
pub fn workload(name: &str, shape: &Shape) -> Result<Records, UnknownWorkload> {
    Ok(match name {
        "zipf" => Box::new(zipf(shape)),
        "scan" => Box::new(scan(shape)),
        "loop" => Box::new(cycle(shape)),
        "mixed" => Box::new(mixed(shape)),
        "correlated" => Box::new(correlated(shape)),
        "dbench-like" => {
            let client = |client| dbench_client(shape.seed, client, shape.turns);
            Box::new(interleave(
                (0..shape.clients).map(client).collect(),
                shape.seed,
            ))
        }
        "build-like" => Box::new(build_like(&BuildShape {
            seed: shape.seed,
            units: shape.turns,
            ..BuildShape::default()
        })),
        _ => {
            return Err(UnknownWorkload {
                name: name.to_owned(),
            });
        }
    })
}

#[cfg(test)]
mod tests;
