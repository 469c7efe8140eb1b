//! Why an identifier could not be had, or was refused.

use alloc::string::String;

/// Why an operation on identifiers failed. Nothing has changed when it is returned.
///
/// ```
/// use larder::ids::{IdError, Ids, rule::Lowest};
/// let mut ids = Ids::new(0u8..2, Lowest)?;
/// ids.reserve(0u8..2)?;
/// match ids.alloc() {
///     Err(error @ IdError::Full { allocated: 2 }) => assert!(error.to_string().contains("free some")),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// No identifier is free: not in the map, not in any CPU's magazine.
    #[error("all {allocated} identifiers are allocated; free some, or make the range wider")]
    Full {
        /// Identifiers in use, reserved ones included.
        allocated: u64,
    },
    /// Identifiers are free, but each must still rest before it may be handed out again.
    #[error(
        "{resting} identifiers are free but still rest; wait, shorten the rest, or let it relax"
    )]
    Resting {
        /// Free identifiers that rest.
        resting: u64,
    },
    /// The very identifier that was asked for is in use.
    #[error("identifier {id} is taken; ask for another or free it first")]
    Taken {
        /// The identifier, or the first taken one of the range that was asked for.
        id: u64,
    },
    /// An identifier outside of the range.
    #[error("identifier {id} is not in {first}..={last}; give one of the range")]
    OutOfRange {
        /// What was given.
        id: u64,
        /// The smallest that is allowed.
        first: u64,
        /// The largest that is allowed.
        last: u64,
    },
    /// Freed twice, or never allocated.
    #[error("identifier {id} is not allocated; it was freed twice or belongs to another owner")]
    NotAllocated {
        /// What was given.
        id: u64,
    },
    /// There are free identifiers, but not so many in a row at such an alignment.
    #[error(
        "no {count} free identifiers in a row, aligned to {align}; ask for fewer or a smaller alignment"
    )]
    NoRun {
        /// Identifiers asked for.
        count: u64,
        /// Alignment asked for.
        align: u64,
    },
    /// What can never be: a range that contains nothing, an alignment or count of zero, more than there is room for.
    #[error("{what} is not possible; {advice}")]
    Invalid {
        /// What was asked for.
        what: String,
        /// What to do.
        advice: &'static str,
    },
    /// A handle that is not alive: what it stood for was freed, or the handle was never made.
    #[error("handle {handle:#x} is stale or forged; it must not be used any more")]
    Stale {
        /// What was given.
        handle: u64,
    },
    /// No slot of [`Tagged`](super::Tagged) is left: all are retired, and none will ever be free again.
    #[error(
        "the generations of all {retired} slots are used up, and freeing brings none back; give the generation more bits, or let it begin again by `OnWrap::Reuse`"
    )]
    Retired {
        /// Slots that were retired.
        retired: u64,
    },
    /// Bytes that are no snapshot, or not as they were written.
    #[error(
        "the snapshot is damaged: {what}; restore from another copy or rebuild from the allocated identifiers"
    )]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// A snapshot in another format.
    #[error(
        "the snapshot has version {found} and this larder reads {known}; use the larder that wrote it"
    )]
    Version {
        /// The version of the bytes.
        found: u16,
        /// The version that can be read.
        known: u16,
    },
    /// A snapshot that stands for more identifiers than are allowed.
    #[error(
        "the snapshot has {found} identifiers and at most {most} are allowed; if you trust its source, allow more by `from_bytes_at_most`"
    )]
    TooLarge {
        /// How many it has.
        found: u64,
        /// How many are allowed.
        most: u64,
    },
    /// A snapshot of identifiers under another rule.
    #[error(
        "the snapshot was taken under the rule {saved}, not {given}; restore it under that one, or use `restore_into`"
    )]
    OtherRule {
        /// The name of the rule of the snapshot.
        saved: String,
        /// The name of the rule that was given.
        given: String,
    },
    /// The cell of a single owner is borrowed elsewhere.
    #[error("the identifiers are borrowed elsewhere; let that borrow end first")]
    Borrowed,
    /// The system has no memory for the bookkeeping.
    #[error("no memory for the map of identifiers; free some memory")]
    OutOfMemory,
}
