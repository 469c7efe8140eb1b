//! The core of arenas: spans, and the segments that tile them. One owner at a time uses it; [`Arena`](super::Arena) puts a lock
//! around it.
//!
//! It lies below everything that hands out memory: it uses `os` alone, and no allocator. Its records are in two ranges of
//! addresses that are reserved when it is made and become accessible as they fill. Where the system refuses that, an operation is
//! an error and changes nothing.
//!
//! A *span* was added or imported; *segments* tile it. Each has a boundary tag (`tag`), out of line, in a ring with its
//! neighbours, so that freeing joins in constant time. Free segments lie on power-of-two lists (`list`), allocated ones in a hash
//! by address (`hash`), spans in a tree (`index`). `want` says where a request fits, `fit` finds a segment, `segments` cuts and
//! joins, `idle` remembers the spans that are free as a whole.

mod audit;
mod fit;
mod hash;
mod idle;
mod index;
mod list;
mod segments;
mod tag;
#[cfg(all(test, not(loom)))]
mod tests;
mod want;

use std::sync::Arc;

pub(crate) use audit::Broken;
pub(crate) use fit::Effort;
pub(crate) use segments::{Segments, State, Table};
pub(crate) use tag::{Kind, NONE, Tag};
pub use want::Fit;
pub(crate) use want::Want;

use crate::os::{OsError, System};

/// Numbers in a row: a span that a source gave.
///
/// ```
/// # use larder::arena::{Arena, Extent, Import};
/// let all = Arena::builder("all").quantum(8).build()?;
/// all.add(8, 56)?;
/// assert_eq!(all.import(10, 32)?, Extent { addr: 32, size: 16 }, "whole quanta");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First address.
    pub addr: u64,
    /// How many; of a source's span, at least what was asked for.
    pub size: u64,
}

/// Why the core refuses. It is as it was before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoreError {
    /// Not multiples of the quantum, nothing, or beyond the last number.
    Span,
    /// The span has addresses of this one.
    Overlap(Extent),
    /// The system has no memory for tags.
    Memory(OsError),
}

/// Spans and segments of one owner.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) table: Table,
    pub(crate) state: State,
}

impl Core {
    /// A core without spans, for at most `most` spans and segments; its addresses and sizes are multiples of `quantum`, a power
    /// of two.
    ///
    /// # Errors
    /// The system's refusal.
    pub(crate) fn new(system: Arc<dyn System>, quantum: u64, most: u32) -> Result<Self, OsError> {
        Ok(Self {
            table: Table {
                quantum,
                hash: hash::Hash::new(system.clone(), quantum.trailing_zeros(), most)?,
                tags: tag::TagArray::new(system, most)?,
            },
            state: State::new(),
        })
    }
}
