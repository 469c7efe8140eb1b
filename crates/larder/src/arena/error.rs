//! Why an arena refused. No error carries heap memory, so that one can be made when there is none.

use core::fmt;

use super::request::Request;
use crate::os::OsError;

/// Most quantum caches of an arena, as in libumem.
pub(super) const MOST_CACHES: u64 = 16;

/// Why an operation on an arena failed. Nothing has changed when it is returned.
///
/// ```
/// # use larder::arena::{Arena, ArenaError};
/// let ids = Arena::builder("ids").build()?;
/// match ids.alloc(1) {
///     Err(error @ ArenaError::NoSpace { free: 0, .. }) => assert!(error.to_string().contains("add a span")),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaError {
    /// A size of 0.
    #[error("arena {arena}: a size of 0 was asked for or given back; it must be at least 1")]
    Empty {
        /// The arena's name.
        arena: &'static str,
    },
    /// Rounded up to the quantum, the size is no number any more.
    #[error(
        "arena {arena}: {size} units cannot be rounded up to a multiple of {quantum}; ask for less"
    )]
    TooLarge {
        /// The arena's name.
        arena: &'static str,
        /// Units that were asked for.
        size: u64,
        /// The arena's quantum.
        quantum: u64,
    },
    /// An alignment that is no power of two.
    #[error("arena {arena}: an alignment of {align} was asked for; it must be a power of two")]
    Align {
        /// The arena's name.
        arena: &'static str,
        /// What was asked for.
        align: u64,
    },
    /// A phase that no address can have.
    #[error(
        "arena {arena}: phase {phase} of alignment {align} was asked for; it must be less than that and a multiple of {quantum}"
    )]
    Phase {
        /// The arena's name.
        arena: &'static str,
        /// What was asked for.
        phase: u64,
        /// The alignment, at least the quantum.
        align: u64,
        /// The arena's quantum.
        quantum: u64,
    },
    /// A boundary that every segment of that size and phase crosses, or that is no power of two.
    #[error(
        "arena {arena}: {size} units at phase {phase} were not to cross multiples of {nocross}; that must be a power of two with room for both"
    )]
    Nocross {
        /// The arena's name.
        arena: &'static str,
        /// What was asked for.
        nocross: u64,
        /// The size, rounded up to the quantum.
        size: u64,
        /// The phase.
        phase: u64,
    },
    /// Bounds with nothing in between.
    #[error(
        "arena {arena}: a segment within {min} to {max} was asked for; the first must not be more than the second"
    )]
    Bounds {
        /// The arena's name.
        arena: &'static str,
        /// Lowest address.
        min: u64,
        /// Highest address.
        max: u64,
    },
    /// No free segment will do, and there is no source to ask. The quantum caches were emptied first.
    #[error(
        "arena {arena}: no free segment for {request} in {free} free units; free some, add a span, or ask for less"
    )]
    NoSpace {
        /// The arena's name.
        arena: &'static str,
        /// What was asked for.
        request: Request,
        /// Free units, in pieces of whatever size.
        free: u64,
    },
    /// The arena may not grow so far.
    #[error(
        "arena {arena}: a span of {size} units would exceed the limit of {limit}, of which {total} are there; raise the limit or free some"
    )]
    Limit {
        /// The arena's name.
        arena: &'static str,
        /// Units of the span.
        size: u64,
        /// Most units that the arena may have.
        limit: u64,
        /// Units that it has, or is importing.
        total: u64,
    },
    /// The source gave no span.
    #[error("arena {arena}: no span of {size} units from its source: {refusal}")]
    Source {
        /// The arena's name.
        arena: &'static str,
        /// Units that were asked for.
        size: u64,
        /// What the source said.
        #[source]
        refusal: Refusal,
    },
    /// A span that begins or ends between two quanta, is empty, or passes the last number.
    #[error(
        "arena {arena}: {size} units from {addr} on are no span; both must be multiples of {quantum}, and the end a number"
    )]
    Span {
        /// The arena's name.
        arena: &'static str,
        /// First address.
        addr: u64,
        /// Size.
        size: u64,
        /// The arena's quantum.
        quantum: u64,
    },
    /// A span that is there already, in part or as a whole.
    #[error(
        "arena {arena}: the span of {size} units from {addr} on overlaps the one of {other_size} units from {other} on; add each address once"
    )]
    Overlap {
        /// The arena's name.
        arena: &'static str,
        /// First address.
        addr: u64,
        /// Size.
        size: u64,
        /// First address of the span that is there.
        other: u64,
        /// Its size.
        other_size: u64,
    },
    /// No allocation begins at that address.
    #[error(
        "arena {arena}: {size} units at {addr} were given back, but no allocation begins there; it was freed twice or never allocated"
    )]
    NotAllocated {
        /// The arena's name.
        arena: &'static str,
        /// What was given.
        addr: u64,
        /// What was given.
        size: u64,
    },
    /// An allocation of another size begins at that address.
    #[error(
        "arena {arena}: {size} units at {addr} were given back, but {allocated} were allocated there; give back exactly that"
    )]
    WrongSize {
        /// The arena's name.
        arena: &'static str,
        /// What was given.
        addr: u64,
        /// What was given.
        size: u64,
        /// Units that were allocated, a multiple of the quantum.
        allocated: u64,
    },
    /// The system has no memory for the arena's own bookkeeping.
    #[error("arena {arena}: no memory for its tags: {cause}")]
    Memory {
        /// The arena's name.
        arena: &'static str,
        /// What the system said.
        #[source]
        cause: OsError,
    },
    /// A quantum that is no power of two.
    #[error("arena {arena}: a quantum of {quantum}; it must be a power of two")]
    Quantum {
        /// The arena's name.
        arena: &'static str,
        /// What was asked for.
        quantum: u64,
    },
    /// Quantum caches for more sizes than there can be.
    #[error(
        "arena {arena}: quantum caches up to {max} were asked for; at most {MOST_CACHES} quanta of {quantum}"
    )]
    QuantumMax {
        /// The arena's name.
        arena: &'static str,
        /// What was asked for.
        max: u64,
        /// The quantum.
        quantum: u64,
    },
    /// An invariant does not hold: a program wrote into the arena's own memory, or the arena has a mistake.
    #[error("arena {arena}: {what} at {addr}; report it, and do not use the arena any more")]
    Broken {
        /// The arena's name.
        arena: &'static str,
        /// What is wrong.
        what: &'static str,
        /// Where.
        addr: u64,
    },
}

/// What a source says when it has no span to give.
///
/// ```
/// # use larder::arena::{Arena, Import};
/// let empty = Arena::builder("addresses").build()?;
/// let refusal = empty.import(1, 1).unwrap_err();
/// assert_eq!(refusal.to_string(), "addresses: no free segment is large enough; free some or add a span");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What refused, for instance the name of an arena.
    pub by: &'static str,
    /// Why, and what to do.
    pub why: &'static str,
    /// What the system said, where it was the system.
    pub cause: Option<OsError>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.by, self.why)?;
        self.cause.map_or(Ok(()), |cause| write!(f, " ({cause})"))
    }
}

impl core::error::Error for Refusal {}

impl From<ArenaError> for Refusal {
    /// What an arena says as the source of another. Of a chain of sources the last one is named.
    fn from(error: ArenaError) -> Self {
        let refusal = |by, why, cause| Self { by, why, cause };
        match error {
            ArenaError::Source { refusal, .. } => refusal,
            ArenaError::NoSpace { arena, .. } => refusal(
                arena,
                "no free segment is large enough; free some or add a span",
                None,
            ),
            ArenaError::Limit { arena, .. } => {
                refusal(arena, "its limit is reached; raise it or free some", None)
            }
            ArenaError::Memory { arena, cause } => {
                refusal(arena, "no memory for its tags", Some(cause))
            }
            ArenaError::Overlap { arena, .. } => {
                refusal(arena, "its own source gave a span twice", None)
            }
            ArenaError::Empty { arena }
            | ArenaError::TooLarge { arena, .. }
            | ArenaError::Align { arena, .. }
            | ArenaError::Phase { arena, .. }
            | ArenaError::Nocross { arena, .. }
            | ArenaError::Bounds { arena, .. }
            | ArenaError::Span { arena, .. }
            | ArenaError::NotAllocated { arena, .. }
            | ArenaError::WrongSize { arena, .. }
            | ArenaError::Quantum { arena, .. }
            | ArenaError::QuantumMax { arena, .. }
            | ArenaError::Broken { arena, .. } => {
                refusal(arena, "no arena has spans of such a size", None)
            }
        }
    }
}
